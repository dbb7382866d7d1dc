#include "emulator/journal.h"

#include "emulator/errors.h"
#include "emulator/process.h"

#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudamod::emulator::journal {
namespace {

constexpr std::size_t kKeptEntries = 1'000'000;

struct Journal {
    std::mutex mutex;
    std::deque<Entry> entries;
    std::uint64_t written = 0;
};

Journal& all() {
    static Journal* const journal = new Journal;
    return *journal;
}

} // namespace

void enable(bool on) {
    set_attention(kJournal, on);
}

void write(const char* call, std::string arguments, CUresult status) {
    const auto thread = static_cast<std::uint64_t>(syscall(SYS_gettid));
    std::lock_guard lock(all().mutex);
    all().entries.push_back({all().written++, thread, call, std::move(arguments), status});
    if (all().entries.size() > kKeptEntries) all().entries.pop_front();
}

void clear() {
    std::lock_guard lock(all().mutex);
    all().entries.clear();
    all().written = 0;
}

std::size_t size() {
    std::lock_guard lock(all().mutex);
    return all().entries.size();
}

bool write_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen(path.c_str(), "w"),
        [](std::FILE* open) { return open ? std::fclose(open) : 0; });
    if (!file) return false;
    std::lock_guard lock(all().mutex);
    for (const Entry& entry : all().entries) {
        std::fprintf(file.get(), "%llu thread %llu %s(%s) = %d %s\n",
                     static_cast<unsigned long long>(entry.index),
                     static_cast<unsigned long long>(entry.thread), entry.call,
                     entry.arguments.c_str(), static_cast<int>(entry.status),
                     error_name(entry.status));
    }
    return true;
}

bool read(std::size_t position, Entry& entry) {
    std::lock_guard lock(all().mutex);
    if (position >= all().entries.size()) return false;
    entry = all().entries[position];
    return true;
}

} // namespace cudamod::emulator::journal
