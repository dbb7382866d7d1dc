#pragma once

#include "emulator/api.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cudamod::emulator {

struct Device;
struct Function;
struct Module;
struct Stream;

constexpr unsigned kLimits = 10;

/// A device fault: the context answers `status` from every call after it happened.
struct StickyFault {
    CUresult status = CUDA_SUCCESS;
    std::string message;
};

struct Context {
    CUcontext handle = nullptr;
    Device* device = nullptr;
    unsigned flags = 0;
    unsigned long long id = 0;
    unsigned api_version = 3020;
    bool primary = false;
    int retained = 0;    ///< of a primary context
    bool active = false; ///< false: destroyed, or a primary context that nobody retains
    StickyFault fault;
    std::atomic<bool> faulted{
        false}; ///< the same without the lock: no stream of the context runs anything more
    std::array<std::size_t, kLimits> limits{}; ///< by CUlimit
    std::set<unsigned long long>
        peers; ///< ids of the contexts whose memory kernels here may access
    CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
    std::shared_ptr<Stream> legacy_stream;
    std::map<std::uint64_t, std::shared_ptr<Stream>>
        thread_streams;            ///< per-thread default streams, by thread number
    std::vector<CUstream> streams; ///< created ones that are not destroyed
};

std::shared_ptr<Context> make_primary_context(Device& device);

/// The stack of this thread; its back is current.
std::vector<std::shared_ptr<Context>>& context_stack();

/// The current context, or null.
std::shared_ptr<Context> try_current_context();

/// The current context; fails with CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED or
/// the fault that sticks to it.
std::shared_ptr<Context> current_context();

/// Fails with the fault that sticks to the context, if there is one.
void require_healthy(const Context& context);

/// Keeps the first fault of a context.
void record_fault(Context& context, CUresult status, std::string message);

/// Forgets a fault: what only control may do.
void clear_fault(Context& context);

/// The live context behind a handle; fails with CUDA_ERROR_INVALID_CONTEXT.
std::shared_ptr<Context> find_context(CUcontext handle);

/// Number of this thread: never reused within the process.
std::uint64_t thread_number();

/// Waits for all that the context's streams have to do now, the destroyed ones among them. The
/// caller does not hold the driver's lock.
void drain(const std::shared_ptr<Context>& context);

} // namespace cudamod::emulator
