#include "formats/link_input.h"

#include "python/bindings.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace cudamod::python {

void bind_link_input(nb::module_& module) {
    module.def(
        "damage_of",
        [](const std::string& kind, const nb::bytes& image) {
            return formats::damage_of(kind, formats::as_bytes({image.c_str(), image.size()}));
        },
        nb::arg("kind"), nb::arg("image"), nb::sig("def damage_of(kind: str, image: bytes) -> str"),
        "Why a cubin, object, library, fatbin or NVVM bitcode is not whole; empty when it is.");
}

} // namespace cudamod::python
