#include "emulator/leaks.h"

#include "emulator/address_space.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/graph.h"
#include "emulator/graph_exec.h"
#include "emulator/kernel.h"
#include "emulator/library.h"
#include "emulator/link.h"
#include "emulator/module.h"
#include "emulator/objects.h"
#include "emulator/pool.h"
#include "emulator/process.h"
#include "emulator/stream.h"
#include "emulator/user_object.h"
#include "emulator/virtual_memory.h"

#include <algorithm>
#include <cstdio>

namespace cudamod::emulator {

std::vector<std::pair<std::string, std::size_t>> live_counts() {
    std::lock_guard lock(driver_mutex());
    const Objects& all = objects();
    std::size_t graphs = 0, primaries = 0, modules = 0, pools = 0, device_memory = 0,
                host_memory = 0;
    for (const auto& device : devices())
        primaries += device->primary->retained > 0;
    all.graphs.visit([&](const auto& graph) { graphs += !graph->child; });
    all.modules.visit([&](const auto& module) { modules += !module->of_library; });
    all.pools.visit([&](const auto& pool) { pools += !pool->is_default; });
    for (const auto& allocation : address_space().live()) {
        if (!allocation->variable.empty() || !allocation->uses) continue;
        (allocation->kind == MemoryKind::device ? device_memory : host_memory) += 1;
    }
    return {{"primary_context", primaries},
            {"context", all.contexts.live() - devices().size()},
            {"stream", all.streams.live()},
            {"event", all.events.live()},
            {"library", all.libraries.live()},
            {"kernel", all.kernels.live()},
            {"module", modules},
            {"function", all.functions.live()},
            {"pool", pools},
            {"device_memory", device_memory},
            {"host_memory", host_memory},
            {"user_object", all.user_objects.live()},
            {"link", all.links.live()},
            {"graph", graphs},
            {"graph_exec", all.graph_execs.live()},
            {"physical_memory", all.physical_memory.live()}};
}

void report_leaks() {
    std::string text;
    for (const auto& [family, count] : live_counts()) {
        // Kernels and functions belong to their library or module, which is named.
        if (!count || family == "kernel" || family == "function") continue;
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + family;
    }
    if (text.empty()) return;
    std::fprintf(stderr, "cudamod: emulated driver: still alive at exit: %s\n", text.c_str());
    for (const auto& allocation : address_space().live()) {
        if (!allocation->variable.empty() || !allocation->uses) continue;
        std::fprintf(stderr, "cudamod: emulated driver:   %zu bytes at 0x%llx (allocation %llu)\n",
                     allocation->bytes, static_cast<unsigned long long>(allocation->begin),
                     static_cast<unsigned long long>(allocation->id));
    }
}

} // namespace cudamod::emulator
