#include "python/library.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "formats/image.h"
#include "launch/signature.h"
#include "python/gil_released.h"
#include "python/kernel.h"
#include "python/public_call.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudamod::python {

namespace {

constexpr const char* kOrigin = "Use ObjectCode.";
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
                       {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                       {0, nullptr}};

/// The longest header that a driver reads before it knows what an image is.
constexpr std::size_t kHeader = 64;

/// An own copy of an image, which nobody can change meanwhile. The driver is told no length: it
/// reads PTX up to a NUL and a header whole, so zeros follow the image.
struct OwnImage {
    std::string bytes;
    std::size_t size;

    formats::Bytes view() const { return {reinterpret_cast<const std::byte*>(bytes.data()), size}; }
};

OwnImage own_copy(nb::handle image) {
    Py_buffer view;
    if (PyObject_GetBuffer(image.ptr(), &view, PyBUF_SIMPLE) < 0) throw nb::python_error();
    OwnImage copy{{}, static_cast<std::size_t>(view.len)};
    copy.bytes.reserve(copy.size + kHeader);
    copy.bytes.append(static_cast<const char*>(view.buf), copy.size).append(kHeader, '\0');
    PyBuffer_Release(&view);
    return copy;
}

/// Refuses what would make the driver read memory that the image is not in: tables that lie beyond
/// its end, and the pointer of a fatbin's wrapper.
void check_extent(formats::ImageKind kind, formats::Bytes image, const std::string& subject) {
    auto refuse = [&](const std::string& why) {
        driver::raise(CUDA_ERROR_INVALID_IMAGE, "cuLibraryLoadData", subject + ": " + why);
    };
    switch (kind) {
    case formats::ImageKind::FatbinWrapper:
        refuse("a fatbin's wrapper holds no code, but a pointer to it");
        break;
    case formats::ImageKind::Cubin:
    case formats::ImageKind::Fatbin:
    case formats::ImageKind::Object:
        if (auto size = formats::image_size(image); !size.ok()) refuse(size.reason());
        break;
    default:
        break;
    }
}

nb::object load(nb::handle image, const std::string& subject,
                const std::vector<std::pair<int, std::uintptr_t>>& jit_options) {
    begin_public_call();
    OwnImage copy = own_copy(image);
    std::string_view bytes(copy.bytes.data(), copy.size);
    formats::ImageKind kind = formats::sniff(copy.view());
    check_extent(kind, copy.view(), subject);
    handles::LoadOptions options;
    for (auto [name, value] : jit_options)
        options.jit.emplace_back(static_cast<CUjit_option>(name), value);
    Library library;
    {
        GilReleased unlocked;
        // A cubin is never compiled; anything else may be, or may be text that only looks like
        // nothing known.
        library.handle = handles::load_library({bytes.data(), bytes.size()},
                                               kind != formats::ImageKind::Cubin, options, subject);
        if (kind == formats::ImageKind::Ptx)
            if (auto header = formats::read_ptx_header(bytes); header.ok())
                library.ptx = std::move(*header);
    }
    return make<Library>(std::move(library));
}

nb::object find_kernel(const Library& self, const std::string& name) {
    begin_public_call();
    handles::KernelHandle kernel = handles::find_kernel(self.handle, name);
    if (!kernel) return nb::none();
    const formats::PtxEntry* entry = self.ptx ? self.ptx->find_entry(name) : nullptr;
    return make<Kernel>(std::make_shared<const launch::Kernel>(std::move(kernel),
                                                               launch::infer_types(name, entry)));
}

std::optional<std::pair<std::string, std::string>> log(const Library& self) {
    const auto& box = handles::box_of<handles::LibraryBox>(self.handle);
    if (!box.log) return std::nullopt;
    return std::pair(box.log->error(), box.log->info());
}

/// A damaged image may have any bytes in a name; they are shown as escapes.
nb::list kernel_names(const Library& self) {
    nb::list names;
    for (const std::string& name : handles::kernel_names(self.handle))
        names.append(nb::steal(PyUnicode_DecodeUTF8(
            name.data(), static_cast<Py_ssize_t>(name.size()), "backslashreplace")));
    return names;
}

} // namespace

handles::LibraryHandle library_of(nb::handle object_code) {
    nb::object library =
        nb::hasattr(object_code, "_library") ? nb::getattr(object_code, "_library")() : nb::none();
    const Library* native = instance<Library>(library.ptr());
    if (!native) {
        PyErr_Format(PyExc_TypeError, "mod must be an ObjectCode or None, not %s",
                     Py_TYPE(object_code.ptr())->tp_name);
        throw nb::python_error();
    }
    return native->handle;
}

void bind_library(nb::module_& module) {
    nb::class_<Library>(module, "Library", nb::type_slots(slots),
                        "A loaded image; ObjectCode is its public face.")
        .def_static("load", load, nb::arg("image"), nb::arg("subject"), nb::arg("jit_options"),
                    nb::sig("def load(image: object, subject: str, jit_options: "
                            "Sequence[tuple[int, int]]) -> Library"))
        .def("find_kernel", find_kernel, nb::arg("name"),
             nb::sig("def find_kernel(self, name: str) -> Kernel | None"))
        .def("kernel_names", kernel_names, nb::sig("def kernel_names(self) -> list[str]"))
        .def("log", log,
             "What the driver's compiler wrote: (errors, information); None when it had no part.")
        .def_prop_ro("handle", [](const Library& self) {
            return reinterpret_cast<std::uintptr_t>(*self.handle);
        });
}

} // namespace cudamod::python
