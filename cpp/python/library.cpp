#include "python/library.h"

#include "python/bindings.h"

#include "driver/status.h"
#include "formats/bytes.h"
#include "formats/image.h"
#include "handles/context.h"
#include "handles/destruction.h"
#include "launch/signature.h"
#include "python/buffer_origin.h"
#include "python/gil_released.h"
#include "python/kernel.h"
#include "python/public_call.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace cudamod::python {

namespace {

constexpr const char* kLibraryOrigin = "Use ObjectCode.";
PyType_Slot library_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kLibraryOrigin>)},
                               {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                               {0, nullptr}};

using Image = std::shared_ptr<const handles::ImageMemory>;

/// A copy of an object's bytes.
Image copy_of(nb::handle image) {
    Py_buffer view;
    if (PyObject_GetBuffer(image.ptr(), &view, PyBUF_SIMPLE) < 0) throw nb::python_error();
    Image copy = handles::ImageMemory::copy_of(
        {static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len)});
    PyBuffer_Release(&view);
    return copy;
}

/// The mapping of an open file. Raises OSError.
Image mapping_of(int file) {
    try {
        return handles::ImageMemory::map(file);
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
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
                const std::vector<std::pair<int, std::uintptr_t>>& jit_options,
                bool preserve_binary) {
    begin_public_call();
    Image memory = PyLong_Check(image.ptr()) ? mapping_of(nb::cast<int>(image)) : copy_of(image);
    std::string_view bytes(memory->bytes().data(), memory->bytes().size());
    formats::ImageKind kind = formats::sniff(formats::as_bytes(bytes));
    check_extent(kind, formats::as_bytes(bytes), subject);
    handles::LoadOptions options{{}, preserve_binary};
    for (auto [name, value] : jit_options)
        options.jit.emplace_back(static_cast<CUjit_option>(name), value);
    Library library;
    {
        GilReleased unlocked;
        // A cubin is never compiled; anything else may be, or may be text that only looks like
        // nothing known.
        library.handle =
            handles::load_library(memory, kind != formats::ImageKind::Cubin, options, subject);
        library.entries = std::make_unique<const launch::ImageEntries>(formats::as_bytes(bytes));
    }
    return make<Library>(std::move(library));
}

nb::object find_kernel(const Library& self, const std::string& name, nb::object origin) {
    begin_public_call();
    handles::KernelHandle kernel;
    {
        handles::LibraryHandle library = self.handle;
        GilReleased unlocked;
        kernel = handles::find_kernel(library, name);
    }
    if (!kernel) return nb::none();
    const formats::PtxEntry* entry = self.entries->find(name);
    return make<Kernel>(std::make_shared<const launch::Kernel>(
        std::move(kernel), launch::infer_types(name, entry), as_origin(std::move(origin))));
}

/// Makes the current context that of a call which is about one. Raises without a current context.
void need_context(const char* call, const std::string& subject) {
    if (!handles::current_context())
        driver::raise(CUDA_ERROR_INVALID_CONTEXT, call,
                      subject + "; call Device.set_current() first");
}

nb::object find_global(const Library& self, const std::string& name) {
    begin_public_call();
    need_context("cuLibraryGetGlobal", "variable '" + name + "'");
    std::optional<handles::GlobalVariable> variable;
    {
        handles::LibraryHandle library = self.handle;
        GilReleased unlocked;
        variable = handles::find_global(library, name);
    }
    if (!variable) return nb::none();
    return buffer_around(nb::type<Buffer>(), variable->address, variable->size, nb::find(self));
}

std::uintptr_t module(const Library& self) {
    begin_public_call();
    need_context("cuLibraryGetModule", "the module of a context");
    handles::LibraryHandle library = self.handle;
    GilReleased unlocked;
    return reinterpret_cast<std::uintptr_t>(handles::module_of(library));
}

std::optional<std::pair<std::string, std::string>> library_log(const Library& self) {
    const auto& log = handles::box_of<handles::LibraryBox>(self.handle).used->log;
    if (!log) return std::nullopt;
    return std::pair(log->error(), log->info());
}

/// A damaged image may have any bytes in a name; they are shown as escapes.
nb::list kernel_names(const Library& self) {
    std::vector<std::string> known;
    {
        handles::LibraryHandle library = self.handle;
        GilReleased unlocked;
        known = handles::kernel_names(library);
    }
    nb::list names;
    for (const std::string& name : known)
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

std::shared_ptr<const void> as_origin(nb::object object) {
    if (!object.is_valid() || object.is_none()) return nullptr;
    PyObject* kept = object.ptr();
    std::shared_ptr<const void> origin(kept, [](const void* pointer) {
        if (!handles::driver_is_ours()) return; // the interpreter may be gone
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer)));
        PyGILState_Release(state);
    });
    object.release();
    return origin;
}

nb::object object_of(const std::shared_ptr<const void>& origin) {
    if (!origin) return nb::none();
    return nb::borrow(static_cast<PyObject*>(const_cast<void*>(origin.get())));
}

void bind_library(nb::module_& scope) {
    nb::class_<Library>(scope, "Library", nb::type_slots(library_slots),
                        "A loaded image; ObjectCode is its public face.")
        .def_static("load", load, nb::arg("image"), nb::arg("subject"), nb::arg("jit_options"),
                    nb::arg("preserve_binary"),
                    nb::sig("def load(image: object, subject: str, jit_options: "
                            "Sequence[tuple[int, int]], preserve_binary: bool) -> Library"),
                    "Loads an image: bytes, or a file that is mapped, by its descriptor.")
        .def("find_kernel", find_kernel, nb::arg("name"), nb::arg("origin").none(),
             nb::sig("def find_kernel(self, name: str, origin: object) -> Kernel | None"),
             "The kernel of a name; `origin` is what pickles it.")
        .def("find_global", find_global, nb::arg("name"),
             nb::sig("def find_global(self, name: str) -> Buffer | None"))
        .def("module", module, "The CUmodule of the current context as an int.")
        .def("kernel_names", kernel_names, nb::sig("def kernel_names(self) -> list[str]"))
        .def("log", library_log,
             "What the driver's compiler wrote: (errors, information); None when it had no part.")
        .def_prop_ro("handle", [](const Library& self) {
            return reinterpret_cast<std::uintptr_t>(*self.handle);
        });
}

} // namespace cudamod::python
