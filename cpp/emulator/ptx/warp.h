/// 32 threads that execute together, divergence and all.
///
/// Lanes are in groups; a group has a frame, a program counter and a mask. One group runs at a
/// time: the one with the deepest frame and, there, the smallest program counter, so that groups
/// meet again at the first instruction that both reach. Handlers work on the public members.
#pragma once

#include "emulator/ptx/code.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudamod::emulator::ptx {

struct Block;
class Worker;

/// An activation of a function for the lanes that called it together.
struct Frame {
    const FunctionCode* code = nullptr;
    Frame* parent = nullptr;
    std::byte* registers = nullptr;
    std::vector<std::byte> storage;
    std::uint32_t local_base = 0;
    std::uint32_t depth = 0;
    std::uint32_t lanes = 0; ///< still inside
    const Instruction* return_to = nullptr;
    const CallSite* site = nullptr;
};

enum class GroupState : std::uint8_t { Runnable, AtBarrier, AtClusterBarrier, AtWarpSync };

/// The lanes of one frame that take part in an instruction of the whole warp.
struct Part {
    Frame* frame = nullptr;
    const Instruction* instruction = nullptr;
    std::uint32_t mask = 0;
};
/// Executes a warp-wide instruction once everybody is there.
using Evaluate = void (*)(Warp&, const Part* parts, std::size_t count);

struct Group {
    Frame* frame = nullptr;
    const Instruction* pc = nullptr;
    std::uint32_t mask = 0;
    GroupState state = GroupState::Runnable;
    const Instruction* waiting = nullptr; ///< the instruction that it waits in
    std::uint32_t members = 0;            ///< AtWarpSync: who has to come
    std::uint32_t barrier = 0;            ///< AtBarrier: its number
    Evaluate evaluate = nullptr;          ///< AtWarpSync
};

class Warp {
  public:
    enum class Status { Exited, Blocked, Ready };

    // What handlers use.
    std::byte* bases[2] = {nullptr, nullptr}; ///< registers, constants
    const Instruction* pc = nullptr;
    const Instruction* limit = nullptr; ///< reschedule when pc reaches it
    std::uint32_t active = 0;           ///< lanes of the running group
    std::uint32_t live = 0;             ///< lanes that have not exited
    std::byte* local = nullptr;         ///< lane 0's local memory
    std::uint32_t local_stride = 0;     ///< bytes per lane
    std::uint32_t local_limit = 0;      ///< end of the running frame
    Frame* frame = nullptr;
    Block* block = nullptr;
    Worker* worker = nullptr;
    std::uint32_t carry = 0;           ///< CC.CF of each lane
    std::uint32_t cluster_arrived = 0; ///< lanes that the cluster barrier counts
    std::uint32_t index = 0;           ///< within the block
    std::uint32_t tid[3][kLanes] = {};

    template <class T>
    [[gnu::always_inline]] T* at(Slot slot) const {
        return reinterpret_cast<T*>(bases[slot & kConstantBit] + (slot & ~kConstantBit));
    }

    /// Makes the warp's threads ready to enter the kernel.
    void start(const FunctionCode& entry, std::uint32_t lanes);

    /// Runs until all lanes wait or have exited, or for about `steps` instructions. Blocked: did
    /// nothing, since all lanes wait.
    Status run(std::uint32_t steps);

    /// The lanes of `mask` continue at `target`, the others of the running group behind the branch.
    void branch(const Instruction* target, std::uint32_t mask);

    /// Narrows the running group to `mask`: the others continue in their own group.
    void separate(std::uint32_t mask, const Instruction* others_at);

    /// The running group waits in instruction `i`.
    void wait(const Instruction& i, GroupState state, std::uint32_t members, std::uint32_t barrier);

    /// Executes `i` for the lanes of `mask` together with the others named in their membermask, now
    /// or when the last of them comes. `members`: the slot with the masks.
    void synchronize(const Instruction& i, std::uint32_t mask, Slot members, Evaluate evaluate);

    void exit(std::uint32_t mask);
    void call(const Instruction& i, const CallSite& site, const FunctionCode& callee,
              std::uint32_t mask);
    void leave(std::uint32_t mask);
    void give_way() { limit = nullptr, way_given_ = true; }

    std::vector<Group>& groups() { return groups_; }

    [[noreturn]] void fault(FaultKind kind, const Instruction& i, unsigned lane,
                            const std::string& detail,
                            std::optional<std::uint64_t> address = std::nullopt) const;
    /// What a check found, once per launch, instruction and kind: a fault, unless the launch goes
    /// on.
    void report(FaultKind kind, const Instruction& i, unsigned lane, const std::string& detail,
                std::optional<std::uint64_t> address = std::nullopt) const;

    /// Tells the watch of accesses by `lanes` lanes, each of `bytes` behind the one before; a
    /// conflict is reported.
    void tell(AccessWatch& watch, const Instruction& i, unsigned lane, unsigned lanes,
              std::uint64_t address, std::size_t bytes, bool writes, bool strong) const;

  private:
    Fault describe(FaultKind kind, const Instruction& i, unsigned lane, const std::string& detail,
                   std::optional<std::uint64_t> address) const;
    template <bool Checked>
    Status run_groups(std::uint32_t steps);
    bool select_group(bool rotate);
    void park();
    void check_synchronized();
    void enter(Frame* frame);
    Frame* take_frame(const FunctionCode& code);
    void drop_frame(Frame* frame);
    void grow_local(std::uint32_t bytes);
    void hand_over(const Transfer& from, const Frame& from_frame, const Transfer& to,
                   const Frame& to_frame, std::uint32_t mask);

    std::vector<Group> groups_;
    std::vector<std::unique_ptr<Frame>> free_frames_;
    std::vector<std::unique_ptr<Frame>> frames_;
    std::vector<std::byte> local_storage_;
    std::size_t frame_bytes_ = 0;
    bool way_given_ = false;
    bool rotate_ = false;
    unsigned turn_ = 0;
};

/// Thrown by fault(); execute() hands it out.
struct FaultError {
    Fault fault;
};

} // namespace cudamod::emulator::ptx
