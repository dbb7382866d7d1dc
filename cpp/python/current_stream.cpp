#include "python/current_stream.h"

#include "python/bindings.h"

#include "handles/work_stream.h"
#include "python/dlpack_abi.h"
#include "python/error.h"
#include "python/framework.h"
#include "python/instance.h"
#include "python/torch_tensor.h"
#include "python/type_cache.h"

namespace cudamod::python {

PyObject* current_mark = nullptr;

namespace {

constinit TypeCache<FrameworkOfType> frameworks(framework_of);

/// As ask_framework, by the C exchange API; keeps the address that is learnt on the way.
int ask_exchange(const FrameworkOfType& of, PyObject* value, FrameworkStream& stream,
                 DescribedTensor& described) {
    const auto& api = *static_cast<const dlpack::DLPackExchangeAPI*>(of.exchange_api);
    std::uint64_t address;
    int device;
    if (of.is_torch && torch_reader.read(value, address, device) && address) [[likely]] {
        described = {value, address};
    } else {
        dlpack::DLTensor tensor;
        if (api.dltensor_from_py_object_no_sync(value, &tensor) != 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "DLPack can't describe %s object",
                             Py_TYPE(value)->tp_name);
            return -1;
        }
        if (tensor.device.device_type != dlpack::kDLCUDA &&
            tensor.device.device_type != dlpack::kDLCUDAManaged)
            return 0;
        device = tensor.device.device_id;
        address = reinterpret_cast<std::uint64_t>(tensor.data);
        // Until torch's tensors are read its own way, the conversion sees each of them.
        if (tensor.device.device_type == dlpack::kDLCUDA && !of.is_torch && address)
            described = {value, address ? address + tensor.byte_offset : 0};
    }
    void* raw = nullptr;
    if (api.current_work_stream(dlpack::kDLCUDA, device, &raw) != 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_RuntimeError, "%s has no current stream on device %d",
                         Py_TYPE(value)->tp_name, device);
        return -1;
    }
    stream = {reinterpret_cast<std::uintptr_t>(raw), device};
    return 1;
}

PyObject* repr(PyObject*) {
    return PyUnicode_FromString("cudamod.CURRENT");
}

PyObject* reduce(PyObject*, PyObject*) {
    return PyUnicode_FromString("CURRENT");
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
constexpr const char* kOrigin = "There is one: cudamod.CURRENT.";
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char*>("The type of CURRENT, which stands for a stream in a launch: the stream on "
                       "which the framework of the\n"
                       "first tensor among the arguments works at that moment.")},
    {0, nullptr}};
PyType_Spec spec = {"cudamod._core.CurrentStream", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};

} // namespace

bool find_current_stream(const launch::Kernel& kernel, PyObject* const* arguments,
                         std::size_t count, CurrentStream& found) {
    for (std::size_t i = 0; i < count; ++i) {
        PyTypeObject* type = Py_TYPE(arguments[i]);
        if (type == &PyLong_Type || type == &PyFloat_Type || type == Buffer::python_type) continue;
        FrameworkOfType of = frameworks.find(type);
        if (of.framework == Framework::None) continue;
        FrameworkStream stream{0, -1};
        int answer = of.framework == Framework::Exchange
                         ? ask_exchange(of, arguments[i], stream, found.described)
                         : ask_framework(of.framework, arguments[i], stream);
        if (answer < 0) return false;
        if (answer == 0) continue;
        auto raw = reinterpret_cast<CUstream>(stream.raw);
        found.box = handles::known_work_stream(raw, stream.device);
        if (found.box) [[likely]]
            return true;
        try {
            found.keep = handles::work_stream(raw, stream.device);
            found.box = &handles::box_of<handles::StreamBox>(found.keep);
            return true;
        } catch (...) {
            set_python_error();
            return false;
        }
    }
    PyErr_Format(PyExc_TypeError,
                 "kernel '%s': stream is CURRENT, but no argument is a tensor on a device of a "
                 "framework with a current stream (torch, CuPy, Numba, or DLPack's C exchange "
                 "API); a Buffer has none: give a stream",
                 kernel.name().c_str());
    return false;
}

void bind_current_stream(nb::module_& module) {
    PyObject* type = PyType_FromSpec(&spec);
    if (!type) throw nb::python_error();
    module.attr("CurrentStream") = nb::steal(type);
    current_mark = PyObject_New(PyObject, reinterpret_cast<PyTypeObject*>(type));
    if (!current_mark) throw nb::python_error();
    module.attr("CURRENT") = nb::handle(current_mark);
}

} // namespace cudamod::python
