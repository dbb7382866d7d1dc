#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudamod::emulator {

/// strict: reports what the real driver lets pass (use after unload, stale handles). faithful:
/// answers as the card did.
enum class Manner { strict, faithful };

/// What the environment asks for. Every variable of the emulated driver is read here and nowhere
/// else.
struct Settings {
    int driver_version = 13000; ///< CUDAMOD_EMULATOR_DRIVER_VERSION
    std::vector<std::string> devices{
        "sm_90"}; ///< CUDAMOD_EMULATOR_DEVICES, comma separated; empty or "none": no device
    std::size_t memory_bytes = std::size_t{16}
                               << 30; ///< CUDAMOD_EMULATOR_MEMORY, per device, suffix K, M or G
    std::size_t poison_bytes =
        std::size_t{64} << 20; ///< CUDAMOD_EMULATOR_POISON: fresh memory is filled up to this size
    bool null_launch = false;  ///< CUDAMOD_EMULATOR_NULL_LAUNCH=1
    bool quiet = false;        ///< CUDAMOD_EMULATOR_QUIET=1
    /// CUDAMOD_EMULATOR_JOURNAL: 1 keeps calls and launches in memory, a path also writes the calls
    /// there at exit; empty: off.
    std::string journal;
    bool leak_report = false;       ///< CUDAMOD_EMULATOR_LEAKS=1: live objects on stderr at exit
    Manner manner = Manner::strict; ///< CUDAMOD_EMULATOR_MANNER=strict|faithful
    std::uint64_t seed = 0;         ///< CUDAMOD_EMULATOR_SEED
    std::size_t queue_depth = 1024; ///< CUDAMOD_EMULATOR_QUEUE_DEPTH: a stream's pending works
    /// CUDAMOD_EMULATOR_LAUNCH_SECONDS: a kernel that runs longer ends with a fault; 0: no limit.
    std::uint64_t launch_seconds = 0;
    bool interruptible = true; ///< CUDAMOD_EMULATOR_INTERRUPT=0: Ctrl-C ends no kernel
    unsigned threads = 1; ///< CUDAMOD_EMULATOR_THREADS: threads that execute one kernel's blocks
    unsigned checks = 0;  ///< CUDAMOD_EMULATOR_CHECKS=races,barriers,...: ptx::kCheck...
    std::string failures; ///< CUDAMOD_EMULATOR_FAIL=cuMemAlloc:2:2,... (call:nth:status)
};

/// Read once, at the first use.
const Settings& settings();

} // namespace cudamod::emulator
