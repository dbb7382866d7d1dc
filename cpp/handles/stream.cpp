#include "handles/stream.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/launch_queue.h"
#include "handles/registry.h"

#include <map>
#include <mutex>
#include <string>

namespace cudamod::handles {

static_assert(offsetof(StreamBox, raw) == 0);

StreamBox::~StreamBox() {
    if (!owned) return;
    delete launch_queue.load(std::memory_order_acquire);
    registry<StreamBox>().erase_expired(raw);
    destroy("cuStreamDestroy", kKind, value_of(raw), false,
            [&] { return driver::table.cuStreamDestroy(raw); });
}

StreamHandle create_stream(int device, bool nonblocking, std::optional<int> priority) {
    CUcontext context = primary_context(device);
    ContextScope scope(context);
    CUstream raw = nullptr;
    driver::check(
        driver::table.cuStreamCreateWithPriority(
            &raw, nonblocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, priority.value_or(0)),
        "cuStreamCreateWithPriority", [&] { return "stream on device " + std::to_string(device); });
    auto box = make_box<StreamBox>(raw, context, device, true, false);
    registry<StreamBox>().insert(box);
    return alias<StreamBox>(std::move(box));
}

StreamHandle default_stream(int device, bool per_thread) {
    static auto* known = new std::map<std::pair<int, bool>, std::shared_ptr<const StreamBox>>;
    static auto* mutex = new std::mutex;
    {
        std::lock_guard lock(*mutex);
        if (auto it = known->find({device, per_thread}); it != known->end())
            return alias<StreamBox>(it->second);
    }
    auto box = make_box<StreamBox>(per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY,
                                   primary_context(device), device, false, true);
    std::lock_guard lock(*mutex);
    return alias<StreamBox>(known->try_emplace({device, per_thread}, std::move(box)).first->second);
}

StreamHandle stream_from_raw(CUstream raw) {
    if (raw == nullptr || raw == CU_STREAM_LEGACY || raw == CU_STREAM_PER_THREAD) {
        int device = current_device();
        if (device < 0)
            driver::raise(
                CUDA_ERROR_INVALID_CONTEXT, "cuCtxGetDevice",
                "a default stream needs a current context: call Device.set_current() first, or "
                "take device.default_stream");
        return default_stream(device, raw == CU_STREAM_PER_THREAD);
    }
    if (auto ours = registry<StreamBox>().find(raw)) return alias<StreamBox>(std::move(ours));
    CUcontext context = nullptr;
    driver::check(driver::table.cuStreamGetCtx(raw, &context), "cuStreamGetCtx",
                  [&] { return describe(StreamBox::kKind, value_of(raw)); });
    return alias<StreamBox>(make_box<StreamBox>(raw, context, device_of(context), false, false));
}

} // namespace cudamod::handles
