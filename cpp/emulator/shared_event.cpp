#include "emulator/shared_event.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace cudamod::emulator {

namespace {

constexpr std::uint64_t kEventMagic = 0x746e657665646f6d; // "modevent"
constexpr auto kFirstPause = std::chrono::microseconds(20);
constexpr auto kLongestPause = std::chrono::microseconds(500);

/// What an exported handle is.
struct ExportedEvent {
    std::uint64_t magic;
    std::uint64_t id[2];
    std::int32_t process;
    std::int32_t file;
};
static_assert(sizeof(ExportedEvent) <= sizeof(CUipcEventHandle));

ExportedEvent exported_event(const CUipcEventHandle& handle) {
    ExportedEvent event;
    std::memcpy(&event, &handle, sizeof event);
    return event;
}

/// Whether a process runs; one that has ended and was not waited for does not.
bool is_alive(int process) {
    const std::string path = "/proc/" + std::to_string(process) + "/stat";
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char text[256];
    const ssize_t size = read(file, text, sizeof text - 1);
    ::close(file);
    if (size <= 0) return false;
    text[size] = 0;
    const char* name_end = std::strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X';
}

} // namespace

struct SharedEvent::Content {
    std::uint64_t magic;
    std::uint64_t id[2]; ///< random
    std::atomic<std::uint64_t> recorded{0};
    std::atomic<std::uint64_t> reached{0};
    std::atomic<std::int32_t> recorder{0}; ///< the process of the latest recording
};

bool SharedEvent::map(int file) {
    void* memory = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return false;
    content_ = static_cast<Content*>(memory);
    file_ = file;
    return true;
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
    const int file = memfd_create("cudamod-emulated-shared-event", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    std::shared_ptr<SharedEvent> event(new SharedEvent);
    if (ftruncate(file, sizeof(Content)) != 0 || !event->map(file)) {
        ::close(file);
        return nullptr;
    }
    Content* content = new (event->content_) Content;
    std::random_device random;
    for (std::uint64_t& part : content->id)
        part = std::uint64_t{random()} << 32 | random();
    content->magic = kEventMagic;
    return event;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const CUipcEventHandle& handle) {
    const ExportedEvent wanted = exported_event(handle);
    if (wanted.magic != kEventMagic || wanted.process <= 0 || wanted.file < 0) return nullptr;
    const std::string path =
        "/proc/" + std::to_string(wanted.process) + "/fd/" + std::to_string(wanted.file);
    // Whatever has the number now: only a regular file is opened, and never for long.
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return nullptr;
    struct stat status{};
    std::shared_ptr<SharedEvent> event(new SharedEvent);
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<std::size_t>(status.st_size) != sizeof(Content) || !event->map(file)) {
        ::close(file);
        return nullptr;
    }
    const bool same = event->content_->magic == kEventMagic &&
                      std::equal(wanted.id, wanted.id + 2, event->content_->id);
    return same ? event : nullptr;
}

SharedEvent::~SharedEvent() {
    if (!content_) return;
    munmap(content_, sizeof(Content));
    ::close(file_);
}

bool SharedEvent::is_own(const CUipcEventHandle& handle) {
    const ExportedEvent event = exported_event(handle);
    return event.magic == kEventMagic && event.process == getpid();
}

CUipcEventHandle SharedEvent::exported() const {
    const ExportedEvent event{kEventMagic,
                              {content_->id[0], content_->id[1]},
                              static_cast<std::int32_t>(getpid()),
                              file_};
    CUipcEventHandle handle{};
    std::memcpy(&handle, &event, sizeof event);
    return handle;
}

std::uint64_t SharedEvent::record() {
    content_->recorder.store(static_cast<std::int32_t>(getpid()));
    return ++content_->recorded;
}

void SharedEvent::reach(std::uint64_t number) {
    std::uint64_t before = content_->reached.load();
    while (before < number && !content_->reached.compare_exchange_weak(before, number)) {
    }
}

std::uint64_t SharedEvent::latest() const {
    return content_->recorded.load();
}

bool SharedEvent::reached(std::uint64_t number) const {
    if (content_->reached.load() >= number) return true;
    const std::int32_t recorder = content_->recorder.load();
    return recorder != getpid() && !is_alive(recorder);
}

void SharedEvent::wait(std::uint64_t number, const std::function<bool()>& stopped) const {
    for (auto pause = kFirstPause; !reached(number) && !stopped();
         pause = std::min(pause * 2, kLongestPause))
        std::this_thread::sleep_for(pause);
}

} // namespace cudamod::emulator
