#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace cudamod::emulator {

struct WorkRecord;

/// An access by one instruction of one piece of work, as a number. 0: none. The low bits say
/// whether it writes, and whether it is strong: atomic, volatile or with an order.
using AccessId = std::uint32_t;
constexpr AccessId kAccessWrites = 1, kAccessStrong = 2;

struct Accessor {
    std::shared_ptr<const WorkRecord> work;
    std::uint32_t instruction = 0; ///< of a kernel: among those that touch memory
    bool writes = false, strong = false;
    std::size_t bytes_of_each = 0; ///< that a thread accesses; 0: no threads
};

AccessId add_access(const Accessor& accessor);

/// Who it was; nothing when it is over for everybody, and was forgotten.
std::optional<Accessor> accessor_of(AccessId id);

/// All accesses so far are over for all work to come.
void forget_accesses();

/// An access of some bytes: which one, by which work, and by which threads of its grid, one after
/// the other.
struct MemoryUse {
    AccessId id = 0;
    const WorkRecord* work = nullptr;
    std::uint64_t thread = 0; ///< the first
    std::size_t bytes_of_each = 0;
};

/// An earlier access that nothing orders before the one that was noted.
struct Conflict {
    AccessId earlier = 0;
    std::optional<std::uint64_t> thread; ///< of its grid, where that is known
    std::uint64_t address = 0;           ///< the first byte of both
};

/// Who accessed each byte of an allocation: the last plain write, and since then every read and
/// strong access that the later ones don't stand for. Neighbours that were always accessed together
/// share an entry.
class AccessMap {
  public:
    AccessMap(std::uint64_t begin, std::size_t bytes);
    ~AccessMap();
    AccessMap(const AccessMap&) = delete;
    AccessMap& operator=(const AccessMap&) = delete;

    /// Notes an access of [address, address + bytes); the first conflict, if any. Two accesses
    /// conflict when one of them writes, not both are strong, and neither work knows the other.
    std::optional<Conflict> note(const MemoryUse& use, std::uint64_t address, std::size_t bytes);

  private:
    struct Cell;
    struct Page;

    Page& page_at(std::size_t index);

    std::uint64_t base_;
    std::size_t count_;
    std::unique_ptr<std::atomic<Page*>[]> pages_;
    std::mutex making_;
};

} // namespace cudamod::emulator
