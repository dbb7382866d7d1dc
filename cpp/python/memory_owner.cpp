#include "python/memory_owner.h"

#include "python/bindings.h"
#include "python/gil_released.h"

#include <utility>

namespace cudamod::python {

namespace {

int memory_owner_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    auto* owner = nb::inst_ptr<MemoryOwner>(self);
    Py_VISIT(owner->resource.ptr());
    Py_VISIT(owner->stream.ptr());
    return 0;
}

int memory_owner_clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<MemoryOwner>(self)->deallocate();
    return 0;
}

/// The collector calls this before it takes any object of a cycle apart: the resource still works.
void finalize(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<MemoryOwner>(self)->deallocate();
}

constexpr const char* kMemoryOwnerOrigin = "Use Buffer.from_handle.";
PyType_Slot memory_owner_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(memory_owner_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(memory_owner_clear)},
    {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kMemoryOwnerOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

} // namespace

void MemoryOwner::deallocate() noexcept {
    nb::object from = std::exchange(resource, {}), order = std::exchange(stream, {});
    if (!from.is_valid() || finalizing()) return;
    nb::error_scope unrelated;
    try {
        from.attr("deallocate")(address, size, nb::arg("stream") = order);
    } catch (nb::python_error& error) {
        error.restore();
        PyErr_WriteUnraisable(from.ptr());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "MemoryResource.deallocate could not be called");
        PyErr_WriteUnraisable(from.ptr());
    }
}

void bind_memory_owner(nb::module_& module) {
    nb::class_<MemoryOwner>(module, "MemoryOwner", nb::type_slots(memory_owner_slots),
                            "Returns memory to the resource that it came from.")
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"));
}

} // namespace cudamod::python
