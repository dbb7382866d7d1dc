#include "handles/graph.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <cstddef>
#include <utility>

namespace cudamod::handles {

static_assert(offsetof(GraphBox, raw) == 0);
static_assert(offsetof(GraphExecBox, raw) == 0);

namespace {

std::vector<Dependency> on(CUcontext context, const std::vector<KernelHandle>& kernels) {
    std::vector<Dependency> all{{"context", value_of(context)}};
    for (const KernelHandle& kernel : kernels)
        all.push_back({KernelBox::kKind, value_of(*kernel)});
    return all;
}

} // namespace

GraphBox::~GraphBox() {
    registry<GraphBox>().erase_expired(raw);
    destroy("cuGraphDestroy", kKind, value_of(raw), false,
            [&] { return driver::table.cuGraphDestroy(raw); });
}

std::vector<Dependency> GraphBox::dependencies() const {
    return on(context, kernels);
}

GraphExecBox::~GraphExecBox() {
    registry<GraphExecBox>().erase_expired(raw);
    destroy("cuGraphExecDestroy", kKind, value_of(raw), true,
            [&] { return driver::table.cuGraphExecDestroy(raw); });
}

std::vector<Dependency> GraphExecBox::dependencies() const {
    return on(context, kernels);
}

GraphHandle create_graph(CUcontext context, std::vector<KernelHandle> kernels) {
    CUgraph raw = nullptr;
    driver::check(driver::table.cuGraphCreate(&raw, 0), "cuGraphCreate");
    auto box = make_box<GraphBox>(raw, context, std::move(kernels));
    registry<GraphBox>().insert(box);
    return alias<GraphBox>(std::move(box));
}

GraphHandle adopt_graph(CUgraph raw, CUcontext context) {
    auto box = make_box<GraphBox>(raw, context, std::vector<KernelHandle>());
    registry<GraphBox>().insert(box);
    return alias<GraphBox>(std::move(box));
}

GraphExecHandle instantiate(const GraphHandle& graph) {
    const GraphBox& definition = box_of<GraphBox>(graph);
    ContextScope scope(definition.context);
    CUgraphExec raw = nullptr;
    driver::check(driver::table.cuGraphInstantiate(&raw, *graph, 0), "cuGraphInstantiateWithFlags",
                  [&] { return describe(GraphBox::kKind, value_of(*graph)); });
    auto box = make_box<GraphExecBox>(raw, definition.context, definition.kernels);
    registry<GraphExecBox>().insert(box);
    return alias<GraphExecBox>(std::move(box));
}

} // namespace cudamod::handles
