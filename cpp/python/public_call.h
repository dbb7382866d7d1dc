#pragma once

#include "handles/report.h"

namespace cudamod::python {

/// Hands what destructors had to report to Python's warnings. False when the filters turned a
/// warning into an exception.
bool deliver_reports();

/// The same where there is something, at the start of a public call.
inline bool reports_delivered() {
    return !(handles::attention.load(std::memory_order_relaxed) & handles::kReportsPending) ||
           deliver_reports();
}

/// The same for bound functions: throws.
void begin_public_call();

} // namespace cudamod::python
