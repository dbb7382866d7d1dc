#include "handles/report.h"

#include <mutex>
#include <utility>

namespace cudamod::handles {

std::atomic<unsigned> attention{0};

namespace {

// Beyond this a context that has died would only repeat itself, once for each object that it held.
constexpr std::size_t kMaxReports = 64;

std::mutex& reports_mutex() {
    static auto* instance = new std::mutex;
    return *instance;
}

std::vector<Report>& reports() {
    static auto* instance = new std::vector<Report>;
    return *instance;
}

/// A fault sticks: every later call in the context answers the same, so one report says it all.
bool already_said(CUresult status) {
    if (!is_fault(status)) return false;
    static std::atomic<int> last{CUDA_SUCCESS};
    return last.exchange(status) == status;
}

} // namespace

bool is_fault(CUresult status) noexcept {
    switch (status) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
        return true;
    default:
        return false;
    }
}

void report(CUresult status, const char* call, std::string subject) noexcept {
    if (already_said(status)) return;
    try {
        std::lock_guard lock(reports_mutex());
        if (reports().size() < kMaxReports) reports().push_back({status, call, std::move(subject)});
        attention.fetch_or(kReportsPending, std::memory_order_relaxed);
    } catch (...) {
        // Out of memory while saying that something failed: there is nobody left to tell.
    }
}

std::vector<Report> take_reports() {
    std::lock_guard lock(reports_mutex());
    return std::exchange(reports(), {});
}

} // namespace cudamod::handles
