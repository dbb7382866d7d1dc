/// Checks of one block while it runs: reads of what nobody wrote, races on its shared memory,
/// barriers that diverge. There is one only while somebody asks for checks.
#pragma once

#include "emulator/ptx/block.h"
#include "emulator/ptx/thread_order.h"

#include <array>

namespace cudamod::emulator::ptx {

class BlockCheck {
  public:
    BlockCheck(Block& block, unsigned checks);

    /// Before a memory instruction is executed. What it does to memory that does not exist is left
    /// to its handler.
    void access(const Warp& warp, const Instruction& i, std::uint32_t mask);

    /// Shared memory was given to an instruction that is no plain access: taken for written.
    void touch(std::uint64_t offset, std::uint32_t size);

    // Synchronisation within the block.
    void meet() { order_.meet(); }
    void meet_in_warp(const Warp& warp, std::uint32_t mask);
    void arrive(const Warp& warp, std::uint32_t mask, unsigned barrier);
    /// The barrier is complete. `partial`: not all threads of the block were waited for.
    void pass(unsigned barrier, bool partial);

  private:
    /// An earlier access of one byte.
    struct Mark {
        Moment when;
        std::uint32_t step = 0; ///< which execution of a warp's instruction
        const Instruction* at = nullptr;
    };
    struct Byte {
        Mark write;
        std::array<Mark, 2> reads; ///< of different threads, the latest first
        bool written = false;
        /// By Mark, the write first: atomic, volatile or with an order, so no race with its like.
        std::array<bool, 3> strong{};
    };
    /// One lane's access.
    struct Lane {
        const Warp& warp;
        const Instruction& i;
        unsigned lane;
        std::uint64_t address; ///< as a finding tells it: offset in shared memory, or global
        std::uint32_t size;
        bool reads, writes, strong;
        std::uint32_t thread() const;
    };

    void shared(const Lane& lane, const Access& access);
    void race(const Lane& lane, Byte& byte, std::uint64_t offset, bool silent);
    void global(const Lane& lane);
    void streams(const Warp& warp, const Instruction& i, const Access& access, std::uint32_t mask);
    static const Window* window_of(const Warp& warp, const Instruction& i, std::uint64_t address,
                                   std::uint32_t size, bool writes);
    void compare(const Warp& warp, const Group& group, const Group& other) const;
    void report_race(const Lane& lane, std::uint64_t offset, bool write, const Mark& earlier,
                     bool earlier_write) const;
    bool wants(unsigned check) const { return (checks_ & check) != 0; }

    Block& block_;
    unsigned checks_;
    ThreadOrder order_;
    std::vector<Byte> bytes_;
    std::uint32_t step_ = 0;
};

} // namespace cudamod::emulator::ptx
