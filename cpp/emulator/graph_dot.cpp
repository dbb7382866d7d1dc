#include "emulator/call.h"
#include "emulator/graph.h"

#include <cstdio>
#include <string>

using namespace cudamod::emulator;

namespace {

std::string label_of(const GraphNode& node) {
    std::string label = std::to_string(node.id);
    label += "\\n";
    label += name_of(type_of(node.operation));
    if (const auto* kernel = std::get_if<KernelOperation>(&node.operation)) {
        const ValidLaunch& launch = kernel->launch;
        char shape[120];
        std::snprintf(shape, sizeof shape, "\\ngrid (%u, %u, %u) block (%u, %u, %u)",
                      launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                      launch.block[1], launch.block[2]);
        label += "\\n" + launch.function->view.kernel->name + shape;
    } else if (const auto* copy = std::get_if<CopyOperation>(&node.operation)) {
        label += "\\n" +
                 std::to_string(copy->copy.WidthInBytes * copy->copy.Height * copy->copy.Depth) +
                 " bytes";
    }
    return label;
}

void print(std::FILE* file, const Graph& graph) {
    for (const auto& node : graph.nodes) {
        std::fprintf(file, "  node_%llu [label=\"%s\"];\n",
                     static_cast<unsigned long long>(node->id), label_of(*node).c_str());
        for (const Dependency& dependency : node->dependencies) {
            std::fprintf(file, "  node_%llu -> node_%llu;\n",
                         static_cast<unsigned long long>(dependency.node->id),
                         static_cast<unsigned long long>(node->id));
        }
        if (const auto* child = std::get_if<ChildOperation>(&node->operation)) {
            std::fprintf(file, "  subgraph cluster_%llu {\n",
                         static_cast<unsigned long long>(node->id));
            print(file, *child->graph);
            std::fprintf(file, "  }\n");
        }
    }
}

} // namespace

CUDAMOD_API cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int flags) {
    return locked_call(
        "cuGraphDebugDotPrint",
        [&] {
            require_pointer(path, "the path");
            const auto graph = find_graph(handle);
            const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
                std::fopen(path, "w"),
                [](std::FILE* open) { return open ? std::fclose(open) : 0; });
            if (!file) fail(CUDA_ERROR_OPERATING_SYSTEM, "The file '%s' cannot be written", path);
            std::fprintf(file.get(), "digraph graph_1 {\n  node [shape=box];\n");
            print(file.get(), *graph);
            std::fprintf(file.get(), "}\n");
        },
        handle, path, flags);
}
