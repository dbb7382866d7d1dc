/// Handlers of instructions that concern more than their own lanes and registers.
#pragma once

#include "emulator/ptx/form.h"
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/warp.h"

namespace cudamod::emulator::ptx {

// Control flow. Branch targets are Instruction::immediate, counted from the branch itself.
void branch(Warp& w, const Instruction& i, std::uint32_t mask);
void branch_indexed(Warp& w, const Instruction& i,
                    std::uint32_t mask); ///< extra: Code::branch_tables
void return_from(Warp& w, const Instruction& i, std::uint32_t mask);
void exit_thread(Warp& w, const Instruction& i, std::uint32_t mask);
void trap(Warp& w, const Instruction& i, std::uint32_t mask);
void breakpoint(Warp& w, const Instruction& i, std::uint32_t mask);
void sleep(Warp& w, const Instruction& i, std::uint32_t mask);
void nothing(Warp& w, const Instruction& i, std::uint32_t mask);

// Calls. extra: Code::calls.
void call_direct(Warp& w, const Instruction& i, std::uint32_t mask);
void call_indirect(Warp& w, const Instruction& i,
                   std::uint32_t mask); ///< slots[0]: the function's address
void call_builtin(Warp& w, const Instruction& i, std::uint32_t mask);

/// slots: destination, barrier, thread count, predicate. extra of red: popc 0, and 1, or 2.
Handler select_barrier(const Form& form);

/// slots as the operands stand; shfl, match.all, elect: destination, predicate, sources.
Handler select_warp(const Form& form);
std::uint32_t warp_settings(const Form& form); ///< Instruction::extra

/// slots[0] from or to slots[1..count], elements of `bytes`.
Handler pack_elements(unsigned bytes, unsigned count);
Handler unpack_elements(unsigned bytes, unsigned count);

/// slots: old value (or none), operands; kAddressSlot.
Handler select_atomic(const Form& form, Where where);

/// Combines an element with what memory holds, atomically.
enum class Reduction : std::uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };
using Combine = void (*)(std::byte* at, const std::byte* value);
Combine select_combine(Reduction reduction, Type type); ///< null: no such combination

// Addresses. extra of cvta and isspacep: a Space.
enum class WindowOf : std::uint32_t { Global, Shared, SharedCluster, Local, Constant, Param };
void to_generic(Warp& w, const Instruction& i, std::uint32_t mask);
void from_generic(Warp& w, const Instruction& i, std::uint32_t mask);
void is_in_space(Warp& w, const Instruction& i, std::uint32_t mask);
void map_to_rank(Warp& w, const Instruction& i, std::uint32_t mask); ///< extra 1: generic addresses
void rank_of_address(Warp& w, const Instruction& i, std::uint32_t mask);
void active_mask(Warp& w, const Instruction& i, std::uint32_t mask);

/// cp.async: kAddressSlot shared destination + immediate, slot 7 global source + slots'
/// displacement in `extra` bytes to copy; slots[0]: bytes to read, the rest is zero.
void copy_async(Warp& w, const Instruction& i, std::uint32_t mask);

} // namespace cudamod::emulator::ptx
