#pragma once

#include "emulator/access_map.h"
#include "emulator/api.h"
#include "emulator/written_map.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Device;
class Mark;
struct Pool;
class SharedArea;

enum class MemoryKind { device, pinned, registered, managed };

/// Live memory that kernels can reach: [begin, begin + bytes) in device addresses, seen by the
/// driver at `host`. For pinned, registered and managed memory both are the same address; device
/// memory has no rights at its device address, so a program that dereferences one faults.
struct Allocation {
    std::uint64_t begin = 0;
    std::size_t bytes = 0;
    std::byte* host = nullptr;
    MemoryKind kind = MemoryKind::device;
    bool read_only = false;
    std::uint64_t id = 0; ///< never reused
    Device* device = nullptr;
    std::shared_ptr<Context> context; ///< null for pool memory
    std::shared_ptr<Pool> pool;
    std::shared_ptr<SharedArea> area; ///< memory that processes share
    bool imported = false;            ///< another process's, in `area`
    unsigned flags = 0;               ///< of cuMemHostAlloc or cuMemHostRegister
    std::shared_ptr<void> backing;    ///< of memory that cuMemMap mapped: what `host` lies in
    std::map<int, CUmemAccess_flags> access; ///< of the same: the devices that may
    std::string variable;                    ///< name, when this is a variable of a module
    std::atomic<bool> of_graph{false}; ///< of an allocation node, whose addresses stay reserved
    std::atomic<int> uses{1}; ///< of a node's memory: launches that hold it; 0: not allocated now

    std::shared_ptr<Mark> begun; ///< reached when a stream-ordered allocation takes effect
    std::uint64_t freeing = 0;   ///< the free that a stream is to run; under the driver's lock
    std::unique_ptr<WrittenMap> written; ///< null: nobody watches
    std::unique_ptr<AccessMap> accesses; ///< null until work uses it that is checked
    std::once_flag accesses_made;

    Allocation() = default;
    ~Allocation();
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;

    /// Whether work may touch it now: allocated, in the order of its stream, and not freed.
    bool live() const;

    std::uint64_t end() const { return begin + bytes; }
    std::byte* at(std::uint64_t address) const { return host + (address - begin); }
};

/// All device-accessible memory of the process. Has its own lock, taken after the driver's where
/// both are held; execution of kernels takes this one alone.
class AddressSpace {
  public:
    /// Device memory of uninitialised content; null when the device's memory is exhausted. `used`
    /// and `total` are the device's.
    std::shared_ptr<Allocation> allocate_device(Device& device, std::size_t bytes,
                                                std::size_t alignment = 512,
                                                std::shared_ptr<Mark> begun = nullptr);

    /// Host memory that kernels can reach; null when there is none.
    std::shared_ptr<Allocation> allocate_host(std::size_t bytes, MemoryKind kind,
                                              std::shared_ptr<Mark> begun = nullptr);

    /// Memory of an area that processes share, at an offset of it: taken from the device's where
    /// there is one, or `imported`. Null when the device's memory is exhausted.
    std::shared_ptr<Allocation> share(const std::shared_ptr<SharedArea>& area, std::uint64_t offset,
                                      std::size_t bytes, Device* device, bool imported);

    /// Physical memory that was mapped at reserved addresses.
    void map(const std::shared_ptr<Allocation>& allocation);

    /// Takes bytes of a device for memory without an address, false when it has not as many; and
    /// gives them back.
    bool charge(Device& device, std::size_t bytes);
    void refund(Device& device, std::size_t bytes);

    /// Addresses to map memory at.
    void reserve_addresses(std::uint64_t begin, std::uint64_t end);
    void forget_addresses(std::uint64_t begin);

    /// Makes the caller's host memory reachable; null when a part of it is already.
    std::shared_ptr<Allocation> register_host(void* memory, std::size_t bytes);

    /// The live allocation that holds the address, or null.
    std::shared_ptr<Allocation> find(std::uint64_t address) const;

    /// The live allocation that holds [address, address + bytes), or null.
    std::shared_ptr<Allocation> find(std::uint64_t address, std::size_t bytes) const;

    /// The same, also of graph memory that is not allocated now.
    std::shared_ptr<Allocation> find_reserved(std::uint64_t address) const;

    /// Ends the allocation: its addresses are dead from here on and come back late. What still
    /// reads the memory finds poison, until CUDAMOD_EMULATOR_POISON more bytes were freed. Of graph
    /// memory, one use of it.
    void release(const std::shared_ptr<Allocation>& allocation);

    /// Whether the address lies where device memory is reserved, live or not.
    bool reserved(std::uint64_t address) const;

    /// What is known about an address that names no live memory.
    std::string explain(std::uint64_t address) const;

    std::vector<std::shared_ptr<Allocation>> live() const;

  private:
    struct Range;
    struct Freed {
        std::uint64_t begin, end;
        Device* device; ///< null for host memory
    };

    bool is_device_address(std::uint64_t address) const;
    Range& range_of(Device& device);
    std::optional<std::uint64_t> find_gap(Range& range, std::size_t bytes, std::size_t alignment);
    void insert(const std::shared_ptr<Allocation>& allocation);
    void forget_oldest_freed();

    mutable std::shared_mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<Allocation>> live_; ///< by begin
    std::map<int, std::shared_ptr<Range>> ranges_;              ///< by device ordinal
    std::map<std::uint64_t, std::weak_ptr<SharedArea>> areas_;  ///< of devices' memory, by begin
    std::map<std::uint64_t, std::uint64_t> reserved_;           ///< to map memory at: ends by begin
    std::deque<Freed> freed_;        ///< the latest, to explain a use after free; poisoned
    std::size_t poisoned_bytes_ = 0; ///< of freed_
    std::uint64_t next_id_ = 1;
};

AddressSpace& address_space();

} // namespace cudamod::emulator
