#include "emulator/logs.h"

#include "emulator/call.h"
#include "emulator/errors.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

struct CUlogsCallbackEntry_st {
    CUlogsCallback function;
    void* data;
};

namespace cudamod::emulator {
namespace {

constexpr std::size_t kKeptLines = 100;

struct Logs {
    std::mutex mutex;
    std::deque<std::string> lines;
    unsigned written = 0; ///< lines ever written: the iterator's unit
    std::vector<std::shared_ptr<CUlogsCallbackEntry_st>> callbacks;
};

Logs& all() {
    static Logs* const logs = new Logs;
    return *logs;
}

thread_local std::vector<std::string> sentences;

} // namespace

void fail(CUresult status, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    logs::say(text);
    throw Failure{status};
}

void logs::say(std::string sentence) {
    sentences.push_back(std::move(sentence));
}

void logs::deliver(const char* call, CUresult status) {
    std::vector<std::string> fresh = std::move(sentences);
    sentences.clear();
    char last[160];
    std::snprintf(last, sizeof last, "Returning %d (%s) from %s", static_cast<int>(status),
                  error_name(status), call);
    fresh.emplace_back(last);

    Logs& logs = all();
    std::unique_lock lock(logs.mutex);
    for (const std::string& line : fresh) {
        logs.lines.push_back(line);
        if (logs.lines.size() > kKeptLines) logs.lines.pop_front();
        ++logs.written;
    }
    const auto callbacks = logs.callbacks;
    lock.unlock();
    for (const auto& callback : callbacks) {
        for (std::string& line : fresh) {
            callback->function(callback->data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
        }
    }
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

/// The kept lines from `*iterator` on (all of them without one), joined.
std::string kept_lines(Logs& logs, CUlogIterator* iterator) {
    const unsigned first = logs.written - static_cast<unsigned>(logs.lines.size());
    const unsigned from = iterator ? std::max(*iterator, first) : first;
    std::string text;
    for (unsigned at = from; at < logs.written; ++at)
        text += logs.lines[at - first] + "\n";
    if (iterator) *iterator = logs.written;
    return text;
}

} // namespace

CUDAMOD_API cuLogsRegisterCallback(CUlogsCallback function, void* data,
                                   CUlogsCallbackHandle* handle) {
    return early_call(
        "cuLogsRegisterCallback",
        [&] {
            if (!function) fail(CUDA_ERROR_INVALID_VALUE, "The callback must not be NULL");
            auto entry =
                std::make_shared<CUlogsCallbackEntry_st>(CUlogsCallbackEntry_st{function, data});
            std::lock_guard lock(all().mutex);
            all().callbacks.push_back(entry);
            if (handle) *handle = entry.get();
        },
        function, data, handle);
}

CUDAMOD_API cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
    return early_call(
        "cuLogsUnregisterCallback",
        [&] {
            std::lock_guard lock(all().mutex);
            const auto gone =
                std::remove_if(all().callbacks.begin(), all().callbacks.end(),
                               [&](const auto& entry) { return entry.get() == handle; });
            if (gone == all().callbacks.end())
                fail(CUDA_ERROR_INVALID_VALUE, "No callback with this handle is registered");
            all().callbacks.erase(gone, all().callbacks.end());
        },
        handle);
}

CUDAMOD_API cuLogsCurrent(CUlogIterator* iterator, unsigned int flags) {
    return early_call(
        "cuLogsCurrent",
        [&] {
            require_pointer(iterator, "the iterator");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            std::lock_guard lock(all().mutex);
            *iterator = all().written;
        },
        iterator, flags);
}

CUDAMOD_API cuLogsDumpToFile(CUlogIterator* iterator, const char* path, unsigned int flags) {
    return early_call(
        "cuLogsDumpToFile",
        [&] {
            require_pointer(path, "the path");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "w"),
                                                                       std::fclose);
            if (!file) fail(CUDA_ERROR_INVALID_VALUE, "Cannot write '%s'", path);
            std::lock_guard lock(all().mutex);
            std::fputs(kept_lines(all(), iterator).c_str(), file.get());
        },
        iterator, path, flags);
}

CUDAMOD_API cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size,
                               unsigned int flags) {
    return early_call(
        "cuLogsDumpToMemory",
        [&] {
            require_pointer(buffer, "the buffer");
            require_pointer(size, "its size");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            if (!*size) fail(CUDA_ERROR_INVALID_VALUE, "The buffer has no room");
            std::lock_guard lock(all().mutex);
            const std::string text = kept_lines(all(), iterator);
            const std::size_t length = std::min(text.size(), *size - 1);
            std::memcpy(buffer, text.data() + (text.size() - length), length);
            buffer[length] = 0;
            *size = length;
        },
        iterator, buffer, size, flags);
}
