#include "driver/status.h"

#include <cstring>

#include "driver/functions.h"
#include "driver/library.h"
#include "driver/log.h"
#include "driver/table.h"

namespace cudamod::driver {
namespace {

thread_local constinit Missing last_missing{};
thread_local std::exception_ptr last_unopened;

const char* header_name(CUresult status) {
    switch (status) {
#include "driver_status_names.inc"
    default:
        return nullptr;
    }
}

std::string explanation(CUresult status) {
    const char* text = nullptr;
    if (!opened() || table.cuGetErrorString(status, &text) != CUDA_SUCCESS || text == nullptr)
        return {};
    return text;
}

/// The driver's messages without the line that only repeats call and status.
std::string sentences(const std::string& log) {
    std::string text;
    std::string_view rest = log;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.empty() || line.find("Returning ") != line.npos) continue;
        if (!text.empty()) text += "; ";
        text += line;
    }
    return text;
}

std::string compose(const DriverError& error) {
    if (error.needed != 0) {
        std::string text = error.call + " needs a CUDA " + version_text(error.needed) +
                           " driver; this one supports CUDA " + version_text(error.found);
        if (error.needed <= error.found) text += " and lacks it all the same";
        return text;
    }
    std::string text = error.call + ": " + error.name;
    if (!error.detail.empty()) text += ": " + error.detail;
    if (!error.subject.empty()) text += " (" + error.subject + ")";
    if (const std::string said = sentences(error.log); !said.empty())
        text += "; the driver says: " + said;
    return text;
}

} // namespace

DriverError::DriverError(CUresult status, std::string call, std::string subject,
                         std::string compiler_log)
    : status(status), name(status_name(status)), call(std::move(call)), subject(std::move(subject)),
      log(std::move(compiler_log)) {
    std::string said = take_log(status);
    if (!log.empty() && log.back() != '\n' && !said.empty()) log += '\n';
    log += said;
    const Missing missing = std::exchange(last_missing, Missing{});
    if (status == CUDA_ERROR_NOT_FOUND && missing.function != nullptr &&
        this->call == missing.function) {
        needed = missing.needed;
        found = missing.found;
    } else {
        detail = explanation(status);
    }
    message_ = compose(*this);
}

DriverError::DriverError(std::string what, int needed_, int found_)
    : status(CUDA_ERROR_NOT_SUPPORTED), name(status_name(status)), call(std::move(what)),
      needed(needed_), found(found_), message_(compose(*this)) {}

std::string status_name(CUresult status) {
    if (const char* const name = header_name(status)) return name;
    const char* name = nullptr;
    if (opened() && table.cuGetErrorName(status, &name) == CUDA_SUCCESS && name != nullptr)
        return name;
    return "CUresult " + std::to_string(static_cast<int>(status));
}

void raise(CUresult status, const char* call, std::string subject, std::string compiler_log) {
    if (status == CUDA_ERROR_NOT_INITIALIZED && !opened()) {
        if (const auto reason = std::exchange(last_unopened, nullptr))
            std::rethrow_exception(reason);
        open();
    }
    throw DriverError(status, call, std::move(subject), std::move(compiler_log));
}

void note_missing(const Missing& missing) noexcept {
    last_missing = missing;
}

void raise_too_old(std::string what, int needed) {
    throw DriverError(std::move(what), needed, version());
}

void note_unopened(std::exception_ptr reason) noexcept {
    last_unopened = std::move(reason);
}

void raise_missing(const Missing& missing) {
    note_missing(missing);
    raise(CUDA_ERROR_NOT_FOUND, missing.function);
}

} // namespace cudamod::driver
