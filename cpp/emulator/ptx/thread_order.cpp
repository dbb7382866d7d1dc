#include "emulator/ptx/thread_order.h"

#include <algorithm>

namespace cudamod::emulator::ptx {

ThreadOrder::ThreadOrder(std::uint32_t threads) : times_(threads, 1), known_(threads) {}

bool ThreadOrder::before(const Moment& then, std::uint32_t thread) const {
    if (then.interval != interval_ || then.thread == thread) return true;
    const Clock& known = known_[thread];
    return !known.empty() && known[then.thread] >= then.time;
}

void ThreadOrder::join(Clock& into, const Clock& from) const {
    if (from.empty()) return;
    if (into.empty()) into.resize(times_.size());
    for (std::size_t n = 0; n < into.size(); ++n)
        into[n] = std::max(into[n], from[n]);
}

void ThreadOrder::meet() {
    ++interval_;
    for (Clock& clock : known_)
        clock.clear();
    told_.clear();
}

void ThreadOrder::meet(const std::vector<std::uint32_t>& threads) {
    Clock all(times_.size());
    for (const std::uint32_t thread : threads) {
        join(all, known_[thread]);
        all[thread] = times_[thread]++;
    }
    for (const std::uint32_t thread : threads)
        known_[thread] = all;
}

void ThreadOrder::tell(std::uint32_t thread, std::uint64_t place) {
    Clock& told = told_[place];
    if (told.empty()) told.resize(times_.size());
    join(told, known_[thread]);
    told[thread] = times_[thread]++;
}

void ThreadOrder::learn(std::uint32_t thread, std::uint64_t place) {
    if (const auto told = told_.find(place); told != told_.end())
        join(known_[thread], told->second);
}

} // namespace cudamod::emulator::ptx
