/// mbarrier: the 64-bit object in shared memory that counts arrivals and transferred bytes.
#pragma once

#include "emulator/ptx/form.h"
#include "emulator/ptx/warp.h"

namespace cudamod::emulator::ptx::memory_barrier {

/// The object's words, in an encoding of our own. A zero word is no barrier.
struct State {
    static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;

    std::uint32_t expected = 0; ///< arrivals of each phase; 0: not initialized
    std::uint32_t pending = 0;  ///< arrivals that this phase still lacks
    std::int32_t bytes = 0;     ///< that this phase still waits for
    bool phase = false;
    bool valid = false;

    static State decoded(std::uint64_t word);
    std::uint64_t encoded() const;
    /// Begins the next phase when nothing is pending.
    bool complete();
};

/// The bytes of one transfer have come.
void complete_bytes(const Warp& w, const Instruction& i, unsigned lane, std::byte* barrier,
                    std::uint32_t bytes);

/// slots[0]: state or predicate, or none; [1]: count, bytes, state or parity, or none;
/// kAddressSlot. Instruction::extra: bit 0 for generic addresses, further bits by instruction.
Handler select(const Form& form);
std::uint32_t settings(const Form& form);

} // namespace cudamod::emulator::ptx::memory_barrier
