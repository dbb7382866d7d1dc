#include "handles/capture.h"

#include "driver/host_callbacks.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/library.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace cudamod::handles {

namespace {

/// Which libraries each capture in progress has retained already, so that a loop of launches
/// retains once.
struct Retained {
    std::mutex mutex;
    std::unordered_map<cuuint64_t, std::unordered_set<CUlibrary>> by_capture;
};

Retained& retained() {
    static auto* instance = new Retained;
    return *instance;
}

// Captures end without telling us; their ids are never reused, so forgetting one costs a second
// reference.
constexpr std::size_t kRememberedCaptures = 64;

bool is_retained(cuuint64_t capture, CUlibrary library) {
    Retained& r = retained();
    std::lock_guard lock(r.mutex);
    auto it = r.by_capture.find(capture);
    return it != r.by_capture.end() && it->second.contains(library);
}

void note_retained(cuuint64_t capture, CUlibrary library) {
    Retained& r = retained();
    std::lock_guard lock(r.mutex);
    if (r.by_capture.size() >= kRememberedCaptures && !r.by_capture.contains(capture))
        r.by_capture.clear();
    r.by_capture[capture].insert(library);
}

/// What a user object holds: the caller's data, unless the caller kept it after all.
struct Kept {
    void* data;
    CUhostFn release;
};

void CUDA_CB release_kept(void* data) {
    const driver::InHostCallback here;
    std::unique_ptr<Kept> kept(static_cast<Kept*>(data));
    if (kept->data) kept->release(kept->data);
}

/// The driver refuses every call here: the library's box ends at the next public call.
void CUDA_CB release(void* handle) {
    delete static_cast<LibraryHandle*>(handle);
}

} // namespace

std::optional<CaptureInProgress> capture_of(CUstream stream) {
    if (!stream || stream == CU_STREAM_LEGACY) return std::nullopt;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t capture = 0;
    CUgraph graph = nullptr;
#if CUDA_VERSION >= 13000
    driver::check(driver::table.cuStreamGetCaptureInfo(stream, &status, &capture, &graph, nullptr,
                                                       nullptr, nullptr),
                  "cuStreamGetCaptureInfo");
#else
    driver::check(
        driver::table.cuStreamGetCaptureInfo(stream, &status, &capture, &graph, nullptr, nullptr),
        "cuStreamGetCaptureInfo");
#endif
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || !graph) return std::nullopt;
    return CaptureInProgress{capture, graph};
}

void retain(CUgraph graph, void* data, CUhostFn release_data) {
    CUuserObject object = nullptr;
    auto owned = std::make_unique<Kept>(Kept{data, release_data});
    driver::check(driver::table.cuUserObjectCreate(&object, owned.get(), release_kept, 1,
                                                   CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
                  "cuUserObjectCreate");
    Kept* kept = owned.release();
    CUresult moved =
        driver::table.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (moved == CUDA_SUCCESS) return;
    kept->data = nullptr;
    driver::table.cuUserObjectRelease(object, 1);
    driver::raise(moved, "cuGraphRetainUserObject", "the graph that is being captured");
}

void retain_in_capture(CUstream stream, const LibraryHandle& library) {
    auto capture = capture_of(stream);
    if (!capture || is_retained(capture->id, *library)) return;
    auto owned = std::make_unique<LibraryHandle>(library);
    retain(capture->graph, owned.get(), release);
    owned.release();
    note_retained(capture->id, *library);
}

} // namespace cudamod::handles
