#include "python/public_call.h"

#include "driver/status.h"
#include "handles/destruction.h"
#include "python/error.h"
#include "python/host_callback.h"
#include "python/instance.h"
#include "python/tracking.h"

namespace cudamod::python {

bool deliver_reports() {
    // First: the end of an object may postpone that of another to the next public call.
    handles::attention.fetch_and(~handles::kReportsPending, std::memory_order_relaxed);
    const bool ended = handles::end_postponed_boxes();
    std::vector<handles::Report> reports = handles::take_reports();
    if (!ended) handles::attention.fetch_or(handles::kReportsPending, std::memory_order_relaxed);
    deliver_trace_events();
    drop_finished_callbacks();
    for (const handles::Report& report : reports) {
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
