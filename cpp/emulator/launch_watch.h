#pragma once

#include <atomic>
#include <chrono>

namespace cudamod::emulator {

/// Ends a launch that runs too long: past CUDAMOD_EMULATOR_LAUNCH_SECONDS; when the process exits;
/// and on SIGINT while a driver call waits, which else could not return: a program's own handler,
/// Python's for one, only notes the signal and cannot act on it before. For that the driver puts
/// itself before the program's handler of SIGINT, for as long as a kernel has run for more than
/// 50 ms and a call waits; where the program has none, it ends as always.
class LaunchWatch {
  public:
    LaunchWatch();
    ~LaunchWatch();
    LaunchWatch(const LaunchWatch&) = delete;
    LaunchWatch& operator=(const LaunchWatch&) = delete;

    /// Why the launch must end, or null. From any of its threads, now and then.
    const char* reason_to_end();

  private:
    const std::chrono::steady_clock::time_point begin_;
    std::atomic<bool> catching_{false};
};

} // namespace cudamod::emulator
