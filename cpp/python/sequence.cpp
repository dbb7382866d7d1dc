#include "launch/sequence.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "handles/destruction.h"
#include "python/error.h"
#include "python/gil.h"
#include "python/prepared.h"
#include "python/stream.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <structmember.h>
#include <vector>

namespace cudamod::python {

namespace {

/// What a replay needs; the C++ part of Python's `LaunchSequence`.
struct Replayed {
    std::vector<nb::object> prepared;      // empty once the garbage collector took it apart
    std::vector<PreparedLaunch*> launches; // inside those
    std::vector<std::uint64_t>
        versions; // of the arguments that the executable has; under its `use`
    std::unique_ptr<const launch::Sequence> sequence;
    nb::object stream_object;
    GilManner gil;
    bool as_graph; // how the latest replay ran, before the first how it would
};

struct LaunchSequence {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* weak_references;
    alignas(Replayed) std::byte replayed[sizeof(Replayed)]; // it has no standard layout
};

PyTypeObject* sequence_type = nullptr;

Replayed& replayed_of(PyObject* self) {
    auto* place = reinterpret_cast<LaunchSequence*>(self)->replayed;
    return *std::launder(reinterpret_cast<Replayed*>(place));
}

/// Lets the interpreter lock go for a scope, unless it is to be held.
class MaybeReleased {
  public:
    explicit MaybeReleased(GilManner gil)
        : state_(gil == GilManner::Hold ? nullptr : PyEval_SaveThread()) {}
    ~MaybeReleased() {
        if (state_) take_gil(state_);
    }
    MaybeReleased(const MaybeReleased&) = delete;
    MaybeReleased& operator=(const MaybeReleased&) = delete;

  private:
    PyThreadState* state_;
};

/// The executable for this thread alone. Nobody waits for it with the interpreter lock held; after
/// a fork there may be nobody to give it back, and the driver refuses anyhow.
std::unique_lock<std::mutex> sequence_use(const handles::GraphExecBox& executable) {
    if (!handles::driver_is_ours()) return {};
    std::unique_lock lock(executable.use, std::try_to_lock);
    if (!lock) {
        PyThreadState* state = PyEval_SaveThread();
        lock.lock();
        take_gil(state);
    }
    return lock;
}

launch::SequenceLaunch as_node(const PreparedLaunch& launch, void** pointers) {
    return {*launch.kernel, launch.parts.config, pointers};
}

std::string name_launch(std::size_t position, const PreparedLaunch& launch) {
    return "launch " + std::to_string(position) + ", kernel '" + launch.kernel->name() + "'";
}

[[noreturn]] void raise_taken_apart() {
    throw std::runtime_error("the launch sequence was taken apart by the garbage collector");
}

void require_context(const Replayed& replayed, const handles::StreamHandle& stream) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    const handles::StreamBox& first = replayed.launches[0]->box();
    if (box.context != first.context)
        throw std::invalid_argument("LaunchSequence: the stream is of another context (device " +
                                    std::to_string(box.device) + ") than the launches (device " +
                                    std::to_string(first.device) + ")");
}

void replay_one_by_one(Replayed& replayed, const handles::StreamHandle& stream) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    for (std::size_t position : replayed.sequence->order()) {
        // A report that is delivered between two launches may run Python.
        if (position >= replayed.launches.size()) raise_taken_apart();
        PreparedLaunch& launch = *replayed.launches[position];
        const LaunchSource source{launch.kernel, launch.config_object.ptr(), nullptr,
                                  launch.metadata.ptr()};
        const LaunchParts parts{
            *launch.kernel, *launch.layout, launch.parts.config,          box,
            stream,         source,         queue_for(replayed.gil, box), replayed.gil};
        nb::object keep = replayed.prepared[position];
        nb::object done = nb::steal(launch_prepared(launch, parts));
        if (!done.is_valid()) throw nb::python_error();
    }
}

/// A launch whose arguments have changed since the executable was given them.
struct Patch {
    std::size_t position;
    ArgumentsInUse arguments;
};

std::vector<Patch> changed(const Replayed& replayed) {
    std::vector<Patch> patches;
    for (std::size_t i = 0; i < replayed.launches.size(); ++i) {
        const PreparedLaunch& launch = *replayed.launches[i];
        if (launch.version == replayed.versions[i]) continue;
        patches.push_back({i, ArgumentsInUse(launch)});
        if (!patches.back().arguments.get()) raise_taken_apart();
    }
    return patches;
}

void replay_graph(Replayed& replayed, const handles::StreamHandle& stream) {
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    handles::GraphExecHandle executable = replayed.sequence->executable();
    std::vector<Patch> patches; // outlives the lock: an owner's end may run Python
    CUresult status = CUDA_SUCCESS;
    std::size_t patched = 0;
    {
        auto lock = sequence_use(handles::box_of<handles::GraphExecBox>(executable));
        patches = changed(replayed); // only now: another thread's replay may just have patched
        MaybeReleased unlocked(replayed.gil);
        for (; patched < patches.size(); ++patched) {
            const Patch& patch = patches[patched];
            const PreparedLaunch& launch = *replayed.launches[patch.position];
            void** pointers = patch.arguments.pointers();
            status = replayed.sequence->patch(patch.position, as_node(launch, pointers), pointers);
            if (status != CUDA_SUCCESS) break;
            replayed.versions[patch.position] = patch.arguments.version();
        }
        if (status == CUDA_SUCCESS) status = replayed.sequence->replay(box);
        lock = {}; // before the interpreter lock is waited for
    }
    if (status == CUDA_SUCCESS) return;
    if (patched == patches.size())
        driver::raise(status, "cuGraphLaunch",
                      "sequence of " + std::to_string(replayed.launches.size()) + " launches on " +
                          handles::describe(handles::StreamBox::kKind, handles::value_of(box.raw)));
    std::size_t position = patches[patched].position;
    driver::raise(status, "cuGraphExecKernelNodeSetParams",
                  name_launch(position, *replayed.launches[position]));
}

void replay(Replayed& replayed, nb::handle stream_argument_) {
    begin_public_call();
    nb::object stream_object = replayed.stream_object;
    if (stream_argument_.is_valid()) stream_object = stream_argument(stream_argument_);
    const Stream& stream = *instance<Stream>(stream_object.ptr());
    handles::StreamHandle handle = open_handle(stream);
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(handle);
    if (replayed.prepared.empty()) raise_taken_apart();
    require_context(replayed, handle);
    bool as_graph = replayed.sequence->executable() && !launch::is_capturing(box.raw);
    std::atomic_ref(replayed.as_graph).store(as_graph, std::memory_order_relaxed);
    if (as_graph)
        replay_graph(replayed, handle);
    else
        replay_one_by_one(replayed, handle);
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t nargsf, PyObject* names) {
    std::size_t count = PyVectorcall_NARGS(nargsf);
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    if (count || named > 1 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "stream") != 0)) {
        PyErr_SetString(PyExc_TypeError,
                        "a launch sequence takes no arguments but the keyword stream");
        return nullptr;
    }
    try {
        replay(replayed_of(self), named ? nb::handle(arguments[0]) : nb::handle());
        Py_RETURN_NONE;
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

std::size_t index_of(nb::handle value, std::size_t count, const std::string& where) {
    if (!PyIndex_Check(value.ptr()) || PyBool_Check(value.ptr())) {
        PyErr_Format(PyExc_TypeError, "LaunchSequence: %s must be the index of a launch, not %R",
                     where.c_str(), value.ptr());
        throw nb::python_error();
    }
    Py_ssize_t index = PyNumber_AsSsize_t(value.ptr(), PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) throw nb::python_error();
    if (index < 0 || static_cast<std::size_t>(index) >= count) {
        PyErr_Format(PyExc_IndexError, "LaunchSequence: %s is %zd, but there are %zu launches",
                     where.c_str(), index, count);
        throw nb::python_error();
    }
    return static_cast<std::size_t>(index);
}

/// Without `after` each launch follows the one before it; with it, those that it names alone.
launch::Dependencies dependencies(nb::handle after, std::size_t count) {
    launch::Dependencies all(count);
    if (after.is_none()) {
        for (std::size_t i = 1; i < count; ++i)
            all[i] = {i - 1};
        return all;
    }
    if (!nb::isinstance<nb::dict>(after)) {
        PyErr_Format(PyExc_TypeError,
                     "LaunchSequence: after must be a dict of lists of indices, not %s",
                     Py_TYPE(after.ptr())->tp_name);
        throw nb::python_error();
    }
    nb::dict copy = nb::steal<nb::dict>(PyDict_Copy(after.ptr())); // iterating may run Python
    for (auto [key, value] : copy) {
        std::size_t i = index_of(key, count, "a key of after");
        std::string where = "an entry of after[" + std::to_string(i) + "]";
        nb::object entries = nb::steal(PySequence_List(value.ptr()));
        if (!entries.is_valid()) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError,
                         "LaunchSequence: after[%zu] must be a list of indices, not %s", i,
                         Py_TYPE(value.ptr())->tp_name);
            throw nb::python_error();
        }
        for (nb::handle entry : nb::borrow<nb::list>(entries)) {
            std::size_t before = index_of(entry, count, where);
            if (std::find(all[i].begin(), all[i].end(), before) == all[i].end())
                all[i].push_back(before);
        }
    }
    return all;
}

void collect(nb::handle launches, Replayed& replayed) {
    nb::object list = nb::steal(PySequence_List(launches.ptr()));
    if (!list.is_valid()) throw nb::python_error();
    for (nb::handle object : nb::borrow<nb::list>(list)) {
        std::size_t position = replayed.launches.size();
        PreparedLaunch* launch = prepared_launch(object.ptr());
        if (!launch) {
            PyErr_Format(PyExc_TypeError, "LaunchSequence: launch %zu must be a Prepared, not %s",
                         position, Py_TYPE(object.ptr())->tp_name);
            throw nb::python_error();
        }
        const PreparedLaunch& first = position ? *replayed.launches[0] : *launch;
        if (launch->box().context != first.box().context)
            throw std::invalid_argument("LaunchSequence: " + name_launch(position, *launch) +
                                        " runs in another context (device " +
                                        std::to_string(launch->box().device) + ") than launch 0 " +
                                        "(device " + std::to_string(first.box().device) + ")");
        replayed.prepared.push_back(nb::borrow(object));
        replayed.launches.push_back(launch);
    }
    if (replayed.launches.empty())
        throw std::invalid_argument("LaunchSequence: there are no launches");
}

void build(Replayed& replayed, const launch::Dependencies& after) {
    std::vector<launch::SequenceLaunch> nodes;
    std::vector<ArgumentsInUse> in_use;
    for (PreparedLaunch* launch : replayed.launches) {
        const ArgumentsInUse& arguments = in_use.emplace_back(*launch);
        if (!arguments.get()) raise_taken_apart();
        nodes.push_back(as_node(*launch, arguments.pointers()));
        replayed.versions.push_back(arguments.version());
    }
    CUcontext context = replayed.launches[0]->box().context;
    GilReleased unlocked;
    replayed.sequence = std::make_unique<const launch::Sequence>(nodes, after, context);
}

PyObject* make_sequence(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    static const char* const names[] = {"launches", "after", "stream", "gil", nullptr};
    PyObject *launches = nullptr, *after = Py_None, *stream = Py_None, *gil = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O$OO:LaunchSequence",
                                     const_cast<char**>(names), &launches, &after, &stream, &gil))
        return nullptr;
    try {
        begin_public_call();
        Replayed replayed{};
        collect(launches, replayed);
        launch::Dependencies order = dependencies(after, replayed.launches.size());
        replayed.stream_object =
            stream == Py_None ? replayed.launches[0]->stream_object : stream_argument(stream);
        replayed.gil = gil == Py_None ? replayed.launches[0]->parts.gil : gil_manner(gil);
        require_context(replayed, open_handle(*instance<Stream>(replayed.stream_object.ptr())));
        build(replayed, order);
        replayed.as_graph = static_cast<bool>(replayed.sequence->executable());
        auto* sequence = PyObject_GC_New(LaunchSequence, type);
        if (!sequence) return nullptr;
        sequence->vectorcall = call;
        sequence->weak_references = nullptr;
        new (sequence->replayed) Replayed(std::move(replayed));
        PyObject_GC_Track(sequence);
        return reinterpret_cast<PyObject*>(sequence);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

int sequence_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Replayed& replayed = replayed_of(self);
    Py_VISIT(replayed.stream_object.ptr());
    for (const nb::object& prepared : replayed.prepared)
        Py_VISIT(prepared.ptr());
    return 0;
}

int sequence_clear(PyObject* self) {
    Replayed& replayed = replayed_of(self);
    replayed.launches.clear();
    std::vector<nb::object> prepared = std::move(replayed.prepared);
    replayed.prepared.clear();
    return 0;
}

void sequence_deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self);
    auto* sequence = reinterpret_cast<LaunchSequence*>(self);
    if (sequence->weak_references) PyObject_ClearWeakRefs(self);
    replayed_of(self).~Replayed();
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

Py_ssize_t length(PyObject* self) {
    return static_cast<Py_ssize_t>(replayed_of(self).prepared.size());
}

PyObject* get_mode(PyObject* self, void*) {
    return PyUnicode_FromString(replayed_of(self).as_graph ? "graph" : "launches");
}
PyObject* get_stream(PyObject* self, void*) {
    return nb::object(replayed_of(self).stream_object).release().ptr();
}
PyObject* get_gil(PyObject* self, void*) {
    return PyUnicode_FromString(name_of(replayed_of(self).gil));
}
PyObject* get_launches(PyObject* self, void*) {
    const std::vector<nb::object>& prepared = replayed_of(self).prepared;
    PyObject* all = PyTuple_New(static_cast<Py_ssize_t>(prepared.size()));
    for (std::size_t i = 0; all && i < prepared.size(); ++i)
        PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), nb::object(prepared[i]).release().ptr());
    return all;
}

PyObject* sequence_repr(PyObject* self) {
    const Replayed& replayed = replayed_of(self);
    return PyUnicode_FromFormat("<LaunchSequence launches=%zu mode='%s' stream=%R>",
                                replayed.prepared.size(), replayed.as_graph ? "graph" : "launches",
                                replayed.stream_object.ptr());
}

PyObject* sequence_reduce(PyObject* self, PyObject*) {
    try {
        refuse_pickling(self);
    } catch (...) {
        set_python_error();
    }
    return nullptr;
}

PyMethodDef methods[] = {
    {"__reduce__", sequence_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"launches", get_launches, nullptr, "The prepared launches.", nullptr},
    {"mode", get_mode, nullptr,
     "'graph' or 'launches': how the latest replay ran, and before the first how it would.",
     nullptr},
    {"stream", get_stream, nullptr, "The Stream of replays that name no other.", nullptr},
    {"gil", get_gil, nullptr, "As of a Launcher.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(LaunchSequence, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(LaunchSequence, weak_references), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
const char* const kDoc =
    "Prepared launches that are replayed with one call, as a CUDA graph.\n\n"
    "`after` says for each launch, by its index, which others come before it; without it each "
    "follows the one before\n"
    "it. Arguments that set_arg changed are patched at the next replay. A replay never overlaps an "
    "earlier one of\n"
    "the same graph. Into a stream that captures, and where the driver can't make a graph of the "
    "launches, they go\n"
    "one by one; `mode` says which it was. Calling it takes the keyword stream.\n\n"
    "Raises TypeError for what is no Prepared, ValueError for launches of several contexts, for "
    "none, and for a cycle,\n"
    "IndexError for an index without a launch, CUDAError when the driver refuses.";
PyType_Slot sequence_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_sequence)},
    {Py_tp_dealloc, reinterpret_cast<void*>(sequence_deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(sequence_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(sequence_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(sequence_repr)},
    {Py_sq_length, reinterpret_cast<void*>(length)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {0, nullptr},
};
PyType_Spec spec = {"cudamod._core.LaunchSequence", sizeof(LaunchSequence), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
                    sequence_slots};

} // namespace

void bind_sequence(nb::module_& module) {
    sequence_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!sequence_type) throw nb::python_error();
    module.attr("LaunchSequence") = nb::handle(reinterpret_cast<PyObject*>(sequence_type));
}

} // namespace cudamod::python
