#include "python/public_call.h"

#include "driver/status.h"
#include "python/error.h"
#include "python/instance.h"

namespace cudamod::python {

bool deliver_reports() {
    for (const handles::Report& report : handles::take_reports()) {
        std::string text = std::string(report.call) + ": " + driver::status_name(report.status) +
                           (report.subject.empty() ? "" : " (" + report.subject + ")");
        if (PyErr_WarnEx(warning_class(), text.c_str(), 1) < 0) return false;
    }
    return true;
}

void begin_public_call() {
    if (!reports_delivered()) throw nb::python_error();
}

} // namespace cudamod::python
