#include "driver/log.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "driver/functions.h"
#include "driver/table.h"

namespace cudamod::driver {
namespace {

constexpr std::string_view kLastLine = "Returning ";

/// What was said on one thread since its last complete report. Plain memory: it needs no
/// destructor, so the driver may talk while threads and the process end.
struct Messages {
    char text[4096];
    std::size_t size;
    bool complete; ///< the "Returning N (NAME) from CALL" that ends a report has been seen
};

thread_local constinit Messages messages{};

void CUDA_CB keep(void*, CUlogLevel, char* text, std::size_t size) noexcept {
    if (text == nullptr) return;
    std::string_view line(text, strnlen(text, size));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r'))
        line.remove_suffix(1);
    if (messages.complete) messages.size = 0;
    messages.complete = line.find(kLastLine) != line.npos;
    // A report that nobody takes and nothing ends must not grow: the newest lines win.
    if (messages.size + line.size() + 1 > sizeof messages.text) messages.size = 0;
    const std::size_t kept = std::min(line.size(), sizeof messages.text - 1);
    std::memcpy(messages.text + messages.size, line.data(), kept);
    messages.size += kept;
    messages.text[messages.size++] = '\n';
}

/// The status of the report's last line, or -1.
int reported_status(std::string_view text) {
    const std::size_t start = text.rfind(kLastLine);
    if (start == text.npos) return -1;
    int status = -1;
    const std::string_view number = text.substr(start + kLastLine.size());
    std::from_chars(number.data(), number.data() + number.size(), status);
    return status;
}

} // namespace

void register_log_callback(const Opened& driver) noexcept {
    CUresult status = CUDA_SUCCESS;
    void* const entry = find_entry(driver, *find_function("cuLogsRegisterCallback"), status);
    if (entry == nullptr) return;
    CUlogsCallbackHandle never_unregistered = nullptr;
    // A driver that declines gives shorter errors, which is no error itself.
    reinterpret_cast<decltype(&cuLogsRegisterCallback)>(entry)(keep, nullptr, &never_unregistered);
}

std::string take_log(CUresult status) {
    std::string_view text(messages.text, messages.size);
    messages.size = 0;
    messages.complete = false;
    const int reported = reported_status(text);
    if (reported >= 0 && reported != static_cast<int>(status)) return {};
    if (!text.empty()) text.remove_suffix(1);
    return std::string(text);
}

} // namespace cudamod::driver
