#include "python/python_half.h"

#include "python/bindings.h"

namespace nb = nanobind;

namespace cudamod::python {

namespace {

nb::object& importer() {
    static auto* instance = new nb::object;
    return *instance;
}

} // namespace

nb::object python_half(const char* module, const char* name) {
    if (!importer().is_valid())
        throw std::runtime_error("cudamod has to be imported before cudamod._core is used");
    return importer()(module).attr(name);
}

void bind_python_half(nb::module_& module) {
    module.def(
        "set_module_importer", [](nb::object function) { importer() = std::move(function); },
        nb::arg("importer"),
        nb::sig("def set_module_importer(importer: Callable[[str], Any]) -> None"));
}

} // namespace cudamod::python
