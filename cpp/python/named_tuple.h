#pragma once

#include "python/instance.h"

#include <initializer_list>
#include <utility>

namespace cudamod::python {

/// A tuple with named fields, made when the module is: picklable, and without importing
/// `collections`, which would take a third of the time that importing this package may take.
class NamedTuple {
  public:
    struct Field {
        const char* name;
        const char* meaning;
    };

    /// Makes the class and adds it to the module. `name` must live as long as the process.
    void define(nb::module_& module, const char* name, const char* meaning,
                std::initializer_list<Field> fields);

    template <class... Values>
    nb::object operator()(Values&&... values) const {
        nb::object tuple = nb::steal(PyStructSequence_New(type_));
        if (!tuple.is_valid()) throw nb::python_error();
        Py_ssize_t index = 0;
        (PyStructSequence_SetItem(tuple.ptr(), index++,
                                  nb::cast(std::forward<Values>(values)).release().ptr()),
         ...);
        return tuple;
    }

  private:
    PyTypeObject* type_ = nullptr;
};

} // namespace cudamod::python
