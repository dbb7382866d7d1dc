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

/// What the next public call, or the next launch, has to look at, as bits; 0 nearly always.
extern std::atomic<unsigned> attention;
constexpr unsigned kReportsPending = 1;   // reports, or events of a trace
constexpr unsigned kLaunchesObserved = 2; // for the layer above: somebody watches launches

/// Whether a fault of a kernel is what the status says; the context is dead and answers it for
/// ever.
bool is_fault(CUresult status) noexcept;

void report(CUresult status, const char* call, std::string subject) noexcept;
std::vector<Report> take_reports();

} // namespace cudamod::handles
