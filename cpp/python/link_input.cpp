#include "formats/link_input.h"

#include "formats/definitions.h"
#include "python/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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
    module.def(
        "definitions_of",
        [](const std::string& kind, const nb::bytes& image, int sm) {
            const auto found =
                formats::definitions_of(kind, formats::as_bytes({image.c_str(), image.size()}), sm);
            return nb::make_tuple(found.names, found.whole);
        },
        nb::arg("kind"), nb::arg("image"), nb::arg("sm"),
        nb::sig("def definitions_of(kind: str, image: bytes, sm: int) -> tuple[list[str], bool]"),
        "The names that a linker input defines for sm_`sm` and no other may, and whether its code "
        "can't be linked.");
}

} // namespace cudamod::python
