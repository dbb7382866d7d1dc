#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace cudamod::python {

namespace nb = nanobind;

/// Builds a value in place; aggregates by braces, since clang before 16 knows no other way.
template <class T, class... Args>
void construct(T* place, Args&&... args) {
    if constexpr (std::is_aggregate_v<T>)
        new (place) T{std::forward<Args>(args)...};
    else
        new (place) T(std::forward<Args>(args)...);
}

/// A new Python object of a bound class with its C++ value inside it, built in one step: nobody
/// ever sees it without a value.
template <class T, class... Args>
nb::object make(Args&&... args) {
    nb::object object = nb::inst_alloc(nb::type<T>());
    construct<T>(nb::inst_ptr<T>(object), std::forward<Args>(args)...);
    nb::inst_mark_ready(object);
    return object;
}

/// The same for a subclass in a `tp_new`.
template <class T, class... Args>
PyObject* make_in(PyTypeObject* type, Args&&... args) {
    nb::object object = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(type)));
    construct<T>(nb::inst_ptr<T>(object), std::forward<Args>(args)...);
    nb::inst_mark_ready(object);
    return object.release().ptr();
}

/// The same for a class method, whose class anybody can replace by any object. Throws TypeError.
template <class T, class... Args>
nb::object make_as(nb::handle type, Args&&... args) {
    auto* base = reinterpret_cast<PyTypeObject*>(nb::type<T>().ptr());
    if (!PyType_Check(type.ptr()) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base)) {
        PyErr_Format(PyExc_TypeError, "%s or a subclass is needed, not %s", base->tp_name,
                     Py_TYPE(type.ptr())->tp_name);
        throw nb::python_error();
    }
    return nb::steal(
        make_in<T>(reinterpret_cast<PyTypeObject*>(type.ptr()), std::forward<Args>(args)...));
}

/// Adds a class method; `function` gets the class that it is called on, for `make_as`.
template <class T, class Function, class... Extra>
void def_class_method(nb::class_<T>& type, const char* name, Function&& function,
                      const Extra&... extra) {
    type.def_static(name, std::forward<Function>(function), extra...);
    nb::object plain = type.attr(name);
    type.attr(name) = nb::steal(PyClassMethod_New(plain.ptr()));
}

/// The C++ value inside an object that `make` made. It follows nanobind's header, which
/// `prove_payload` makes sure of; nb::inst_ptr also knows values elsewhere, and costs a call.
template <class T>
T* payload(PyObject* object) {
    static_assert(alignof(T) <= sizeof(void*));
    constexpr std::size_t kHeader = sizeof(PyObject) + 2 * sizeof(std::uint32_t);
    return std::launder(reinterpret_cast<T*>(reinterpret_cast<char*>(object) + kHeader));
}

/// Throws when nanobind lays its objects out in another way. Called once for each class whose
/// objects are looked into by `payload`, with arguments that make one.
template <class T, class... Args>
void prove_payload(Args&&... args) {
    nb::object object = make<T>(std::forward<Args>(args)...);
    if (payload<T>(object.ptr()) != nb::inst_ptr<T>(object))
        throw std::logic_error("nanobind keeps its values elsewhere than this build expects");
}

/// The C++ value of an object whose type is exactly the bound one, or null: the launch path's test.
template <class T>
T* exactly(PyObject* object, PyTypeObject* type) {
    if (Py_TYPE(object) != type) return nullptr;
    return payload<T>(object);
}

/// The C++ value of an instance of the bound class or of a subclass, or null.
template <class T>
T* instance(PyObject* object) {
    nb::handle h(object);
    return nb::isinstance<T>(h) ? nb::inst_ptr<T>(h) : nullptr;
}

/// The C++ value of the object that a method was called on, for methods that need the object as
/// well: nanobind doesn't check the type of a handle. Throws TypeError for any other object.
template <class T>
T& self_of(nb::handle self) {
    if (T* value = instance<T>(self.ptr())) return *value;
    PyErr_Format(PyExc_TypeError, "a method of %s was called on %s object",
                 reinterpret_cast<PyTypeObject*>(nb::type<T>().ptr())->tp_name,
                 Py_TYPE(self.ptr())->tp_name);
    throw nb::python_error();
}

/// `instance`, with the exact type decided first.
template <class T>
[[gnu::always_inline]] inline T* instance_or_exact(PyObject* object) {
    static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<T>().ptr());
    if (T* exact = exactly<T>(object, type)) return exact;
    return instance<T>(object);
}

/// `tp_new` and `tp_init` of a class that Python code can't instantiate: no half-built object
/// exists, not by
/// `__new__` either. `how` says where its objects come from.
template <const char* const& how>
PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
    const char* dot = std::strrchr(type->tp_name, '.');
    PyErr_Format(PyExc_RuntimeError, "%s objects cannot be instantiated directly. %s",
                 dot ? dot + 1 : type->tp_name, how);
    return nullptr;
}

/// `__reduce__` of a class whose objects belong to this process: without it pickle's oldest
/// protocols write what can't be read again.
inline nb::object refuse_pickling(nb::handle self) {
    PyErr_Format(PyExc_TypeError, "cannot pickle '%s' object: it belongs to this process",
                 Py_TYPE(self.ptr())->tp_name);
    throw nb::python_error();
}

inline int ignore_init(PyObject*, PyObject*, PyObject*) {
    return 0;
}

} // namespace cudamod::python
