#include "python/named_tuple.h"

#include <cstring>
#include <string>
#include <vector>

namespace cudamod::python {

void NamedTuple::define(nb::module_& module, const char* name, const char* meaning,
                        std::initializer_list<Field> fields) {
    std::vector<PyStructSequence_Field> rows;
    for (const Field& field : fields)
        rows.push_back({field.name, field.meaning});
    rows.push_back({nullptr, nullptr});
    // CPython keeps the text of the name.
    const char* full = strdup((std::string("cudamod._core.") + name).c_str());
    PyStructSequence_Desc description{full, meaning, rows.data(), static_cast<int>(fields.size())};
    type_ = PyStructSequence_NewType(&description);
    if (!type_) throw nb::python_error();
    module.attr(name) = nb::handle(reinterpret_cast<PyObject*>(type_));
}

} // namespace cudamod::python
