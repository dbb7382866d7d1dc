#include "driver/library.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

#include <cuda.h>

#include "driver/environment.h"
#include "driver/functions.h"
#include "driver/log.h"
#include "driver/search.h"
#include "driver/status.h"
#include "driver/table.h"

namespace cudamod::driver {
namespace {

std::mutex selection_mutex; // guards `selected` and the opening
std::string selected;
std::atomic<const Opened*> current{nullptr};

std::string choice_in_force() {
    if (!selected.empty()) return selected;
    return read(kDriverVariable).value_or("auto");
}

std::string not_found_message(const std::string& choice, const std::vector<Attempt>& searched) {
    std::string message = "no usable CUDA driver (choice '" + choice + "'). Searched:";
    for (const Attempt& attempt : searched)
        message += "\n  " + attempt.where + ": " + attempt.reason;
    message += "\nWithout an NVIDIA GPU, choose the emulated driver: set ";
    message += kDriverVariable.name;
    message += "=emulated, or call cudamod.driver.use('emulated') before the first driver call.";
    return message;
}

} // namespace

DriverNotFound::DriverNotFound(std::string choice, std::vector<Attempt> searched)
    : choice_(std::move(choice)), searched_(std::move(searched)),
      message_(not_found_message(choice_, searched_)) {}

void select(std::string choice) {
    if (choice.empty())
        throw SelectionError("the driver must be 'auto', 'emulated' or a path, not ''");
    const std::lock_guard lock(selection_mutex);
    if (const Opened* driver = current.load(std::memory_order_acquire)) {
        if (driver->choice == choice) return;
        throw SelectionError("cannot use driver '" + choice + "': '" + driver->choice + "' (" +
                             driver->path + ") is open already; choose before the first call");
    }
    selected = std::move(choice);
}

std::string selection() {
    const std::lock_guard lock(selection_mutex);
    return choice_in_force();
}

const Opened& open() {
    if (const Opened* driver = current.load(std::memory_order_acquire)) return *driver;
    const std::lock_guard lock(selection_mutex);
    if (const Opened* driver = current.load(std::memory_order_acquire)) return *driver;
    const std::string choice = choice_in_force();
    std::vector<Attempt> rejected;
    for (const std::string& place : places(choice)) {
        Attempt attempt{place, {}};
        if (std::optional<Candidate> candidate = probe(place, attempt.reason)) {
            // Never freed: the driver stays open for the life of the process.
            const auto* driver = new Opened{choice,
                                            std::move(candidate->path),
                                            candidate->version,
                                            std::move(rejected),
                                            candidate->handle,
                                            getpid()};
            register_log_callback(*driver);
            current.store(driver, std::memory_order_release);
            return *driver;
        }
        rejected.push_back(std::move(attempt));
    }
    throw DriverNotFound(choice, std::move(rejected));
}

bool opened() noexcept {
    return current.load(std::memory_order_acquire) != nullptr;
}

bool opened_here() noexcept {
    const Opened* const driver = current.load(std::memory_order_acquire);
    return driver != nullptr && driver->process == getpid();
}

int version() {
    return open().version;
}

bool has(std::size_t slot) {
    CUresult status = CUDA_SUCCESS;
    if (find_entry(open(), slot, status)) return true;
    check(status, "cuGetProcAddress", functions()[slot].name);
    return false;
}

bool has(std::string_view name) {
    const std::optional<std::size_t> slot = find_function(name);
    return slot && has(*slot);
}

void* find_entry(const Opened& driver, std::size_t slot, CUresult& status) noexcept {
    status = CUDA_SUCCESS;
    const Function& function = functions()[slot];
    const auto get_entry =
        reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(driver.handle, kGetEntryName));
    // Versions of one type may still differ in what they do; linking would bind the exported name.
    void* const linked = dlsym(driver.handle, function.exported);
    void* newest = nullptr;
    for (const int version : function.versions) {
        // The driver would answer a newer request with an older function of another type.
        if (version == 0 || version > driver.version) continue;
        void* entry = nullptr;
        CUdriverProcAddressQueryResult found{};
        const CUresult answer = get_entry(function.looked_up_as, &entry, version,
                                          CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
        if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_FOUND &&
            answer != CUDA_ERROR_INVALID_VALUE)
            status = answer;
        if (answer != CUDA_SUCCESS || found != CU_GET_PROC_ADDRESS_SUCCESS || entry == nullptr)
            continue;
        if (entry == linked) return entry;
        if (newest == nullptr) newest = entry;
    }
    return newest;
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace cudamod::driver
