#include "emulator/written_map.h"

#include "emulator/address_space.h"
#include "emulator/findings.h"
#include "emulator/stream_check.h"

#include <cstring>
#include <sys/mman.h>

namespace cudamod::emulator {

std::unique_ptr<WrittenMap> WrittenMap::make(std::size_t bytes) {
    if (!(findings::checks() & ptx::kCheckUninitialized)) return nullptr;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    return std::unique_ptr<WrittenMap>(new WrittenMap(static_cast<std::uint8_t*>(memory), bytes));
}

WrittenMap::~WrittenMap() {
    munmap(data_, bytes_);
}

void note_written(Allocation* memory, const std::byte* at, std::size_t bytes) {
    note_use(memory, at, bytes, true);
    if (memory && memory->written)
        std::memset(memory->written->data() + (at - memory->host), 1, bytes);
}

void note_copied(Allocation* to_memory, const std::byte* to, Allocation* from_memory,
                 const std::byte* from, std::size_t bytes) {
    note_use(from_memory, from, bytes, false);
    if (!to_memory || !to_memory->written || !from_memory || !from_memory->written) {
        note_written(to_memory, to, bytes);
        return;
    }
    note_use(to_memory, to, bytes, true);
    std::memmove(to_memory->written->data() + (to - to_memory->host),
                 from_memory->written->data() + (from - from_memory->host), bytes);
}

} // namespace cudamod::emulator
