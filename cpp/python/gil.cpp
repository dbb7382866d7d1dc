#include "python/gil.h"

#include "driver/environment.h"
#include "python/text.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

namespace cudamod::python {

namespace {

std::optional<GilManner> manner_of_name(const std::string& name) {
    if (name == "release") return GilManner::Release;
    if (name == "hold") return GilManner::Hold;
    if (name == "auto") return GilManner::Auto;
    return std::nullopt;
}

} // namespace

GilManner default_gil_manner() {
    static const GilManner manner = [] {
        std::optional<std::string> text = driver::read(driver::kGilVariable);
        if (!text) return GilManner::Release;
        if (auto known = manner_of_name(*text)) return *known;
        throw nb::value_error(
            ("CUDAMOD_GIL must be release, auto or hold, not '" + *text + "'").c_str());
    }();
    return manner;
}

GilManner gil_manner(nb::handle name) {
    if (name.is_none()) return default_gil_manner();
    if (PyUnicode_Check(name.ptr()))
        if (auto known = manner_of_name(utf8_of(name.ptr()))) return *known;
    PyErr_Format(PyExc_ValueError, "gil must be 'release', 'auto', 'hold' or None, not %R",
                 name.ptr());
    throw nb::python_error();
}

const char* name_of(GilManner manner) {
    return manner == GilManner::Hold ? "hold" : manner == GilManner::Auto ? "auto" : "release";
}

} // namespace cudamod::python
