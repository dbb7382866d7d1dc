#include "python/framework.h"

#include "python/dlpack_abi.h"
#include "python/error.h"
#include "python/instance.h"
#include "python/integer_argument.h"
#include "python/pointer.h"
#include "python/torch_tensor.h"

#include <nanobind/stl/string.h>

#include <string>

namespace cudamod::python {

namespace {

/// The framework that defines one class, by the name of its module.
Framework framework_of_module(PyObject* type) {
    PyObject* module = PyObject_GetAttrString(type, "__module__");
    Framework found = Framework::None;
    if (module && PyUnicode_Check(module)) {
        const char* text = PyUnicode_AsUTF8(module);
        std::string root = text ? text : "";
        root.resize(std::min(root.find('.'), root.size()));
        found = root == "torch"   ? Framework::Torch
                : root == "cupy"  ? Framework::CuPy
                : root == "numba" ? Framework::Numba
                                  : Framework::None;
    }
    Py_XDECREF(module);
    PyErr_Clear();
    return found;
}

std::uint64_t raw_of(nb::handle value) {
    if (value.is_none()) return 0;
    nb::object number = nb::borrow(value);
    if (nb::hasattr(number, "value")) { // a ctypes handle
        number = number.attr("value");
        if (number.is_none()) return 0;
    }
    return raw_argument(number, "the current stream");
}

FrameworkStream torch_stream(nb::handle tensor) {
    nb::object device = tensor.attr("device");
    nb::object stream = nb::module_::import_("torch").attr("cuda").attr("current_stream")(device);
    return {raw_of(stream.attr("cuda_stream")), nb::cast<int>(stream.attr("device_index"))};
}

FrameworkStream cupy_stream(nb::handle array) {
    int device = nb::cast<int>(array.attr("device").attr("id"));
    nb::object stream =
        nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")(device);
    return {raw_of(stream.attr("ptr")), device};
}

/// Numba has no current stream; an array may carry one of its own, else it is the default stream.
FrameworkStream numba_stream(nb::handle array) {
    nb::module_ cuda = nb::module_::import_("numba.cuda");
    nb::object stream = nb::getattr(array, "stream", nb::none());
    if (stream.is_none() || !nb::hasattr(stream, "handle")) stream = cuda.attr("default_stream")();
    int device = nb::cast<int>(cuda.attr("get_current_device")().attr("id"));
    return {raw_of(stream.attr("handle")), device};
}

} // namespace

FrameworkOfType framework_of(PyTypeObject* type) {
    PyObject* object = reinterpret_cast<PyObject*>(type);
    const auto* api = static_cast<const dlpack::DLPackExchangeAPI*>(dlpack_exchange_api(type));
    if (api && api->current_work_stream) return {Framework::Exchange, api, is_torch_tensor(type)};
    if (!PyObject_HasAttrString(object, "__cuda_array_interface__") || !type->tp_mro)
        return {Framework::None, nullptr};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i)
        if (Framework found = framework_of_module(PyTuple_GET_ITEM(type->tp_mro, i));
            found != Framework::None)
            return {found, nullptr};
    return {Framework::None, nullptr};
}

int ask_framework(Framework framework, PyObject* tensor, FrameworkStream& stream) {
    try {
        nb::handle value(tensor);
        switch (framework) {
        case Framework::Torch:
            if (!nb::cast<bool>(value.attr("is_cuda"))) return 0;
            stream = torch_stream(value);
            return 1;
        case Framework::CuPy:
            stream = cupy_stream(value);
            return 1;
        case Framework::Numba:
            stream = numba_stream(value);
            return 1;
        default:
            return 0;
        }
    } catch (...) {
        set_python_error();
        return -1;
    }
}

} // namespace cudamod::python
