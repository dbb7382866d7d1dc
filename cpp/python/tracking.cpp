#include "python/tracking.h"

#include "driver/environment.h"
#include "driver/library.h"
#include "handles/tracking.h"
#include "python/bindings.h"
#include "python/gil_released.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace nb = nanobind;

namespace cudamod::python {

namespace {

nb::ft_mutex target_mutex;
PyObject* target = nullptr; // who traces: called with (created, kind, value, serial, site)

bool tracking_flag(const driver::Variable& variable) {
    std::optional<std::string> text = driver::read(variable);
    if (!text || *text == "0") return false;
    if (*text == "1") return true;
    throw nb::import_error(
        (std::string(variable.name) + " must be " + variable.values + ", not '" + *text + "'")
            .c_str());
}

bool of_this_package(nb::handle frame) {
    nb::object name = nb::getattr(frame, "f_globals").attr("get")("__name__");
    if (!nb::isinstance<nb::str>(name)) return false;
    std::string text = nb::cast<std::string>(name);
    return text == "cudamod" || std::string_view(text).starts_with("cudamod.");
}

std::string site_of_caller() {
    PyObject* current = reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get()));
    nb::object frame = current ? nb::steal(current) : nb::none();
    while (!frame.is_none() && of_this_package(frame))
        frame = nb::getattr(frame, "f_back");
    if (frame.is_none()) return {};
    nb::object file = nb::getattr(nb::getattr(frame, "f_code"), "co_filename");
    return nb::cast<std::string>(nb::str("{}:{}").format(file, nb::getattr(frame, "f_lineno")));
}

nb::object site_or_none(const std::string& site) {
    return site.empty() ? nb::none() : nb::cast(site);
}

const char* lifetime_name(handles::Lifetime lifetime) {
    switch (lifetime) {
    case handles::Lifetime::Borrowed:
        return "borrowed";
    case handles::Lifetime::Process:
        return "process";
    case handles::Lifetime::Internal:
        return "internal";
    default:
        return "owned";
    }
}

nb::list live() {
    nb::list found;
    for (const handles::Live& box : handles::live()) {
        nb::list dependencies;
        for (const handles::Dependency& other : box.dependencies)
            dependencies.append(nb::make_tuple(other.kind, other.value));
        found.append(nb::make_tuple(box.kind, box.value, box.serial, box.references, box.age,
                                    lifetime_name(box.lifetime), nb::tuple(dependencies),
                                    site_or_none(box.site)));
    }
    return found;
}

void set_trace(nb::object callable) {
    deliver_trace_events(); // to whom they were promised
    bool on = !callable.is_none();
    PyObject* before = on ? callable.release().ptr() : nullptr;
    {
        nb::ft_lock_guard lock(target_mutex);
        std::swap(before, target);
    }
    Py_XDECREF(before);
    handles::trace(on);
    if (!on) handles::take_trace_events(); // of other threads, since the line above
}

/// Who traces; by CUDAMOD_TRACE, what prints.
nb::object tracer() {
    {
        nb::ft_lock_guard lock(target_mutex);
        if (target) return nb::borrow(target);
    }
    return nb::module_::import_("cudamod.handles").attr("_print_event");
}

/// Runs after the interpreter has taken everything apart: what is alive now, nobody let go.
void report_leaks() {
    if (!driver::opened_here()) return;
    std::size_t count = 0;
    for (const handles::Live& box : handles::live()) {
        if (box.lifetime != handles::Lifetime::Owned) continue;
        if (!count++) std::fputs("cudamod: handles that were never released:\n", stderr);
        std::fprintf(stderr, "  %s 0x%llx, %ld reference%s%s%s\n", box.kind,
                     static_cast<unsigned long long>(box.value), box.references,
                     box.references == 1 ? "" : "s", box.site.empty() ? "" : ", made at ",
                     box.site.c_str());
    }
}

} // namespace

std::string creation_site() {
    if (!Py_IsInitialized() || finalizing()) return {};
    nb::gil_scoped_acquire locked;
    nb::error_scope pending;
    try {
        return site_of_caller();
    } catch (nb::python_error&) {
        return {}; // such as a file name that is no text
    }
}

void deliver_trace_events() noexcept {
    for (const handles::TraceEvent& event : handles::take_trace_events()) {
        nb::object callable;
        try {
            callable = tracer();
            callable(event.created, event.kind, event.value, event.serial,
                     site_or_none(event.site));
        } catch (nb::python_error& error) {
            error.restore();
            PyErr_WriteUnraisable(callable.ptr());
        }
    }
}

void bind_tracking(nb::module_& module) {
    handles::set_creation_site(creation_site);
    if (tracking_flag(driver::kTraceVariable))
        handles::trace(true); // printed, until somebody asks for it
    if (tracking_flag(driver::kLeakCheckVariable)) {
        handles::note_sites(true);
        Py_AtExit(report_leaks);
    }
    module.def("live_handles", live,
               nb::sig("def live_handles() -> list[tuple[str, int, int, int, int, str, "
                       "tuple[tuple[str, int], ...], str | None]]"),
               "Kind, value, serial, references, age in ns, lifetime, dependencies and site of "
               "every live handle.");
    module.def(
        "set_trace", set_trace, nb::arg("target").none(),
        nb::sig("def set_trace(target: "
                "collections.abc.Callable[[bool, str, int, int, str | None], object] | None) "
                "-> None"),
        "Calls the target with (created, kind, value, serial, site) for every handle from "
        "now on.");
}

} // namespace cudamod::python
