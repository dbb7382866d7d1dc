#include "python/graph.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "launch/call.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace cudamod::python {

namespace {

constexpr const char* kGraphOrigin = "Use Stream.end_capture.";
PyType_Slot graph_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kGraphOrigin>)},
                             {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                             {0, nullptr}};

const handles::GraphHandle& open_graph(const Graph& graph) {
    if (!graph.handle) throw std::runtime_error("Graph has been closed");
    return graph.handle;
}

std::uintptr_t graph_raw(const Graph& self) {
    return self.handle ? reinterpret_cast<std::uintptr_t>(*self.handle) : 0;
}

std::string graph_subject(const handles::GraphHandle& graph) {
    return handles::describe(handles::GraphBox::kKind, handles::value_of(*graph));
}

/// The executable for this thread alone; the interpreter lock is not held. After a fork there may
/// be nobody to give it back, and the driver refuses anyhow.
std::unique_lock<std::mutex> graph_use(const handles::GraphExecHandle& executable) {
    if (!handles::driver_is_ours()) return {};
    return std::unique_lock(handles::box_of<handles::GraphExecBox>(executable).use);
}

void instantiate(Graph& self) {
    begin_public_call();
    handles::GraphHandle graph = open_graph(self);
    handles::GraphExecHandle made;
    {
        GilReleased unlocked;
        made = handles::instantiate(graph);
    }
    open_graph(self); // may have been closed meanwhile
    std::swap(self.executable, made);
}

const handles::GraphExecHandle& executable_of(Graph& self) {
    if (!self.executable) instantiate(self);
    return self.executable;
}

/// A call that takes the executable and a stream, made in that stream's context.
template <class Call>
void in_stream(Graph& self, nb::handle stream_object, const char* name, Call&& call) {
    begin_public_call();
    handles::GraphHandle graph = open_graph(self);
    nb::object object = stream_argument(stream_object);
    handles::StreamHandle stream = open_handle(*instance<Stream>(object.ptr()));
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    handles::GraphExecHandle executable = executable_of(self);
    CUresult status;
    {
        GilReleased unlocked;
        auto lock = graph_use(executable);
        launch::DefaultStreamScope scope;
        status = box.is_default ? scope.enter(box) : CUDA_SUCCESS;
        if (status == CUDA_SUCCESS) status = call(*executable, *stream);
    }
    driver::check(status, name, [&] {
        return graph_subject(graph) + " on " +
               handles::describe(handles::StreamBox::kKind, handles::value_of(*stream));
    });
}

void upload(Graph& self, nb::handle stream) {
    in_stream(self, stream, "cuGraphUpload",
              [](CUgraphExec e, CUstream s) { return driver::table.cuGraphUpload(e, s); });
}

void launch_graph(Graph& self, nb::handle stream) {
    in_stream(self, stream, "cuGraphLaunch",
              [](CUgraphExec e, CUstream s) { return driver::table.cuGraphLaunch(e, s); });
}

const char* reason_of(CUgraphExecUpdateResult result) {
    switch (result) {
    case CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED:
        return "the nodes or their dependencies differ";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED:
        return "a node is of another type";
    case CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED:
    case CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE:
        return "a kernel was changed in a way that can't be updated";
    case CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED:
        return "a node's parameters were changed in a way that can't be updated";
    case CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED:
        return "a node's attributes were changed";
    default:
        return "something differs that can't be updated";
    }
}

void update(Graph& self, const Graph& other) {
    begin_public_call();
    handles::GraphHandle graph = open_graph(self), source = open_graph(other);
    handles::GraphExecHandle executable = executable_of(self);
    CUgraphExecUpdateResultInfo info{};
    CUresult status;
    {
        GilReleased unlocked;
        auto lock = graph_use(executable);
        status = driver::table.cuGraphExecUpdate(*executable, *source, &info);
    }
    driver::check(status, "cuGraphExecUpdate", [&] {
        return graph_subject(graph) + " by " + graph_subject(source) +
               (status == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
                    ? std::string(": ") + reason_of(info.result)
                    : std::string());
    });
}

void debug_dot_print(const Graph& self, nb::handle path, nb::handle flags) {
    begin_public_call();
    handles::GraphHandle graph = open_graph(self);
    nb::object encoded = nb::steal(PyOS_FSPath(path.ptr()));
    if (!encoded.is_valid()) throw nb::python_error();
    if (PyUnicode_Check(encoded.ptr())) {
        encoded = nb::steal(PyUnicode_EncodeFSDefault(encoded.ptr()));
        if (!encoded.is_valid()) throw nb::python_error();
    }
    std::string file(PyBytes_AS_STRING(encoded.ptr()),
                     static_cast<std::size_t>(PyBytes_GET_SIZE(encoded.ptr())));
    if (file.find('\0') != std::string::npos)
        throw nb::value_error("Graph.debug_dot_print: path has a null character");
    auto bits = static_cast<unsigned>(int_argument(flags, "Graph.debug_dot_print: flags"));
    CUresult status;
    {
        GilReleased unlocked;
        status = driver::table.cuGraphDebugDotPrint(*graph, file.c_str(), bits);
    }
    driver::check(status, "cuGraphDebugDotPrint",
                  [&] { return graph_subject(graph) + ", file '" + file + "'"; });
}

std::size_t num_nodes(const Graph& self) {
    begin_public_call();
    handles::GraphHandle graph = open_graph(self);
    std::size_t count = 0;
    driver::check(driver::table.cuGraphGetNodes(*graph, nullptr, &count), "cuGraphGetNodes",
                  [&] { return graph_subject(graph); });
    return count;
}

void graph_close(Graph& self) {
    // Out of the object first: ending the executable may let the interpreter lock go.
    handles::GraphExecHandle executable = std::move(self.executable);
    handles::GraphHandle graph = std::move(self.handle);
}

std::string graph_repr(const Graph& self) {
    if (!self.handle) return "<Graph closed>";
    char text[64];
    std::snprintf(text, sizeof text, "<Graph handle=0x%llx%s>",
                  static_cast<unsigned long long>(graph_raw(self)),
                  self.executable ? " instantiated" : "");
    return text;
}

} // namespace

nb::object new_graph(handles::GraphHandle handle) {
    return make<Graph>(std::move(handle));
}

void bind_graph(nb::module_& module) {
    nb::class_<Graph>(
        module, "Graph", nb::type_slots(graph_slots), nb::is_weak_referenceable(),
        "What a capture made, to be launched as a whole. It keeps the libraries of its kernels, "
        "not the memory\n"
        "that they use. Shareable between threads; a launch never overlaps an earlier one.")
        .def("close", graph_close,
             "Refuses use from now on, and ends graph and executable. Launches under way finish.")
        .def_prop_ro("is_closed", [](const Graph& self) { return !self.handle; })
        .def_prop_ro("handle", graph_raw, "The CUgraph as an int; 0 once closed.")
        .def_prop_ro("num_nodes", num_nodes, "The number of nodes.")
        .def_prop_ro(
            "is_instantiated", [](const Graph& self) { return bool(self.executable); },
            "Whether there is an executable.")
        .def("instantiate", instantiate,
             "Makes the executable, a new one in place of an earlier one. The first upload or "
             "launch does it too.")
        .def("upload", upload, nb::arg("stream").none(),
             nb::sig("def upload(self, stream: object) -> None"),
             "Puts the executable on the device ahead of its first launch.")
        .def("launch", launch_graph, nb::arg("stream").none(),
             nb::sig("def launch(self, stream: object) -> None"),
             "Runs the graph after all earlier work of the stream, and after its own earlier "
             "launches.")
        .def("update", update, nb::arg("other"), nb::sig("def update(self, other: Graph) -> None"),
             "Gives the executable the parameters of another graph with the same nodes and "
             "dependencies. Raises CUDAError,\n"
             "and leaves it as it was, where more differs.")
        .def("debug_dot_print", debug_dot_print, nb::arg("path").none(), nb::arg("flags") = 0,
             nb::sig("def debug_dot_print(self, path: str | bytes | os.PathLike[str], flags: int "
                     "= 0) -> None"),
             "Writes the graph as a Graphviz file; `flags` are those of CUgraphDebugDot_flags.")
        .def(
            "__eq__",
            [](const Graph& self, nb::handle other) {
                const Graph* o = instance<Graph>(other.ptr());
                return o &&
                       (o == &self || (self.handle && o->handle && *self.handle == *o->handle));
            },
            nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
        .def("__hash__", [](const Graph& self) { return self.hash; })
        .def("__repr__", graph_repr);
}

} // namespace cudamod::python
