#include "handles/image_memory.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace cudamod::handles {

namespace {

/// The longest header that a driver reads before it knows what an image is.
constexpr std::size_t kHeader = 64;

[[noreturn]] void fail(int code, const char* what) {
    throw std::system_error(code, std::generic_category(), what);
}

struct stat about(int file) {
    struct stat status{};
    if (fstat(file, &status) != 0) fail(errno, "fstat");
    return status;
}

bool same(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

} // namespace

std::shared_ptr<const ImageMemory> ImageMemory::copy_of(std::span<const char> bytes) {
    std::shared_ptr<ImageMemory> memory(new ImageMemory);
    memory->copy_.reserve(bytes.size() + kHeader);
    memory->copy_.append(bytes.data(), bytes.size()).append(kHeader, '\0');
    memory->bytes_ = {memory->copy_.data(), bytes.size()};
    return memory;
}

std::shared_ptr<const ImageMemory> ImageMemory::map(int file) {
    const struct stat before = about(file);
    if (S_ISDIR(before.st_mode)) fail(EISDIR, "mmap");
    if (!S_ISREG(before.st_mode)) fail(ENODEV, "mmap");
    const auto size = static_cast<std::size_t>(before.st_size);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::shared_ptr<ImageMemory> memory(new ImageMemory);
    // Room of zeros first, then the file over its beginning: what follows the file's last byte is
    // the rest of its page, which is zeros, and then a page of ours.
    const std::size_t room = (size + page - 1) / page * page + page;
    void* at = mmap(nullptr, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail(errno, "mmap");
    memory->mapping_ = at;
    memory->mapped_bytes_ = room;
    if (size && mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        fail(errno, "mmap");
    const struct stat after = about(file);
    if (after.st_size != before.st_size || !same(after.st_mtim, before.st_mtim))
        fail(EBUSY, "mmap");
    memory->bytes_ = {static_cast<const char*>(at), size};
    return memory;
}

ImageMemory::~ImageMemory() {
    if (mapping_) munmap(mapping_, mapped_bytes_);
}

} // namespace cudamod::handles
