#include "python/torch_tensor.h"

#include <cstring>
#include <dlfcn.h>
#include <type_traits>

namespace cudamod::python {

namespace {

/// New reference to an attribute of a module that is imported already; null without an error.
PyObject* imported_attribute(const char* module_name, const char* attribute) {
    PyObject* name = PyUnicode_FromString(module_name);
    PyObject* module = name ? PyImport_GetModule(name) : nullptr;
    PyObject* found = module ? PyObject_GetAttrString(module, attribute) : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(name);
    if (!found) PyErr_Clear();
    return found;
}

/// The address of the C++ tensor's innards as torch says it, or 0.
std::uint64_t told_cdata(PyObject* tensor) {
    PyObject* number = PyObject_GetAttrString(tensor, "_cdata");
    std::uint64_t address = 0;
    if (number && PyLong_Check(number)) address = PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return address;
}

} // namespace

bool is_torch_tensor(PyTypeObject* type) {
    PyObject* base = imported_attribute("torch._C", "TensorBase");
    bool is =
        base && PyType_Check(base) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base));
    Py_XDECREF(base);
    return is;
}

bool TorchReader::find_functions() noexcept {
    // Loaded, since there is a tensor; a torch that is linked otherwise is not found.
    void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return false;
    auto find = [&](const char* name, auto& function) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        return function != nullptr;
    };
    std::int32_t (*cuda)() = nullptr;
    bool found = find("aoti_torch_device_type_cuda", cuda) &&
                 find("aoti_torch_get_device_type", device_type_) &&
                 find("aoti_torch_get_device_index", device_index_) &&
                 find("aoti_torch_get_data_ptr", data_ptr_);
    if (found) cuda_ = cuda();
    dlclose(library); // torch stays
    return found;
}

bool TorchReader::proven_by(PyObject* tensor, const dlpack::DLTensor& described) noexcept {
    if (Py_TYPE(tensor)->tp_basicsize < static_cast<Py_ssize_t>(kPlace + sizeof(std::uint64_t)))
        return false;
    const char* place = reinterpret_cast<char*>(tensor) + kPlace;
    std::uint64_t there, address = 0;
    int device = -1;
    std::memcpy(&there, place, sizeof there);
    return there != 0 && there == told_cdata(tensor) && find_functions() &&
           ask(place, address, device) &&
           address == reinterpret_cast<std::uint64_t>(described.data) + described.byte_offset &&
           device == described.device.device_id;
}

void TorchReader::decide(PyObject* tensor, const void* exchange_api) noexcept {
    PyObject* plain = imported_attribute("torch", "Tensor");
    bool is_plain = plain == reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    Py_XDECREF(plain);
    if (!is_plain) return;
    dlpack::DLTensor described;
    if (static_cast<const dlpack::DLPackExchangeAPI*>(exchange_api)
            ->dltensor_from_py_object_no_sync(tensor, &described) != 0) {
        PyErr_Clear();
        return;
    }
    if (described.device.device_type != dlpack::kDLCUDA || !described.data) return;
    State undecided = State::Undecided; // one thread decides
    if (!state_.compare_exchange_strong(undecided, State::Deciding, std::memory_order_acquire))
        return;
    state_.store(proven_by(tensor, described) ? State::Proven : State::Refused,
                 std::memory_order_release);
}

} // namespace cudamod::python
