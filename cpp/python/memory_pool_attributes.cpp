#include "python/memory_pool_attributes.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "driver/table.h"
#include "python/integer_argument.h"
#include "python/public_call.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <string>

namespace cudamod::python {

namespace {

enum class Kind { Policy, Bytes, Current, HighMark };

struct Named {
    const char* name;
    CUmemPool_attribute id;
    Kind kind;
    const char* meaning;
};

// In the order of their names, as the repr has them.
constexpr Named kNamed[] = {
    {"release_threshold", CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, Kind::Bytes,
     "Bytes of unused memory that the pool keeps when the host synchronises. Settable."},
    {"reserved_mem_current", CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, Kind::Current,
     "Bytes that the pool has taken from the system."},
    {"reserved_mem_high", CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, Kind::HighMark,
     "The most of that since the mark was reset; set it to 0 to reset it."},
    {"reuse_allow_internal_dependencies", CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
     Kind::Policy,
     "Whether an allocation may make its stream wait for a free of another stream. Settable."},
    {"reuse_allow_opportunistic", CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, Kind::Policy,
     "Whether memory whose free has run is reused without any dependency. Settable."},
    {"reuse_follow_event_dependencies", CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
     Kind::Policy,
     "Whether memory freed in a stream that the allocating one waits for is reused. Settable."},
    {"used_mem_current", CU_MEMPOOL_ATTR_USED_MEM_CURRENT, Kind::Current,
     "Bytes that are allocated from the pool."},
    {"used_mem_high", CU_MEMPOOL_ATTR_USED_MEM_HIGH, Kind::HighMark,
     "The most of that since the mark was reset; set it to 0 to reset it."},
};

std::string pool_subject(const handles::MemoryPoolHandle& pool, const Named& attribute) {
    std::string text = handles::describe_pool(pool) + ", " + attribute.name;
    if (handles::box_of<handles::MemoryPoolBox>(pool).imported)
        text += "; a pool imported from another process has no attributes here";
    return text;
}

std::uint64_t read_attribute(const MemoryPoolAttributes& self, const Named& attribute) {
    begin_public_call();
    handles::MemoryPoolHandle pool = self.pool;
    union {
        int policy;
        cuuint64_t bytes;
    } value{};
    driver::check(driver::table.cuMemPoolGetAttribute(*pool, attribute.id, &value),
                  "cuMemPoolGetAttribute", [&] { return pool_subject(pool, attribute); });
    return attribute.kind == Kind::Policy ? value.policy != 0 : value.bytes;
}

void write(const MemoryPoolAttributes& self, const Named& attribute, nb::handle wanted) {
    begin_public_call();
    handles::MemoryPoolHandle pool = self.pool;
    std::string what = std::string("MemoryPoolAttributes.") + attribute.name;
    int policy = 0;
    cuuint64_t bytes = 0;
    void* value = &bytes;
    if (attribute.kind == Kind::Policy) {
        if (!PyBool_Check(wanted.ptr())) {
            PyErr_Format(PyExc_TypeError, "%s must be a bool, not %s", what.c_str(),
                         Py_TYPE(wanted.ptr())->tp_name);
            throw nb::python_error();
        }
        policy = wanted.is(nb::handle(Py_True));
        value = &policy;
    } else {
        bytes = size_argument(wanted, what.c_str());
        if (attribute.kind == Kind::HighMark && bytes)
            throw nb::value_error(
                (what + " can only be reset to 0, not set to " + std::to_string(bytes)).c_str());
    }
    driver::check(driver::table.cuMemPoolSetAttribute(*pool, attribute.id, value),
                  "cuMemPoolSetAttribute", [&] { return pool_subject(pool, attribute); });
}

std::string attributes_repr(const MemoryPoolAttributes& self) {
    if (handles::box_of<handles::MemoryPoolBox>(self.pool).imported)
        return "<MemoryPoolAttributes of an imported pool>";
    std::string text;
    for (const Named& named : kNamed) {
        std::uint64_t value = read_attribute(self, named);
        text += std::string(text.empty() ? "" : ", ") + named.name + "=" +
                (named.kind != Kind::Policy ? std::to_string(value)
                 : value                    ? "True"
                                            : "False");
    }
    return "MemoryPoolAttributes(" + text + ")";
}

constexpr const char* kAttributesOrigin = "Use the attributes of a memory resource.";
PyType_Slot attributes_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kAttributesOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

} // namespace

void bind_memory_pool_attributes(nb::module_& module) {
    auto type = nb::class_<MemoryPoolAttributes>(
        module, "MemoryPoolAttributes", nb::type_slots(attributes_slots),
        nb::is_weak_referenceable(),
        "What the driver tells of a memory pool, which it keeps alive: it outlives the resource. "
        "Every read and\n"
        "write raises CUDAError when the driver refuses, always for a pool imported from another "
        "process.");
    for (const Named& named : kNamed) {
        auto setter = [&named](const MemoryPoolAttributes& self, nb::object value) {
            write(self, named, value);
        };
        // nanobind reads a signature later.
        static auto* signatures = new std::deque<std::string>;
        const std::string& sets = signatures->emplace_back(
            std::string("def ") + named.name +
            "(self, value: " + (named.kind == Kind::Policy ? "bool" : "int") + ", /) -> None");
        if (named.kind == Kind::Policy)
            type.def_prop_rw(
                named.name,
                [&named](const MemoryPoolAttributes& self) {
                    return read_attribute(self, named) != 0;
                },
                setter, nb::for_setter(nb::arg("value").none()),
                nb::for_setter(nb::sig(sets.c_str())), named.meaning);
        else if (named.kind == Kind::Current)
            type.def_prop_ro(
                named.name,
                [&named](const MemoryPoolAttributes& self) { return read_attribute(self, named); },
                named.meaning);
        else
            type.def_prop_rw(
                named.name,
                [&named](const MemoryPoolAttributes& self) { return read_attribute(self, named); },
                setter, nb::for_setter(nb::arg("value").none()),
                nb::for_setter(nb::sig(sets.c_str())), named.meaning);
    }
    type.def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"))
        .def("__repr__", attributes_repr);
}

} // namespace cudamod::python
