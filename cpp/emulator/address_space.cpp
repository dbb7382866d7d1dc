#include "emulator/address_space.h"

#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/settings.h"
#include "emulator/shared_area.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace cudamod::emulator {
namespace {

// Fresh memory reads as NaN, -1 or an impossible address.
constexpr int kPoison = 0xff;

// The room between two allocations, so that a small overrun hits none.
constexpr std::size_t kGap = 256;

// Addresses are this many times scarcer than memory, so that they come back late.
constexpr std::size_t kAddressesPerByte = 4;

constexpr std::size_t kLeastRange = std::size_t{1} << 28;
constexpr std::size_t kKeptFreed = 4096;
constexpr std::size_t kPage = 4096;

std::uint64_t align_up(std::uint64_t value, std::size_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

std::uint64_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

void* reserve(std::size_t bytes, int rights, int flags, int file) {
    void* memory = mmap(nullptr, bytes, rights, flags | MAP_NORESERVE, file, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

} // namespace

/// One device's addresses: no rights at `begin`, the same pages readable and writable at `alias`.
struct AddressSpace::Range {
    std::uint64_t begin = 0, end = 0, next = 0;
    std::byte* alias = nullptr;
    int file = -1;

    explicit Range(std::size_t wanted) {
        file = memfd_create("cudamod-emulated-device-memory", MFD_CLOEXEC);
        if (file < 0) return;
        for (std::size_t bytes = align_up(std::max(wanted, kLeastRange), kPage);
             bytes >= kLeastRange; bytes = align_up(bytes / 2, kPage)) {
            if (ftruncate(file, static_cast<off_t>(bytes)) != 0) continue;
            void* dark = reserve(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
            void* seen = dark ? reserve(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file) : nullptr;
            if (seen) {
                madvise(seen, bytes, MADV_DONTDUMP);
                begin = next = number(dark);
                end = begin + bytes;
                alias = static_cast<std::byte*>(seen);
                return;
            }
            if (dark) munmap(dark, bytes);
        }
    }

    /// Gives the pages that lie wholly inside back to the system.
    void discard(std::uint64_t from, std::uint64_t to) const {
        const std::uint64_t first = align_up(from - begin, kPage),
                            last = (to - begin) / kPage * kPage;
        if (first < last) {
            fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                      static_cast<off_t>(last - first));
        }
    }
};

bool Allocation::live() const {
    return uses > 0 && (!begun || begun->reached());
}

Allocation::~Allocation() {
    if (!area && (kind == MemoryKind::pinned || kind == MemoryKind::managed))
        munmap(host, align_up(bytes, kPage));
}

AddressSpace& address_space() {
    static AddressSpace* const space = new AddressSpace;
    return *space;
}

AddressSpace::Range& AddressSpace::range_of(Device& device) {
    auto& range = ranges_[device.ordinal];
    if (!range) range = std::make_shared<Range>(device.total_bytes * kAddressesPerByte);
    return *range;
}

std::optional<std::uint64_t> AddressSpace::find_gap(Range& range, std::size_t bytes,
                                                    std::size_t alignment) {
    for (const std::uint64_t start : {range.next, range.begin}) {
        std::uint64_t candidate = align_up(start, alignment);
        auto next = live_.lower_bound(candidate);
        if (next != live_.begin()) {
            const Allocation& before = *std::prev(next)->second;
            if (before.end() + kGap > candidate)
                candidate = align_up(before.end() + kGap, alignment);
        }
        for (; candidate + bytes + kGap <= range.end; ++next) {
            if (next == live_.end() || candidate + bytes + kGap <= next->first) return candidate;
            candidate = align_up(next->second->end() + kGap, alignment);
        }
    }
    return std::nullopt;
}

void AddressSpace::insert(const std::shared_ptr<Allocation>& allocation) {
    allocation->id = next_id_++;
    live_.emplace(allocation->begin, allocation);
}

std::shared_ptr<Allocation> AddressSpace::allocate_device(Device& device, std::size_t bytes,
                                                          std::size_t alignment,
                                                          std::shared_ptr<Mark> begun) {
    std::unique_lock lock(mutex_);
    if (bytes > device.total_bytes - device.used_bytes) return nullptr;
    Range& range = range_of(device);
    const auto address =
        range.alias ? find_gap(range, bytes, std::max<std::size_t>(alignment, 16)) : std::nullopt;
    if (!address) return nullptr;
    auto allocation = std::make_shared<Allocation>();
    allocation->begin = *address;
    allocation->bytes = bytes;
    allocation->host = range.alias + (*address - range.begin);
    allocation->device = &device;
    allocation->begun = std::move(begun);
    insert(allocation);
    device.used_bytes += bytes;
    range.next = allocation->end();
    lock.unlock();
    std::memset(allocation->host, kPoison, std::min(bytes, settings().poison_bytes));
    return allocation;
}

std::shared_ptr<Allocation> AddressSpace::allocate_host(std::size_t bytes, MemoryKind kind,
                                                        std::shared_ptr<Mark> begun) {
    void* memory = mmap(nullptr, align_up(bytes, kPage), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto allocation = std::make_shared<Allocation>();
    allocation->begin = number(memory);
    allocation->bytes = bytes;
    allocation->host = static_cast<std::byte*>(memory);
    allocation->kind = kind;
    allocation->begun = std::move(begun);
    std::memset(memory, kPoison, std::min(bytes, settings().poison_bytes));
    std::unique_lock lock(mutex_);
    insert(allocation);
    return allocation;
}

std::shared_ptr<Allocation> AddressSpace::share(const std::shared_ptr<SharedArea>& area,
                                                std::uint64_t offset, std::size_t bytes,
                                                Device* device, bool imported) {
    auto allocation = std::make_shared<Allocation>();
    allocation->begin = area->begin() + offset;
    allocation->bytes = bytes;
    allocation->host = area->host() + offset;
    allocation->kind = area->header().device < 0 ? MemoryKind::pinned : MemoryKind::device;
    allocation->device = device;
    allocation->area = area;
    allocation->imported = imported;
    {
        std::unique_lock lock(mutex_);
        if (device && !imported) {
            if (bytes > device->total_bytes - device->used_bytes) return nullptr;
            device->used_bytes += bytes;
        }
        insert(allocation);
        std::erase_if(areas_, [](const auto& entry) { return entry.second.expired(); });
        areas_[area->begin()] = area;
    }
    if (!imported) std::memset(allocation->host, kPoison, std::min(bytes, settings().poison_bytes));
    return allocation;
}

void AddressSpace::map(const std::shared_ptr<Allocation>& allocation) {
    std::unique_lock lock(mutex_);
    insert(allocation);
}

bool AddressSpace::charge(Device& device, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    if (bytes > device.total_bytes - device.used_bytes) return false;
    device.used_bytes += bytes;
    return true;
}

void AddressSpace::refund(Device& device, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    device.used_bytes -= bytes;
}

void AddressSpace::reserve_addresses(std::uint64_t begin, std::uint64_t end) {
    std::unique_lock lock(mutex_);
    reserved_.emplace(begin, end);
}

void AddressSpace::forget_addresses(std::uint64_t begin) {
    std::unique_lock lock(mutex_);
    reserved_.erase(begin);
}

std::shared_ptr<Allocation> AddressSpace::register_host(void* memory, std::size_t bytes) {
    auto allocation = std::make_shared<Allocation>();
    allocation->begin = number(memory);
    allocation->bytes = bytes;
    allocation->host = static_cast<std::byte*>(memory);
    allocation->kind = MemoryKind::registered;
    std::unique_lock lock(mutex_);
    const auto next = live_.lower_bound(allocation->begin);
    if (next != live_.end() && next->first < allocation->end()) return nullptr;
    if (next != live_.begin() && std::prev(next)->second->end() > allocation->begin) return nullptr;
    insert(allocation);
    return allocation;
}

std::shared_ptr<Allocation> AddressSpace::find(std::uint64_t address) const {
    auto allocation = find_reserved(address);
    return allocation && allocation->uses > 0 ? allocation : nullptr;
}

std::shared_ptr<Allocation> AddressSpace::find_reserved(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    const auto next = live_.upper_bound(address);
    if (next == live_.begin()) return nullptr;
    const auto& candidate = std::prev(next)->second;
    return address < candidate->end() ? candidate : nullptr;
}

std::shared_ptr<Allocation> AddressSpace::find(std::uint64_t address, std::size_t bytes) const {
    auto allocation = find(address);
    return allocation && bytes <= allocation->end() - address ? allocation : nullptr;
}

void AddressSpace::release(const std::shared_ptr<Allocation>& allocation) {
    std::unique_lock lock(mutex_);
    if (allocation->uses > 0) --allocation->uses;
    if (allocation->of_graph || !live_.erase(allocation->begin)) return;
    // Memory that processes share is its area's, and gives its pages back at once.
    const bool device =
        allocation->kind == MemoryKind::device && !allocation->area && !allocation->backing;
    freed_.push_back({allocation->begin, allocation->end(), device ? allocation->device : nullptr});
    if (allocation->area && !allocation->imported) {
        if (allocation->device) allocation->device->used_bytes -= allocation->bytes;
        allocation->area->give_back(allocation->begin - allocation->area->begin());
    }
    if (device) {
        allocation->device->used_bytes -= allocation->bytes;
        poisoned_bytes_ += allocation->bytes;
        if (poisoned_bytes_ <= settings().poison_bytes)
            std::memset(allocation->host, kPoison, allocation->bytes);
    }
    while (freed_.size() > kKeptFreed || poisoned_bytes_ > settings().poison_bytes)
        forget_oldest_freed();
}

/// Gives the pages of the memory that was freed first back to the system, those it shared with
/// other freed memory among them.
void AddressSpace::forget_oldest_freed() {
    const Freed freed = freed_.front();
    freed_.pop_front();
    if (!freed.device) return;
    poisoned_bytes_ -= freed.end - freed.begin;
    const Range& range = range_of(*freed.device);
    std::uint64_t from = std::max(range.begin, freed.begin / kPage * kPage),
                  to = std::min<std::uint64_t>(range.end, align_up(freed.end, kPage));
    // Its addresses may be in use again, and its neighbours are.
    const auto next = live_.lower_bound(freed.begin);
    if (next != live_.end()) to = std::min(to, next->first);
    if (next != live_.begin()) from = std::max(from, std::prev(next)->second->end());
    if (from < to) range.discard(from, to);
}

bool AddressSpace::reserved(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    return is_device_address(address);
}

bool AddressSpace::is_device_address(std::uint64_t address) const {
    const bool in_area = std::any_of(areas_.begin(), areas_.end(), [&](const auto& entry) {
        const auto area = entry.second.lock();
        return area && area->header().device >= 0 && address >= area->begin() &&
               address < area->end();
    });
    const auto next = reserved_.upper_bound(address);
    const bool to_map = next != reserved_.begin() && address < std::prev(next)->second;
    return in_area || to_map || std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& entry) {
               return address >= entry.second->begin && address < entry.second->end;
           });
}

std::string AddressSpace::explain(std::uint64_t address) const {
    char text[200];
    if (address < kPage) {
        std::snprintf(text, sizeof text, "0x%llx is a null pointer or close to one",
                      static_cast<unsigned long long>(address));
        return text;
    }
    std::shared_lock lock(mutex_);
    for (auto freed = freed_.rbegin(); freed != freed_.rend(); ++freed) {
        if (address < freed->begin || address >= freed->end) continue;
        std::snprintf(text, sizeof text,
                      "0x%llx lies %llu bytes into memory of %llu bytes at 0x%llx that was freed",
                      static_cast<unsigned long long>(address),
                      static_cast<unsigned long long>(address - freed->begin),
                      static_cast<unsigned long long>(freed->end - freed->begin),
                      static_cast<unsigned long long>(freed->begin));
        return text;
    }
    const auto next = live_.upper_bound(address);
    if (next != live_.begin()) {
        const Allocation& before = *std::prev(next)->second;
        if (address < before.end() + (1 << 20)) {
            std::snprintf(
                text, sizeof text, "0x%llx lies %llu bytes %s memory of %zu bytes at 0x%llx%s",
                static_cast<unsigned long long>(address),
                static_cast<unsigned long long>(address < before.end() ? address - before.begin
                                                                       : address - before.end()),
                address < before.end() ? "into" : "past the end of", before.bytes,
                static_cast<unsigned long long>(before.begin),
                before.uses ? "" : ", which is a graph's and not allocated now");
            return text;
        }
    }
    if (next != live_.end() && next->first - address < (1 << 20)) {
        std::snprintf(text, sizeof text,
                      "0x%llx lies %llu bytes before memory of %zu bytes at 0x%llx",
                      static_cast<unsigned long long>(address),
                      static_cast<unsigned long long>(next->first - address), next->second->bytes,
                      static_cast<unsigned long long>(next->first));
        return text;
    }
    const bool inside = is_device_address(address);
    std::snprintf(text, sizeof text,
                  inside ? "0x%llx is a device address where nothing is allocated"
                         : "0x%llx is no device address (ordinary host memory?)",
                  static_cast<unsigned long long>(address));
    return text;
}

std::vector<std::shared_ptr<Allocation>> AddressSpace::live() const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Allocation>> all;
    for (const auto& [begin, allocation] : live_)
        all.push_back(allocation);
    return all;
}

} // namespace cudamod::emulator
