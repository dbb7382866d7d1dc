#include "python/launch_config.h"

#include "python/bindings.h"

#include "python/error.h"
#include "python/integer.h"
#include "python/launch_attributes.h"
#include "python/text.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace cudamod::python {

namespace {

using launch::Dim3;

[[noreturn]] void refuse_dimensions(const char* what, const std::string& got) {
    throw nb::value_error(("LaunchConfig." + std::string(what) +
                           " must be an int, or a tuple with up to 3 ints (got " + got + ")")
                              .c_str());
}

bool is_integer(nb::handle value) {
    return PyIndex_Check(value.ptr()) && !PySequence_Check(value.ptr());
}

unsigned dimension(nb::handle value, nb::handle whole, const char* what) {
    nb::object index =
        PyLong_CheckExact(value.ptr()) ? nb::borrow(value) : nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    std::uint64_t magnitude = 0;
    bool negative = false;
    bool fits = read_long(index.ptr(), magnitude, negative);
    if (negative || (fits && magnitude == 0)) {
        PyErr_Format(PyExc_ValueError, "LaunchConfig.%s value%s must be >= 1 (got %s)", what,
                     PyTuple_Check(whole.ptr()) ? "s" : "", text_of(whole.ptr()).c_str());
        throw nb::python_error();
    }
    if (!fits || magnitude > std::numeric_limits<unsigned>::max()) {
        PyErr_Format(PyExc_OverflowError,
                     "LaunchConfig.%s: %s does not fit into the driver's 32-bit dimensions", what,
                     text_of(index.ptr()).c_str());
        throw nb::python_error();
    }
    return static_cast<unsigned>(magnitude);
}

nb::tuple tuple_of(const Dim3& d) {
    return nb::make_tuple(d.x, d.y, d.z);
}

nb::object cluster_of(const LaunchConfig& self) {
    if (!self.shape().cluster) return nb::none();
    return tuple_of(*self.shape().cluster);
}

constexpr std::size_t kOwnArguments = 6, kArguments = kOwnArguments + kLaunchAttributes;
enum Argument : std::size_t { kGrid, kCluster, kBlock, kShmemSize, kCooperative, kSerialization };

const std::array<const char*, kArguments + 1>& argument_names() {
    static const auto names = [] {
        std::array<const char*, kArguments + 1> all{
            "grid",       "cluster",        "block",
            "shmem_size", "is_cooperative", "programmatic_stream_serialization"};
        std::copy(kLaunchAttributeNames.begin(), kLaunchAttributeNames.end(),
                  all.begin() + kOwnArguments);
        return all;
    }();
    return names;
}

/// One value for each argument, null where none is given.
using Arguments = std::array<PyObject*, kArguments>;

PyObject* make_launch_config(PyTypeObject* type, const Arguments& given) {
    auto truth = [&](Argument argument) {
        int is = given[argument] ? PyObject_IsTrue(given[argument]) : 0;
        if (is < 0) throw nb::python_error();
        return is != 0;
    };
    auto value = [&](std::size_t argument) { return given[argument] ? given[argument] : Py_None; };
    try {
        launch::Shape shape;
        shape.cooperative = truth(kCooperative);
        shape.programmatic_stream_serialization = truth(kSerialization);
        shape.grid = dimensions(value(kGrid), "grid");
        shape.block = dimensions(value(kBlock), "block");
        if (value(kCluster) != Py_None) shape.cluster = dimensions(value(kCluster), "cluster");
        shape.shmem_size = shared_bytes(value(kShmemSize));
        std::array<PyObject*, kLaunchAttributes> attributes;
        for (std::size_t i = 0; i < kLaunchAttributes; ++i)
            attributes[i] = value(kOwnArguments + i);
        shape.attributes =
            launch_attributes_from(attributes, shape.programmatic_stream_serialization);
        return make_in<LaunchConfig>(type, shape);
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

PyObject* new_launch_config(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    Arguments given{};
    auto& a = given;
    static_assert(kArguments == 16);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOO$OOOOOOOOOO:LaunchConfig",
                                     const_cast<char**>(argument_names().data()), &a[0], &a[1],
                                     &a[2], &a[3], &a[4], &a[5], &a[6], &a[7], &a[8], &a[9], &a[10],
                                     &a[11], &a[12], &a[13], &a[14], &a[15]))
        return nullptr;
    return make_launch_config(type, given);
}

/// The usual call, without a dict: names are compared by identity. Whatever else comes goes the
/// long way, which has the errors.
PyObject* call_launch_config(PyObject* type, PyObject* const* args, std::size_t nargsf,
                             PyObject* names) {
    static const auto interned = [] {
        std::array<PyObject*, kArguments> all;
        for (std::size_t i = 0; i < kArguments; ++i)
            all[i] = PyUnicode_InternFromString(argument_names()[i]);
        return all;
    }();
    Arguments given{};
    const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf));
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    bool usual = count <= kOwnArguments;
    if (usual) std::copy_n(args, count, given.begin());
    for (Py_ssize_t i = 0; i < named && usual; ++i) {
        const auto* at = std::find(interned.begin(), interned.end(), PyTuple_GET_ITEM(names, i));
        const auto index = static_cast<std::size_t>(at - interned.begin());
        usual = index < kArguments && !given[index];
        if (usual) given[index] = args[count + static_cast<std::size_t>(i)];
    }
    if (usual) return make_launch_config(reinterpret_cast<PyTypeObject*>(type), given);
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    nb::object dict = nb::steal(PyDict_New());
    if (!tuple.is_valid() || !dict.is_valid()) return nullptr;
    for (std::size_t i = 0; i < count; ++i)
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                         nb::borrow(args[i]).release().ptr());
    for (Py_ssize_t i = 0; i < named; ++i)
        if (PyDict_SetItem(dict.ptr(), PyTuple_GET_ITEM(names, i),
                           args[count + static_cast<std::size_t>(i)]) < 0)
            return nullptr;
    return new_launch_config(reinterpret_cast<PyTypeObject*>(type), tuple.ptr(), dict.ptr());
}

PyType_Slot launch_config_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_launch_config)},
                                     {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                                     {0, nullptr}};

std::size_t hash(const LaunchConfig& self) {
    const launch::Shape& shape = self.shape();
    std::size_t value = 17;
    auto mix = [&](std::uint64_t part) {
        value = value * 1000003 ^ std::hash<std::uint64_t>()(part);
    };
    for (const Dim3& d : {shape.grid, shape.block, shape.cluster.value_or(Dim3{0, 0, 0})}) {
        mix(d.x);
        mix(d.y);
        mix(d.z);
    }
    mix(shape.shmem_size);
    mix(2 * shape.cooperative + shape.programmatic_stream_serialization);
    if (shape.attributes) mix(hash_of(*shape.attributes));
    return value;
}

/// The keyword arguments that make the configuration again; those of attributes only where given.
nb::dict values_of(const LaunchConfig& self) {
    const launch::Shape& shape = self.shape();
    nb::dict values;
    values["grid"] = tuple_of(shape.grid);
    values["cluster"] = cluster_of(self);
    values["block"] = tuple_of(shape.block);
    values["shmem_size"] = shape.shmem_size;
    values["is_cooperative"] = shape.cooperative;
    values["programmatic_stream_serialization"] = shape.programmatic_stream_serialization;
    if (!shape.attributes) return values;
    for (std::size_t i = 0; i < kLaunchAttributes; ++i) {
        nb::object value = launch_attribute(shape.attributes.get(), i);
        if (!value.is_none() && !(nb::isinstance<nb::tuple>(value) && nb::len(value) == 0))
            values[kLaunchAttributeNames[i]] = value;
    }
    return values;
}

nb::tuple launch_config_reduce(const LaunchConfig& self) {
    if (self.shape().attributes) refuse_pickled_events(*self.shape().attributes);
    return nb::make_tuple(nb::module_::import_("cudamod.options").attr("_restore"),
                          nb::make_tuple(nb::type<LaunchConfig>(), values_of(self)));
}

std::string launch_config_repr(const LaunchConfig& self) {
    std::string text = "LaunchConfig(";
    for (auto [name, value] : values_of(self)) {
        if (text.back() != '(') text += ", ";
        text += nb::cast<std::string>(name) + "=" + nb::cast<std::string>(nb::repr(value));
    }
    return text + ")";
}

/// A value is its own copy.
nb::object itself(nb::handle_t<LaunchConfig> self) {
    return nb::borrow(self);
}

template <std::size_t index>
nb::object attribute(const LaunchConfig& self) {
    return launch_attribute(self.shape().attributes.get(), index);
}

} // namespace

Dim3 dimensions(nb::handle value, const char* what) {
    Dim3 result;
    if (PyLong_CheckExact(value.ptr()) || is_integer(value)) {
        result.x = dimension(value, value, what);
        return result;
    }
    if (!PyTuple_Check(value.ptr()))
        refuse_dimensions(what, nb::cast<std::string>(nb::repr(nb::handle(
                                    reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))))));
    Py_ssize_t length = PyTuple_GET_SIZE(value.ptr());
    if (length > 3) refuse_dimensions(what, "tuple with length " + std::to_string(length));
    unsigned* axes[] = {&result.x, &result.y, &result.z};
    for (Py_ssize_t i = 0; i < length; ++i) {
        nb::handle element(PyTuple_GET_ITEM(value.ptr(), i));
        if (!PyLong_CheckExact(element.ptr()) && !is_integer(element))
            refuse_dimensions(what, text_of(value.ptr()));
        *axes[i] = dimension(element, value, what);
    }
    return result;
}

unsigned shared_bytes(nb::handle value) {
    if (value.is_none()) return 0;
    if (!is_integer(value)) {
        PyErr_Format(PyExc_TypeError, "LaunchConfig.shmem_size must be an int or None, not %s",
                     Py_TYPE(value.ptr())->tp_name);
        throw nb::python_error();
    }
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    std::uint64_t magnitude = 0;
    bool negative = false;
    bool fits = read_long(index.ptr(), magnitude, negative);
    if (negative) {
        PyErr_Format(PyExc_ValueError, "LaunchConfig.shmem_size must be >= 0 (got %s)",
                     text_of(index.ptr()).c_str());
        throw nb::python_error();
    }
    if (!fits || magnitude > std::uint64_t{std::numeric_limits<int>::max()}) {
        PyErr_Format(PyExc_OverflowError, "LaunchConfig.shmem_size: %s bytes exceed 2**31 - 1",
                     text_of(index.ptr()).c_str());
        throw nb::python_error();
    }
    return static_cast<unsigned>(magnitude);
}

void bind_launch_config(nb::module_& module) {
    nb::class_<LaunchConfig>(
        module, "LaunchConfig", nb::type_slots(launch_config_slots), nb::is_weak_referenceable(),
        "How a kernel is launched: an immutable value.\n\n"
        "    LaunchConfig(grid, cluster=None, block, shmem_size=None, is_cooperative=False,\n"
        "                 programmatic_stream_serialization=False, *, launch attributes)\n\n"
        "`grid`, `block` and `cluster` are an int or a tuple of up to three, each at least 1. With "
        "a cluster the\n"
        "grid counts clusters, else blocks. `shmem_size` is dynamic shared memory in bytes per "
        "block. Launch\n"
        "attributes are None where the launch shall not have them; events are kept alive.\n\n"
        "Raises ValueError for a bad dimension, size or attribute, OverflowError for one that the "
        "driver can't\n"
        "take, TypeError for an attribute of the wrong kind. What the driver is too old for is "
        "told at the\n"
        "launch, by DriverTooOldError.")
        .def_prop_ro(
            "grid", [](const LaunchConfig& self) { return tuple_of(self.shape().grid); },
            nb::sig("def grid(self) -> tuple[int, int, int]"))
        .def_prop_ro("cluster", cluster_of,
                     nb::sig("def cluster(self) -> tuple[int, int, int] | None"))
        .def_prop_ro(
            "block", [](const LaunchConfig& self) { return tuple_of(self.shape().block); },
            nb::sig("def block(self) -> tuple[int, int, int]"))
        .def_prop_ro(
            "shmem_size", [](const LaunchConfig& self) { return self.shape().shmem_size; },
            "Dynamic shared memory in bytes per block.")
        .def_prop_ro("is_cooperative",
                     [](const LaunchConfig& self) { return self.shape().cooperative; })
        .def_prop_ro(
            "programmatic_stream_serialization",
            [](const LaunchConfig& self) { return self.shape().programmatic_stream_serialization; })
        .def_prop_ro("preferred_cluster", attribute<0>,
                     nb::sig("def preferred_cluster(self) -> tuple[int, int, int] | None"),
                     "Blocks in a cluster that may stand for several of `cluster`.")
        .def_prop_ro("cluster_scheduling_policy_preference", attribute<1>,
                     nb::sig("def cluster_scheduling_policy_preference(self) -> "
                             "Literal['default', 'spread', 'load_balancing'] | None"))
        .def_prop_ro("programmatic_event", attribute<2>,
                     nb::sig("def programmatic_event(self) -> ProgrammaticEvent | None"))
        .def_prop_ro("launch_completion_event", attribute<3>,
                     nb::sig("def launch_completion_event(self) -> LaunchCompletionEvent | None"))
        .def_prop_ro("priority", attribute<4>, nb::sig("def priority(self) -> int | None"),
                     "Lower numbers run first.")
        .def_prop_ro("mem_sync_domain", attribute<5>,
                     nb::sig("def mem_sync_domain(self) -> Literal['default', 'remote'] | None"))
        .def_prop_ro("mem_sync_domain_map", attribute<6>,
                     nb::sig("def mem_sync_domain_map(self) -> tuple[int, int] | None"),
                     "The domains that 'default' and 'remote' stand for.")
        .def_prop_ro("access_policy_window", attribute<7>,
                     nb::sig("def access_policy_window(self) -> AccessPolicyWindow | None"))
        .def_prop_ro("preferred_shared_memory_carveout", attribute<8>,
                     nb::sig("def preferred_shared_memory_carveout(self) -> int | None"),
                     "Percent of the cache that shall be shared memory.")
        .def_prop_ro("attributes", attribute<9>,
                     nb::sig("def attributes(self) -> tuple[tuple[int, bytes], ...]"),
                     "Attributes by the driver's number, by rising id.")
        .def("__copy__", itself, nb::sig("def __copy__(self) -> LaunchConfig"))
        .def(
            "__deepcopy__",
            [](nb::handle_t<LaunchConfig> self, nb::handle) { return itself(self); },
            nb::arg("memo").none(),
            nb::sig("def __deepcopy__(self, memo: object, /) -> LaunchConfig"))
        .def(
            "__eq__",
            [](const LaunchConfig& self, nb::handle other) {
                const LaunchConfig* o = instance<LaunchConfig>(other.ptr());
                return o && o->shape() == self.shape();
            },
            nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", hash)
        .def("__reduce__", launch_config_reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
        .def("__repr__", launch_config_repr);
    auto* type = reinterpret_cast<PyTypeObject*>(nb::type<LaunchConfig>().ptr());
    type->tp_vectorcall = call_launch_config;
    prove_payload<LaunchConfig>(launch::Shape{});
}

} // namespace cudamod::python
