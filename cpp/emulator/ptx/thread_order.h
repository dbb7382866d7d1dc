/// What a block's threads know of each other's past: vector clocks over its barriers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace cudamod::emulator::ptx {

/// When an access happened: in which interval between barriers of the whole block, by which thread,
/// and between which of that thread's own synchronisations. Interval 0: never.
struct Moment {
    std::uint32_t interval = 0, time = 0;
    std::uint32_t thread = 0;
};

class ThreadOrder {
  public:
    explicit ThreadOrder(std::uint32_t threads);

    Moment now(std::uint32_t thread) const { return {interval_, times_[thread], thread}; }

    /// Whether what happened then happened before what the thread does now.
    bool before(const Moment& then, std::uint32_t thread) const;

    /// All threads have met.
    void meet();
    /// These have met: each knows what any of them knew.
    void meet(const std::vector<std::uint32_t>& threads);
    /// The thread tells what it knows at a place (a barrier's number, a location), or learns what
    /// was told there.
    void tell(std::uint32_t thread, std::uint64_t place);
    void learn(std::uint32_t thread, std::uint64_t place);
    /// What was told there is over.
    void forget(std::uint64_t place) { told_.erase(place); }

  private:
    using Clock = std::vector<std::uint32_t>; ///< by thread; empty: knows nothing

    void join(Clock& into, const Clock& from) const;

    std::uint32_t interval_ = 1;
    std::vector<std::uint32_t> times_;
    std::vector<Clock> known_; ///< by thread, since the interval began
    std::map<std::uint64_t, Clock> told_;
};

} // namespace cudamod::emulator::ptx
