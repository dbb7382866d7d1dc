#pragma once

#include "emulator/ptx/program.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace cudamod::emulator::findings {

/// The checks that launches ask for: ptx::kCheck... Off at first, but for
/// CUDAMOD_EMULATOR_CHECKS.
unsigned checks();
void set_checks(unsigned checks);

/// The bit of a check's name ("uninitialized", "races", "barriers", "streams", "all"), or nothing.
std::optional<unsigned> check_named(std::string_view name);

/// Keeps what a check found, and says it on stderr. Whether the launch goes on: in the faithful
/// manner.
bool hear(const ptx::Fault& finding);

/// Keeps a fault; the newest 10,000 findings are kept.
void add(const ptx::Fault& fault);

/// A copy of finding `position`, counted from the oldest that is kept; false if there is none.
bool read(std::size_t position, ptx::Fault& finding);
void clear();

/// Whether only checks find this kind, which hear() has kept already.
bool by_check(ptx::FaultKind kind);

/// "race", "illegal address", ...
const char* kind_name(ptx::FaultKind kind);

} // namespace cudamod::emulator::findings
