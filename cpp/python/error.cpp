#include "python/error.h"

#include <new>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "handles/report.h"
#include "python/bindings.h"
#include "python/launch_log.h"

namespace nb = nanobind;

namespace cudamod::python {
namespace {

/// Callables that build the exceptions; owned for the life of the process.
PyObject* make_driver_error = nullptr;
PyObject* make_not_found = nullptr;
PyObject* warning = nullptr;

/// Raises what `factory(*arguments)` returns; without a factory, a RuntimeError.
template <class... Arguments>
void set_from(PyObject* factory, const char* message, const Arguments&... arguments) noexcept {
    if (factory == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, message);
        return;
    }
    try {
        const nb::object exception = nb::handle(factory)(arguments...);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    } catch (nb::python_error& failure) {
        failure.restore();
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, message);
    }
}

PyObject* class_of(nb::exception_type type) noexcept {
    switch (type) {
    case nb::exception_type::stop_iteration:
        return PyExc_StopIteration;
    case nb::exception_type::index_error:
        return PyExc_IndexError;
    case nb::exception_type::key_error:
        return PyExc_KeyError;
    case nb::exception_type::value_error:
        return PyExc_ValueError;
    case nb::exception_type::type_error:
        return PyExc_TypeError;
    case nb::exception_type::buffer_error:
        return PyExc_BufferError;
    case nb::exception_type::import_error:
        return PyExc_ImportError;
    case nb::exception_type::attribute_error:
        return PyExc_AttributeError;
    default:
        return PyExc_RuntimeError;
    }
}

} // namespace

PyObject* warning_class() noexcept {
    return warning ? warning : PyExc_RuntimeWarning;
}

void set_python_error(const driver::DriverError& error) noexcept {
    set_from(make_driver_error, error.what(), error.what(), static_cast<int>(error.status),
             error.name, error.call, error.subject, error.log, error.needed, error.found,
             handles::is_fault(error.status) ? launch_log() : nb::tuple());
}

void set_python_error(const driver::DriverNotFound& error) noexcept {
    try {
        nb::list searched;
        for (const driver::Attempt& attempt : error.searched())
            searched.append(nb::make_tuple(attempt.where, attempt.reason));
        set_from(make_not_found, error.what(), error.what(), error.choice(), searched);
    } catch (nb::python_error& failure) {
        failure.restore();
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

void set_python_error(const driver::SelectionError& error) noexcept {
    PyErr_SetString(PyExc_RuntimeError, error.what());
}

void set_python_error() noexcept {
    try {
        throw;
    } catch (const driver::DriverError& error) {
        set_python_error(error);
    } catch (const driver::DriverNotFound& error) {
        set_python_error(error);
    } catch (const driver::SelectionError& error) {
        set_python_error(error);
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const nb::builtin_exception& error) {
        PyErr_SetString(class_of(error.type()), error.what());
    } catch (const std::invalid_argument& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_SystemError, "an unknown C++ exception");
    }
}

void bind_error(nb::module_& module) {
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const driver::DriverError& error) {
            set_python_error(error);
        } catch (const driver::DriverNotFound& error) {
            set_python_error(error);
        } catch (const driver::SelectionError& error) {
            set_python_error(error);
        }
    });
    module.def(
        "set_error_factories",
        [](nb::callable driver_error, nb::callable not_found, nb::type_object warning_type) {
            Py_XSETREF(make_driver_error, driver_error.release().ptr());
            Py_XSETREF(make_not_found, not_found.release().ptr());
            Py_XSETREF(warning, warning_type.release().ptr());
        },
        nb::sig("def set_error_factories(driver_error: typing.Callable[..., BaseException], "
                "not_found: typing.Callable[..., BaseException], warning: type[Warning]) -> None"),
        "Set the callables that build the exceptions of failed driver calls, and the class of "
        "warnings.");
    module.def(
        "raise_status",
        [](int status, const char* call, const std::string& subject) {
            driver::check(static_cast<CUresult>(status), call, subject);
        },
        nb::arg("status"), nb::arg("call"), nb::arg("subject") = "",
        "Raise the exception of a status that this thread got from a driver call; 0 is no error.");
}

} // namespace cudamod::python
