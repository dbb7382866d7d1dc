#pragma once

#include <cuda.h>

#include <atomic>
#include <string>
#include <vector>

namespace cudamod::handles {

/// A failure that nobody could be told of when it happened, since it happened in a destructor.
struct Report {
    CUresult status;
    const char* call;
    std::string subject;
};

/// Something waits for the next public call: reports, or events of a trace.
extern std::atomic<bool> reports_pending;

void report(CUresult status, const char* call, std::string subject) noexcept;
std::vector<Report> take_reports();

} // namespace cudamod::handles
