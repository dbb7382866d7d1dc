#include "handles/event.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <cstddef>
#include <string>

namespace cudamod::handles {

static_assert(offsetof(EventBox, raw) == 0);

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
    auto box = make_box<EventBox>(raw, context, device, purpose);
    registry<EventBox>().insert(box);
    return alias<EventBox>(std::move(box));
}

} // namespace cudamod::handles
