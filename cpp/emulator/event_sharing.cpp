#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/objects.h"
#include "emulator/shared_event.h"

using namespace cudamod::emulator;

CUDAMOD_API cuIpcGetEventHandle(CUipcEventHandle* exported, CUevent handle) {
    return locked_call(
        "cuIpcGetEventHandle",
        [&] {
            require_pointer(exported, "the handle");
            const auto event = find_event(handle);
            if (!event->shared || event->imported) {
                fail(CUDA_ERROR_INVALID_HANDLE, "The event was %s",
                     event->imported ? "imported; its exporter has its handle"
                                     : "made without CU_EVENT_INTERPROCESS");
            }
            *exported = event->shared->exported();
        },
        static_cast<const void*>(exported), handle);
}

CUDAMOD_API cuIpcOpenEventHandle(CUevent* handle, CUipcEventHandle exported) {
    return locked_call(
        "cuIpcOpenEventHandle",
        [&] {
            require_pointer(handle, "the event");
            auto event = std::make_shared<Event>();
            event->context = current_context();
            event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
            event->imported = true;
            if (SharedEvent::is_own(exported))
                fail(CUDA_ERROR_INVALID_CONTEXT, "This process exported the event: it has it");
            event->shared = SharedEvent::open(exported);
            if (!event->shared) {
                fail(CUDA_ERROR_INVALID_HANDLE,
                     "The handle is no event's, or the process that exported it has no such event "
                     "any more");
            }
            *handle = event->handle = objects().events.insert(event);
        },
        handle);
}
