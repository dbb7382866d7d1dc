#include "emulator/shared_area.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudamod::emulator {

namespace {

constexpr std::uint64_t kMagic = 0x6c6f6f70646f6d63; // "cmodpool"
constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 512;
constexpr std::size_t kGap = 256; // so that a small overrun hits no neighbour

std::uint64_t align_up(std::uint64_t value, std::size_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

} // namespace

std::shared_ptr<SharedArea> SharedArea::create(std::size_t bytes, int device) {
    const int file = memfd_create("cudamod-emulated-shared-pool", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    std::shared_ptr<SharedArea> area(new SharedArea);
    bytes = align_up(bytes, kPage) + kPage;
    if (ftruncate(file, static_cast<off_t>(bytes)) != 0 || !area->map(file, bytes, device < 0)) {
        ::close(file);
        return nullptr;
    }
    std::random_device random;
    SharedHeader header;
    header.magic = kMagic;
    for (std::uint64_t& part : header.pool)
        part = std::uint64_t{random()} << 32 | random();
    header.bytes = bytes;
    header.device = device;
    std::memcpy(area->host_, &header, sizeof header);
    area->next_ = kPage;
    return area;
}

std::shared_ptr<SharedArea> SharedArea::open(int file) {
    SharedHeader header;
    struct stat status{};
    if (pread(file, &header, sizeof header, 0) != sizeof header || header.magic != kMagic ||
        fstat(file, &status) != 0 || static_cast<std::uint64_t>(status.st_size) != header.bytes)
        return nullptr;
    const int kept = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (kept < 0) return nullptr;
    std::shared_ptr<SharedArea> area(new SharedArea);
    if (!area->map(kept, header.bytes, header.device < 0)) {
        ::close(kept);
        return nullptr;
    }
    return area;
}

bool SharedArea::map(int file, std::size_t bytes, bool on_host) {
    const auto reserve = [bytes](int rights, int flags, int behind) {
        void* memory = mmap(nullptr, bytes, rights, flags | MAP_NORESERVE, behind, 0);
        return memory == MAP_FAILED ? nullptr : memory;
    };
    void* seen = reserve(PROT_READ | PROT_WRITE, MAP_SHARED, file);
    if (!seen) return false;
    madvise(seen, bytes, MADV_DONTDUMP);
    void* addresses = on_host ? seen : reserve(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!addresses) {
        munmap(seen, bytes);
        return false;
    }
    file_ = file;
    bytes_ = bytes;
    host_ = static_cast<std::byte*>(seen);
    begin_ = reinterpret_cast<std::uintptr_t>(addresses);
    return true;
}

SharedArea::~SharedArea() {
    if (!host_) return;
    if (begin_ != reinterpret_cast<std::uintptr_t>(host_))
        munmap(reinterpret_cast<void*>(static_cast<std::uintptr_t>(begin_)), bytes_);
    munmap(host_, bytes_);
    close(file_);
}

int SharedArea::export_file() const {
    return fcntl(file_, F_DUPFD_CLOEXEC, 0);
}

std::optional<std::uint64_t> SharedArea::take(std::size_t bytes) {
    // From where the last allocation ended, so that addresses come back late; then from the begin.
    for (const std::uint64_t start : {next_, std::uint64_t{kPage}}) {
        std::uint64_t candidate = align_up(start, kAlignment);
        auto next = taken_.lower_bound(candidate);
        if (next != taken_.begin()) {
            const auto before = std::prev(next);
            candidate =
                std::max(candidate, align_up(before->first + before->second + kGap, kAlignment));
        }
        for (; candidate + bytes + kGap <= bytes_; ++next) {
            if (next == taken_.end() || candidate + bytes + kGap <= next->first) {
                taken_.emplace(candidate, bytes);
                next_ = candidate + bytes;
                return candidate;
            }
            candidate = align_up(next->first + next->second + kGap, kAlignment);
        }
    }
    return std::nullopt;
}

void SharedArea::give_back(std::uint64_t offset) {
    const auto taken = taken_.find(offset);
    if (taken == taken_.end()) return;
    const std::uint64_t first = align_up(offset, kPage),
                        last = (offset + taken->second) / kPage * kPage;
    taken_.erase(taken);
    if (first < last) {
        fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                  static_cast<off_t>(last - first));
    }
}

} // namespace cudamod::emulator
