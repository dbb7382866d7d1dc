#include "emulator/teardown.h"

#include "emulator/address_space.h"
#include "emulator/capture.h"
#include "emulator/event.h"
#include "emulator/library.h"
#include "emulator/module.h"
#include "emulator/objects.h"
#include "emulator/scheduler.h"
#include "emulator/stream.h"

namespace cudamod::emulator {
void tear_down(Context& context) {
    context.active = false;
    scheduler().abandon(context);
    for (CUstream handle : context.streams)
        abandon_capture(*objects().streams.find(handle));
    for (const auto& [thread, stream] : context.thread_streams)
        abandon_capture(*stream);
    for (CUstream handle : context.streams)
        objects().streams.erase(handle);
    context.streams.clear();
    context.legacy_stream.reset();
    context.thread_streams.clear();
    std::vector<CUevent> events;
    objects().events.visit([&](const auto& event) {
        if (event->context.get() == &context) events.push_back(event->handle);
    });
    for (CUevent handle : events)
        objects().events.erase(handle);

    objects().libraries.visit([&](const auto& library) { library->modules.erase(context.id); });
    std::vector<std::shared_ptr<Module>> modules;
    objects().modules.visit([&](const auto& module) {
        if (module->context.get() == &context) modules.push_back(module);
    });
    for (const auto& module : modules)
        unload_module(*module);

    for (const auto& allocation : address_space().live()) {
        if (allocation->context.get() == &context) address_space().release(allocation);
    }
}

} // namespace cudamod::emulator
