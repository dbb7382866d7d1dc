#include "python/bindings.h"

#include "formats/contents.h"
#include "formats/mangled_name.h"
#include "python/gil_released.h"
#include "python/instance.h"
#include "python/named_tuple.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace cudamod::python {

namespace {

NamedTuple image_info;

nb::object optional_text(const char* text) {
    return text ? nb::object(nb::str(text)) : nb::none();
}

const char* name_of(formats::ImageKind kind) {
    switch (kind) {
    case formats::ImageKind::Ptx:
        return "ptx";
    case formats::ImageKind::Cubin:
        return "cubin";
    case formats::ImageKind::LtoIr:
        return "ltoir";
    default:
        return "unknown";
    }
}

const char* name_of(formats::Compression compression) {
    switch (compression) {
    case formats::Compression::Lz4:
        return "lz4";
    case formats::Compression::Zstd:
        return "zstd";
    default:
        return nullptr;
    }
}

/// A damaged image may have any bytes in a name; they are shown as escapes.
nb::object text_of_bytes(const std::string& bytes) {
    return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                                          "backslashreplace"));
}

nb::object architecture_of(const formats::CodePart& part) {
    if (part.sm == 0) return nb::none();
    std::string text = part.kind == formats::ImageKind::Cubin ? "sm_" : "compute_";
    text += std::to_string(part.sm);
    if (part.suffix) text += part.suffix;
    return nb::str(text.c_str());
}

nb::object kernels_of(const formats::CodePart& part) {
    if (!part.kernels) return nb::none();
    nb::list names;
    for (const std::string& name : *part.kernels)
        names.append(text_of_bytes(name));
    return nb::tuple(names);
}

nb::list read_image(nb::handle image, const std::string& subject) {
    Py_buffer view;
    if (PyObject_GetBuffer(image.ptr(), &view, PyBUF_SIMPLE) < 0) throw nb::python_error();
    formats::Result<std::vector<formats::CodePart>> parts = formats::Failure{};
    {
        GilReleased unlocked;
        parts = formats::read_contents(
            {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)});
    }
    PyBuffer_Release(&view);
    if (!parts) throw nb::value_error((subject + ": " + parts.reason()).c_str());
    nb::list infos;
    for (const formats::CodePart& part : *parts)
        infos.append(image_info(name_of(part.kind), architecture_of(part), kernels_of(part),
                                part.relocatable, optional_text(name_of(part.compression)),
                                part.member.empty() ? nb::none() : text_of_bytes(part.member),
                                part.size));
    return infos;
}

nb::list find_fatbins(nb::bytes image, const std::string& subject) {
    auto fatbins =
        formats::find_fatbins({static_cast<const std::byte*>(image.data()), image.size()});
    if (!fatbins) throw nb::value_error((subject + ": " + fatbins.reason()).c_str());
    nb::list found;
    for (const formats::EmbeddedFatbin& fatbin : *fatbins)
        found.append(nb::make_tuple(text_of_bytes(fatbin.member),
                                    nb::bytes(fatbin.bytes.data(), fatbin.bytes.size())));
    return found;
}

using Demangled = std::tuple<std::string, std::string, std::string, std::string>;

std::optional<Demangled> demangle(const std::string& name) {
    auto read = formats::read_mangled_name(name);
    if (!read) return std::nullopt;
    return Demangled(read->demangled, read->qualified_name, read->base_name,
                     read->template_arguments);
}

} // namespace

void bind_image(nb::module_& module) {
    image_info.define(
        module, "ImageInfo", "One piece of code for one architecture, as an image says of itself.",
        {{"kind", "'cubin', 'ptx', 'ltoir', or 'unknown'"},
         {"arch", "'sm_90a' of machine code, 'compute_90' of PTX and LTO-IR; None: it doesn't say"},
         {"kernels", "the (mangled) names; None where they can't be read, in LTO-IR"},
         {"relocatable", "whether machine code has to be linked before it can be loaded"},
         {"compression", "'zstd', 'lz4' or None"},
         {"member", "the archive's member that it lies in, or None"},
         {"size", "bytes as stored"}});
    module.def(
        "read_image", read_image, nb::arg("image"), nb::arg("subject"),
        nb::sig("def read_image(image: object, subject: str) -> list[ImageInfo]"),
        "What an image consists of. Opens no driver. Raises ValueError for bytes that are no "
        "image.");
    module.def("find_fatbins", find_fatbins, nb::arg("image"), nb::arg("subject"),
               nb::sig("def find_fatbins(image: bytes, subject: str) -> list[tuple[str, bytes]]"),
               "The fatbins that an object, an executable or an archive embeds, with the archive's "
               "member.\nRaises ValueError for what embeds none.");
    module.def("demangle", demangle, nb::arg("name"),
               nb::sig("def demangle(name: str) -> tuple[str, str, str, str] | None"),
               "Whole text, qualified name, base name and template arguments of a mangled name; "
               "all but the first\nmay be empty. None for a name that isn't mangled.");
}

} // namespace cudamod::python
