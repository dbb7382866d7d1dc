#include "python/launcher.h"

#include "python/bindings.h"

#include "python/current_stream.h"
#include "python/error.h"
#include "python/kernel.h"
#include "python/launch.h"
#include "python/prepared.h"
#include "python/signature.h"
#include "python/stream.h"

#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <structmember.h>

namespace cudamod::python {

namespace {

/// What the callable needs; the C++ part of the Python object, built in place and never moved.
struct Bound {
    LaunchParts parts; // with CURRENT only kernel, layout, config and manner hold
    std::shared_ptr<const launch::Kernel> kernel;
    std::shared_ptr<const launch::Layout> layout;
    nb::object config_object, stream_object, metadata; // stream_object: a Stream or CURRENT
    handles::StreamHandle handle;                      // empty with CURRENT
    LaunchSource source;

    Bound(std::shared_ptr<const launch::Kernel> kernel_,
          std::shared_ptr<const launch::Layout> layout_, nb::object config, nb::object stream,
          nb::object metadata_, GilManner gil, handles::StreamHandle handle_,
          handles::LaunchQueue* queue)
        : parts{*kernel_,
                *layout_,
                *instance_or_exact<LaunchConfig>(config.ptr()),
                handle_ ? handles::box_of<handles::StreamBox>(handle_) : no_stream(),
                handle_ ? instance_or_exact<Stream>(stream.ptr())->handle : always_open(),
                source,
                queue,
                gil},
          kernel(std::move(kernel_)), layout(std::move(layout_)), config_object(std::move(config)),
          stream_object(std::move(stream)), metadata(std::move(metadata_)),
          handle(std::move(handle_)),
          source{kernel, config_object.ptr(), handle ? stream_object.ptr() : nullptr,
                 metadata.ptr()} {}
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

    /// Stands for the stream of a launcher that asks for it at each launch.
    static const handles::StreamBox& no_stream() {
        static const auto* box = new handles::StreamBox(nullptr, nullptr, -1, false, false);
        return *box;
    }
};

struct Launcher {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* weak_references;
    alignas(Bound) std::byte bound[sizeof(Bound)]; // a Bound; it has no standard layout
};

PyTypeObject* launcher_type = nullptr;

Bound& bound_of(PyObject* self) {
    return *std::launder(reinterpret_cast<Bound*>(reinterpret_cast<Launcher*>(self)->bound));
}

PyObject* stream_closed(const launch::Kernel& kernel) {
    PyErr_Format(PyExc_RuntimeError, "kernel '%s': Stream has been closed", kernel.name().c_str());
    return nullptr;
}

/// A launcher that the garbage collector has taken apart, as part of a cycle; whoever is told of
/// its end may still hold it.
PyObject* call_collected(PyObject*, PyObject* const*, std::size_t, PyObject*) {
    PyErr_SetString(PyExc_RuntimeError, "the Launcher has been garbage collected");
    return nullptr;
}

bool is_collected(PyObject* self) {
    if (reinterpret_cast<Launcher*>(self)->vectorcall != call_collected) return false;
    call_collected(nullptr, nullptr, 0, nullptr);
    return true;
}

/// The names of keyword arguments; callers pass them interned, which is compared first.
enum class Keyword : std::uint8_t { Stream, Grid, Block, ShmemSize, Unknown };
constexpr std::array<const char*, 4> kKeywords{"stream", "grid", "block", "shmem_size"};
std::array<PyObject*, kKeywords.size()> keywords;

Keyword keyword_of(PyObject* name) {
    for (std::size_t i = 0; i < keywords.size(); ++i)
        if (name == keywords[i]) return static_cast<Keyword>(i);
    for (std::size_t i = 0; i < keywords.size(); ++i)
        if (PyUnicode_CompareWithASCIIString(name, kKeywords[i]) == 0)
            return static_cast<Keyword>(i);
    return Keyword::Unknown;
}

/// A call that overrides the stream or parts of the configuration by keyword.
PyObject* call_with_keywords(const Bound& bound, PyObject* const* arguments, std::size_t count,
                             PyObject* names) {
    try {
        const launch::Config& own = bound.parts.config;
        launch::Shape shape = own.shape();
        PyObject* stream = bound.stream_object.ptr();
        bool reshaped = false;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
            nb::handle value(arguments[count + static_cast<std::size_t>(i)]);
            PyObject* name = PyTuple_GET_ITEM(names, i);
            const Keyword keyword = keyword_of(name);
            reshaped |= keyword != Keyword::Stream;
            switch (keyword) {
            case Keyword::Stream:
                stream = value.ptr();
                break;
            case Keyword::Grid:
                shape.grid = dimensions(value, "grid");
                break;
            case Keyword::Block:
                shape.block = dimensions(value, "block");
                break;
            case Keyword::ShmemSize:
                shape.shmem_size = shared_bytes(value);
                break;
            case Keyword::Unknown:
                PyErr_Format(PyExc_TypeError,
                             "kernel '%s': unexpected keyword argument %R (known: stream, grid, "
                             "block, shmem_size)",
                             bound.kernel->name().c_str(), name);
                return nullptr;
            }
        }
        std::optional<launch::Config> other;
        if (reshaped) other.emplace(shape);
        const LaunchSource source{bound.kernel, reshaped ? nullptr : bound.config_object.ptr(),
                                  stream, bound.metadata.ptr()};
        if (bound.handle && stream == bound.stream_object.ptr()) {
            if (!bound.parts.open) return stream_closed(*bound.kernel);
            if (reshaped && other->needs_preparation())
                make_ready(*bound.kernel, other->shape(), bound.parts.stream);
            return launch_with({*bound.kernel, *bound.layout, reshaped ? *other : own,
                                bound.parts.stream, bound.parts.open, source, bound.parts.queue,
                                bound.parts.gil},
                               arguments, count);
        }
        return launch_on(stream, source, *bound.layout, reshaped ? *other : own, bound.parts.gil,
                         reshaped || stream != bound.stream_object.ptr(), arguments, count);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t nargsf, PyObject* names) {
    const Bound& bound = bound_of(self);
    auto count = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf));
    if (names && PyTuple_GET_SIZE(names)) [[unlikely]]
        return call_with_keywords(bound, arguments, count, names);
    if (!bound.parts.open) [[unlikely]]
        return stream_closed(*bound.kernel);
    return launch_with(bound.parts, arguments, count);
}

PyObject* call_current(PyObject* self, PyObject* const* arguments, std::size_t nargsf,
                       PyObject* names) {
    const Bound& bound = bound_of(self);
    auto count = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf));
    if (names && PyTuple_GET_SIZE(names)) [[unlikely]]
        return call_with_keywords(bound, arguments, count, names);
    return launch_on_current(bound.source, *bound.layout, bound.parts.config, bound.parts.gil,
                             arguments, count);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    const Bound& bound = bound_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(bound.config_object.ptr());
    Py_VISIT(bound.stream_object.ptr());
    Py_VISIT(bound.metadata.ptr());
    return 0;
}

int clear(PyObject* self) {
    reinterpret_cast<Launcher*>(self)->vectorcall = call_collected;
    Bound& bound = bound_of(self);
    nb::object config = std::move(bound.config_object), stream = std::move(bound.stream_object),
               metadata = std::move(bound.metadata);
    return 0;
}

void deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self);
    auto* launcher = reinterpret_cast<Launcher*>(self);
    if (launcher->weak_references) PyObject_ClearWeakRefs(self);
    bound_of(self).~Bound();
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject* refuse(PyTypeObject*, PyObject*, PyObject*) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Launcher objects cannot be instantiated directly. Use Kernel.bind.");
    return nullptr;
}

PyObject* on(PyObject* self, PyObject* stream) {
    if (is_collected(self)) return nullptr;
    try {
        const Bound& bound = bound_of(self);
        return make_launcher(bound.kernel, bound.layout, bound.config_object,
                             stream_or_current(stream), bound.parts.gil, bound.metadata)
            .release()
            .ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* prepare(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    const LaunchParts* parts = parts_of_launcher(self);
    if (!parts) return nullptr;
    try {
        const Bound& bound = bound_of(self);
        return make_prepared(bound.kernel, bound.layout, bound.config_object, bound.stream_object,
                             parts->gil, bound.metadata, arguments, static_cast<std::size_t>(count))
            .release()
            .ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* get_kernel(PyObject* self, void*) {
    try {
        return make<Kernel>(bound_of(self).kernel).release().ptr();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

template <nb::object Bound::* member>
PyObject* get(PyObject* self, void*) {
    if (is_collected(self)) return nullptr;
    return nb::object(bound_of(self).*member).release().ptr();
}
PyObject* get_gil(PyObject* self, void*) {
    return PyUnicode_FromString(name_of(bound_of(self).parts.gil));
}
PyObject* get_signature(PyObject* self, void*) {
    std::optional<std::string> text = signature_text(*bound_of(self).layout);
    if (!text) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(text->data(), static_cast<Py_ssize_t>(text->size()));
}

PyObject* repr(PyObject* self) {
    if (is_collected(self)) return nullptr;
    const Bound& bound = bound_of(self);
    return PyUnicode_FromFormat("<Launcher kernel='%s' config=%R stream=%R gil='%s'>",
                                bound.kernel->name().c_str(), bound.config_object.ptr(),
                                bound.stream_object.ptr(), name_of(bound.parts.gil));
}

PyMethodDef methods[] = {
    {"on", on, METH_O, "on(stream) -> Launcher\n\nThe same launch on another stream."},
    {"prepare", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(prepare)), METH_FASTCALL,
     "prepare(*arguments) -> Prepared\n\nThe launch with its arguments converted once, to be made "
     "again and again."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"kernel", get_kernel, nullptr, "The kernel.", nullptr},
    {"config", get<&Bound::config_object>, nullptr, "The LaunchConfig.", nullptr},
    {"stream", get<&Bound::stream_object>, nullptr, "The Stream, or CURRENT.", nullptr},
    {"metadata", get<&Bound::metadata>, nullptr,
     "What bind was given for those who watch launches, or None.", nullptr},
    {"gil", get_gil, nullptr, "'release', 'auto' or 'hold'.", nullptr},
    {"signature", get_signature, nullptr,
     "The types of the parameters, as bind takes them; None when only sizes are known.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Launcher, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
const char* const kDoc = "A kernel bound to a configuration and a stream. Calling it with the "
                         "kernel's arguments launches it, at the\n"
                         "cost of the driver call; the keywords stream, grid, block and shmem_size "
                         "override for one call. Shareable\n"
                         "between threads.\n\n"
                         "Raises TypeError for a wrong number or kind of arguments, OverflowError "
                         "for a number out of range, RuntimeError\n"
                         "for a closed stream or buffer, CUDAError when the driver refuses.";
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>(kDoc)},
    {0, nullptr},
};
PyType_Spec spec = {"cudamod._core.Launcher", sizeof(Launcher), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

} // namespace

nb::object make_launcher(std::shared_ptr<const launch::Kernel> kernel,
                         std::shared_ptr<const launch::Layout> layout, nb::object config,
                         nb::object stream, GilManner gil, nb::object metadata) {
    handles::StreamHandle handle;
    handles::LaunchQueue* queue = nullptr;
    bool current = stream.ptr() == current_mark;
    if (!current) {
        handle = open_handle(*instance_or_exact<Stream>(stream.ptr()));
        const auto& box = handles::box_of<handles::StreamBox>(handle);
        make_ready(*kernel, instance_or_exact<LaunchConfig>(config.ptr())->shape(), box);
        queue = queue_for(gil, box);
    }
    auto* launcher = PyObject_GC_New(Launcher, launcher_type);
    if (!launcher) throw nb::python_error();
    launcher->vectorcall = current ? call_current : call;
    launcher->weak_references = nullptr;
    new (&launcher->bound)
        Bound(std::move(kernel), std::move(layout), std::move(config), std::move(stream),
              std::move(metadata), gil, std::move(handle), queue);
    PyObject_GC_Track(reinterpret_cast<PyObject*>(launcher));
    return nb::steal(reinterpret_cast<PyObject*>(launcher));
}

const LaunchParts* parts_of_launcher(PyObject* object) {
    if (Py_TYPE(object) != launcher_type || is_collected(object)) return nullptr;
    const Bound& bound = bound_of(object);
    if (bound.handle && bound.parts.open) return &bound.parts;
    if (bound.handle) return stream_closed(*bound.kernel), nullptr;
    PyErr_SetString(PyExc_ValueError, "the launcher's stream is CURRENT: give it one with on()");
    return nullptr;
}

void bind_launcher(nb::module_& module) {
    launcher_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!launcher_type) throw nb::python_error();
    module.attr("Launcher") = nb::handle(reinterpret_cast<PyObject*>(launcher_type));
    for (std::size_t i = 0; i < keywords.size(); ++i)
        keywords[i] = PyUnicode_InternFromString(kKeywords[i]);
}

} // namespace cudamod::python
