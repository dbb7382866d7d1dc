#include "python/tensor_map.h"

#include "python/bindings.h"

#include "driver/library.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "python/device.h"
#include "python/public_call.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace cudamod::python {

PyTypeObject* EncodedTensorMap::python_type = nullptr;

void EncodedTensorMap::replace(const CUtensorMap& encoded, const Tensor& tensor) {
    // What is let go may run Python code: not under the lock.
    nb::object owner = tensor.owner;
    handles::DeviceMemoryHandle memory = tensor.memory;
    std::lock_guard lock(mutex_);
    std::memcpy(encoded_.get(), &encoded, sizeof encoded);
    address_ = tensor.address;
    device_ = tensor.device;
    std::swap(owner_, owner);
    std::swap(memory_, memory);
}

namespace {

constexpr const char* kTensorMapOrigin =
    "Use TensorMap.tiled, TensorMap.im2col or TensorMap.im2col_wide.";

int tensor_map_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<EncodedTensorMap>(self)->owner().ptr());
    return 0;
}

int tensor_map_clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<EncodedTensorMap>(self)->drop_owner();
    return 0;
}

PyType_Slot tensor_map_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(tensor_map_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tensor_map_clear)},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kTensorMapOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

/// The first enumerators that drivers before 12.8 don't know.
constexpr int kNewerDataType = 13, kNewerSwizzle = 4;
constexpr int kNewerDriver = 12080;

/// What all encoders take. Dimensions and strides as the driver counts them: innermost first.
struct Layout {
    int data_type;
    std::vector<std::uint64_t> dimensions, strides;
    std::vector<std::uint32_t> element_strides;
    int interleave, swizzle, l2_promotion, oob_fill;

    auto type() const { return static_cast<CUtensorMapDataType>(data_type); }
    auto rank() const { return static_cast<cuuint32_t>(dimensions.size()); }
    auto interleaving() const { return static_cast<CUtensorMapInterleave>(interleave); }
    auto swizzling() const { return static_cast<CUtensorMapSwizzle>(swizzle); }
    auto promotion() const { return static_cast<CUtensorMapL2promotion>(l2_promotion); }
    auto fill() const { return static_cast<CUtensorMapFloatOOBfill>(oob_fill); }
};

/// From (data_type, dimensions, strides, element_strides, interleave, swizzle, l2_promotion,
/// oob_fill), all of which the caller has checked against the header's rules.
Layout layout_from(const nb::tuple& values) {
    using Numbers = std::vector<std::uint64_t>;
    Layout layout{nb::cast<int>(values[0]),     nb::cast<Numbers>(values[1]),
                  nb::cast<Numbers>(values[2]), nb::cast<std::vector<std::uint32_t>>(values[3]),
                  nb::cast<int>(values[4]),     nb::cast<int>(values[5]),
                  nb::cast<int>(values[6]),     nb::cast<int>(values[7])};
    if (driver::version() < kNewerDriver) {
        if (layout.data_type >= kNewerDataType)
            driver::raise_too_old("tensor map data type " + std::to_string(layout.data_type),
                                  kNewerDriver);
        if (layout.swizzle >= kNewerSwizzle)
            driver::raise_too_old("tensor map swizzle " + std::to_string(layout.swizzle),
                                  kNewerDriver);
    }
    return layout;
}

/// The context to encode in: that of the tensor's device, else the current one, else device 0's.
CUcontext context_for(const Tensor& tensor, int& device) {
    device = tensor.device >= 0 ? tensor.device : std::max(handles::current_device(), 0);
    return handles::primary_context(device);
}

void tensor_map_check(CUresult status, const char* call, const Tensor& tensor, int device,
                      int capability) {
    driver::check(status, call, [&] {
        int major = 0;
        driver::table.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                           device);
        char address[24];
        std::snprintf(address, sizeof address, "0x%llx",
                      static_cast<unsigned long long>(tensor.address));
        std::string text = "tensor map of address " + std::string(address);
        if (major < capability)
            text += "; compute capability " + std::to_string(capability) + ".0 is needed, device " +
                    std::to_string(device) + " has " + std::to_string(major);
        return text;
    });
}

nb::object encoded(nb::handle type, const CUtensorMap& map, const Tensor& tensor) {
    return nb::steal(
        make_in<EncodedTensorMap>(reinterpret_cast<PyTypeObject*>(type.ptr()), map, tensor));
}

void* pointer(const Tensor& tensor) {
    return reinterpret_cast<void*>(tensor.address);
}

nb::object encode_tiled(nb::handle type, const Tensor& tensor, const nb::tuple& values,
                        const std::vector<std::uint32_t>& box) {
    begin_public_call();
    Layout layout = layout_from(values);
    int device = 0;
    handles::ContextScope scope(context_for(tensor, device));
    CUtensorMap map;
    // A tensor of one dimension has no strides, but the driver wants an address of them.
    if (layout.strides.empty()) layout.strides.push_back(0);
    tensor_map_check(driver::table.cuTensorMapEncodeTiled(
                         &map, layout.type(), layout.rank(), pointer(tensor),
                         layout.dimensions.data(), layout.strides.data(), box.data(),
                         layout.element_strides.data(), layout.interleaving(), layout.swizzling(),
                         layout.promotion(), layout.fill()),
                     "cuTensorMapEncodeTiled", tensor, device, 9);
    return encoded(type, map, tensor);
}

nb::object encode_im2col(nb::handle type, const Tensor& tensor, const nb::tuple& values,
                         const std::vector<int>& lower, const std::vector<int>& upper,
                         std::uint32_t channels, std::uint32_t pixels) {
    begin_public_call();
    Layout layout = layout_from(values);
    int device = 0;
    handles::ContextScope scope(context_for(tensor, device));
    CUtensorMap map;
    tensor_map_check(driver::table.cuTensorMapEncodeIm2col(
                         &map, layout.type(), layout.rank(), pointer(tensor),
                         layout.dimensions.data(), layout.strides.data(), lower.data(),
                         upper.data(), channels, pixels, layout.element_strides.data(),
                         layout.interleaving(), layout.swizzling(), layout.promotion(),
                         layout.fill()),
                     "cuTensorMapEncodeIm2col", tensor, device, 9);
    return encoded(type, map, tensor);
}

nb::object encode_im2col_wide(nb::handle type, const Tensor& tensor, const nb::tuple& values,
                              int lower, int upper, std::uint32_t channels, std::uint32_t pixels,
                              int mode) {
    begin_public_call();
    Layout layout = layout_from(values);
    int device = 0;
    handles::ContextScope scope(context_for(tensor, device));
    CUtensorMap map;
    tensor_map_check(driver::table.cuTensorMapEncodeIm2colWide(
                         &map, layout.type(), layout.rank(), pointer(tensor),
                         layout.dimensions.data(), layout.strides.data(), lower, upper, channels,
                         pixels, layout.element_strides.data(), layout.interleaving(),
                         static_cast<CUtensorMapIm2ColWideMode>(mode), layout.swizzling(),
                         layout.promotion(), layout.fill()),
                     "cuTensorMapEncodeIm2colWide", tensor, device, 10);
    return encoded(type, map, tensor);
}

void replace_address(EncodedTensorMap& self, const Tensor& tensor) {
    begin_public_call();
    int device = 0;
    handles::ContextScope scope(context_for(tensor, device));
    CUtensorMap map;
    int unused;
    self.copy_to(&map, unused);
    tensor_map_check(driver::table.cuTensorMapReplaceAddress(&map, pointer(tensor)),
                     "cuTensorMapReplaceAddress", tensor, device, 9);
    self.replace(map, tensor);
}

nb::bytes bytes_of(const EncodedTensorMap& self) {
    char bytes[sizeof(CUtensorMap)];
    int unused;
    self.copy_to(bytes, unused);
    return nb::bytes(bytes, sizeof bytes);
}

nb::object device_of(const EncodedTensorMap& self) {
    return self.device() < 0 ? nb::none() : device_object(self.device());
}

constexpr const char* kTensorOrigin = "Use read_tensor.";
PyType_Slot tensor_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kTensorOrigin>)},
                              {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                              {0, nullptr}};

} // namespace

void bind_tensor_map(nb::module_& module) {
    nb::class_<Tensor>(module, "Tensor", nb::type_slots(tensor_slots),
                       "A tensor as its owner describes it; what it doesn't say is None.")
        .def_ro("address", &Tensor::address)
        .def_ro("device", &Tensor::device, "The ordinal; -1 for every device.")
        .def_ro("size", &Tensor::size, "Bytes, of a Buffer.")
        .def_ro("shape", &Tensor::shape)
        .def_ro("strides", &Tensor::strides, "In bytes.")
        .def_ro("data_type", &Tensor::data_type);
    module.def(
        "read_tensor",
        [](nb::object object, const std::string& what) {
            return make<Tensor>(read_tensor(object, what.c_str()));
        },
        nb::arg("object").none(), nb::arg("what"),
        nb::sig("def read_tensor(object: object, what: str) -> Tensor"),
        "Reads a Buffer, a tensor or an address; `what` names the call in errors.");
    nb::class_<EncodedTensorMap> type(module, "EncodedTensorMap", nb::type_slots(tensor_map_slots),
                                      nb::is_weak_referenceable(),
                                      "The native part of TensorMap: the driver's 128 bytes.");
    EncodedTensorMap::python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    type.def_prop_ro("address", &EncodedTensorMap::address, "Where the tensor begins, an int.")
        .def_prop_ro("device", device_of, nb::sig("def device(self) -> Device | None"),
                     "The device of the memory; None where any device reaches it or it is not "
                     "known.")
        .def("__bytes__", bytes_of)
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
    module.def("encode_tiled", encode_tiled, nb::arg("type"), nb::arg("tensor"), nb::arg("layout"),
               nb::arg("box"),
               nb::sig("def encode_tiled(type: type[Any], tensor: Tensor, layout: tuple[Any, ...], "
                       "box: Sequence[int]) -> Any"),
               "An object of the type, a subclass of EncodedTensorMap, from checked values.");
    module.def("encode_im2col", encode_im2col, nb::arg("type"), nb::arg("tensor"),
               nb::arg("layout"), nb::arg("lower"), nb::arg("upper"), nb::arg("channels"),
               nb::arg("pixels"),
               nb::sig("def encode_im2col(type: type[Any], tensor: Tensor, layout: tuple[Any, "
                       "...], lower: Sequence[int], upper: Sequence[int], channels: int, pixels: "
                       "int) -> Any"));
    module.def("encode_im2col_wide", encode_im2col_wide, nb::arg("type"), nb::arg("tensor"),
               nb::arg("layout"), nb::arg("lower"), nb::arg("upper"), nb::arg("channels"),
               nb::arg("pixels"), nb::arg("mode"),
               nb::sig("def encode_im2col_wide(type: type[Any], tensor: Tensor, layout: tuple[Any, "
                       "...], lower: int, upper: int, channels: int, pixels: int, mode: int) -> "
                       "Any"));
    module.def("replace_address", replace_address, nb::arg("map"), nb::arg("tensor"),
               "Encodes the address anew and takes the tensor's memory.");
}

} // namespace cudamod::python
