#include "handles/event.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <cstddef>
#include <cstring>
#include <string>

namespace cudamod::handles {

static_assert(offsetof(EventBox, raw) == 0);

namespace {

EventHandle registered(CUevent raw, CUcontext context, int device, Lifetime purpose) {
    auto box = make_box<EventBox>(raw, context, device, purpose);
    registry<EventBox>().insert(box);
    return alias<EventBox>(std::move(box));
}

} // namespace

EventBox::~EventBox() {
    registry<EventBox>().erase_expired(raw);
    destroy("cuEventDestroy", kKind, value_of(raw), false,
            [&] { return driver::table.cuEventDestroy(raw); });
}

EventHandle create_event(CUcontext context, int device, unsigned flags, Lifetime purpose) {
    ContextScope scope(context);
    CUevent raw = nullptr;
    driver::check(driver::table.cuEventCreate(&raw, flags), "cuEventCreate",
                  [&] { return "event on device " + std::to_string(device); });
    return registered(raw, context, device, purpose);
}

EventExport export_event(const EventHandle& event) {
    CUipcEventHandle handle{};
    driver::check(driver::table.cuIpcGetEventHandle(&handle, *event), "cuIpcGetEventHandle",
                  [&] { return describe(EventBox::kKind, value_of(*event)); });
    EventExport exported;
    static_assert(sizeof exported == sizeof handle);
    std::memcpy(exported.data(), &handle, sizeof handle);
    return exported;
}

EventHandle import_event(CUcontext context, int device, const EventExport& exported) {
    ContextScope scope(context);
    CUipcEventHandle handle;
    std::memcpy(&handle, exported.data(), sizeof handle);
    CUevent raw = nullptr;
    driver::check(driver::table.cuIpcOpenEventHandle(&raw, handle), "cuIpcOpenEventHandle",
                  [&] { return "another process's event on device " + std::to_string(device); });
    return registered(raw, context, device, Lifetime::Owned);
}

} // namespace cudamod::handles
