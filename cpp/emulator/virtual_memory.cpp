#include "emulator/virtual_memory.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/objects.h"
#include "emulator/settings.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace cudamod::emulator {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20; // an H200's, minimal and recommended

std::map<std::uint64_t, Reservation>& reservations() {
    static auto* const all = new std::map<std::uint64_t, Reservation>;
    return *all;
}

/// Where the driver sees neighbouring mappings, one behind the other.
struct Alias {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    std::vector<std::shared_ptr<PhysicalMemory>> memory;

    ~Alias() {
        if (host) munmap(host, bytes);
    }
};

using Mappings = std::map<std::uint64_t, Reservation::Mapping>;

std::shared_ptr<Alias> alias_of(Mappings::const_iterator first, Mappings::const_iterator last) {
    auto alias = std::make_shared<Alias>();
    for (auto at = first; at != last; ++at)
        alias->bytes += at->second.bytes;
    void* const place =
        mmap(nullptr, alias->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) fail(CUDA_ERROR_OUT_OF_MEMORY, "The host has no addresses left");
    alias->host = static_cast<std::byte*>(place);
    std::byte* to = alias->host;
    for (auto at = first; at != last; ++at) {
        const auto& [bytes, memory, access] = at->second;
        if (mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, 0) ==
            MAP_FAILED)
            fail(CUDA_ERROR_OUT_OF_MEMORY, "The host cannot map %zu bytes", bytes);
        alias->memory.push_back(memory);
        to += bytes;
    }
    return alias;
}

/// Makes allocations of what can be accessed now, and ends those that are no more.
void settle(Reservation& reservation) {
    std::map<std::uint64_t, std::shared_ptr<Allocation>> now;
    const Mappings& mappings = reservation.mappings;
    for (auto first = mappings.begin(); first != mappings.end();) {
        auto last = std::next(first);
        std::uint64_t end = first->first + first->second.bytes;
        while (last != mappings.end() && last->first == end &&
               last->second.access == first->second.access &&
               &last->second.memory->device == &first->second.memory->device) {
            end += last->second.bytes;
            ++last;
        }
        if (!first->second.access.empty()) {
            const auto before = reservation.allocations.find(first->first);
            const bool kept = before != reservation.allocations.end() &&
                              before->second->end() == end &&
                              before->second->access == first->second.access;
            if (kept) {
                now.insert(*before);
            } else {
                auto made = std::make_shared<Allocation>();
                const auto alias = alias_of(first, last);
                made->begin = first->first;
                made->bytes = end - first->first;
                made->host = alias->host;
                made->device = &first->second.memory->device;
                made->backing = alias;
                made->access = first->second.access;
                now.emplace(made->begin, std::move(made));
            }
        }
        first = last;
    }
    for (const auto& [begin, allocation] : reservation.allocations) {
        const auto kept = now.find(begin);
        if (kept == now.end() || kept->second != allocation) address_space().release(allocation);
    }
    for (const auto& [begin, allocation] : now) {
        if (address_space().find(begin) != allocation) address_space().map(allocation);
    }
    reservation.allocations = std::move(now);
}

void require_size(std::size_t bytes, const char* what) {
    if (!bytes || bytes % kGranularity) {
        fail(CUDA_ERROR_INVALID_VALUE, "%s of %zu bytes is no multiple of %zu", what, bytes,
             kGranularity);
    }
}

Device& device_of(const CUmemAllocationProp* properties) {
    require_pointer(properties, "the properties");
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        fail(CUDA_ERROR_INVALID_VALUE, "Allocation type %d is unknown",
             static_cast<int>(properties->type));
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        fail(CUDA_ERROR_NOT_SUPPORTED, "Memory to map is emulated for devices alone");
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
        fail(CUDA_ERROR_NOT_SUPPORTED, "Memory to map cannot be shared with other processes");
    return device_at(properties->location.id);
}

std::shared_ptr<PhysicalMemory> find_physical(CUmemGenericAllocationHandle handle) {
    auto memory = objects().physical_memory.find(reinterpret_cast<PhysicalMemory*>(handle));
    if (!memory) fail(CUDA_ERROR_INVALID_VALUE, "Memory handle 0x%llx does not exist", handle);
    return memory;
}

/// The reservation that holds all of [address, address + bytes).
Reservation& reservation_of(CUdeviceptr address, std::size_t bytes) {
    auto next = reservations().upper_bound(address);
    if (next == reservations().begin() || address >= std::prev(next)->second.end() ||
        bytes > std::prev(next)->second.end() - address) {
        fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not reserved", bytes, address);
    }
    return std::prev(next)->second;
}

/// The mappings that make up [address, address + bytes) exactly.
std::vector<Mappings::iterator> mappings_of(Reservation& reservation, CUdeviceptr address,
                                            std::size_t bytes) {
    std::vector<Mappings::iterator> all;
    for (CUdeviceptr at = address; at < address + bytes;) {
        const auto found = reservation.mappings.find(at);
        if (found == reservation.mappings.end() || at + found->second.bytes > address + bytes) {
            fail(CUDA_ERROR_INVALID_VALUE,
                 "%zu bytes at 0x%llx are not whole mappings: none begins at 0x%llx, or it is "
                 "longer",
                 bytes, address, at);
        }
        all.push_back(found);
        at += found->second.bytes;
    }
    return all;
}

} // namespace

PhysicalMemory::PhysicalMemory(Device& device, std::size_t bytes) : device(device), bytes(bytes) {
    if (!address_space().charge(device, bytes)) {
        fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked, %zu of %zu free", bytes,
             device.total_bytes - device.used_bytes, device.total_bytes);
    }
    file = memfd_create("cudamod-emulated-physical-memory", MFD_CLOEXEC);
    void* const seen = file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0
                           ? MAP_FAILED
                           : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (seen == MAP_FAILED) {
        if (file >= 0) close(file);
        address_space().refund(device, bytes);
        fail(CUDA_ERROR_OUT_OF_MEMORY, "The host has no %zu bytes", bytes);
    }
    std::memset(seen, 0xff, std::min(bytes, settings().poison_bytes));
    munmap(seen, bytes);
}

PhysicalMemory::~PhysicalMemory() {
    close(file);
    address_space().refund(device, bytes);
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuMemGetAllocationGranularity(size_t* granularity,
                                          const CUmemAllocationProp* properties,
                                          CUmemAllocationGranularity_flags option) {
    return locked_call(
        "cuMemGetAllocationGranularity",
        [&] {
            require_pointer(granularity, "the granularity");
            device_of(properties);
            *granularity = kGranularity;
        },
        granularity, properties, static_cast<int>(option));
}

CUDAMOD_API cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
    return locked_call(
        "cuMemCreate",
        [&] {
            require_pointer(handle, "the handle");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %llu", flags);
            Device& device = device_of(properties);
            require_size(bytes, "Memory");
            auto memory = std::make_shared<PhysicalMemory>(device, bytes);
            memory->properties = *properties;
            memory->handle = objects().physical_memory.insert(memory);
            *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory->handle);
        },
        handle, bytes, properties, flags);
}

CUDAMOD_API cuMemRelease(CUmemGenericAllocationHandle handle) {
    return locked_call(
        "cuMemRelease",
        [&] {
            const auto memory = find_physical(handle);
            if (--memory->references == 0) objects().physical_memory.erase(memory->handle);
        },
        handle);
}

CUDAMOD_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                   CUmemGenericAllocationHandle handle) {
    return locked_call(
        "cuMemGetAllocationPropertiesFromHandle",
        [&] {
            require_pointer(properties, "the properties");
            *properties = find_physical(handle)->properties;
        },
        static_cast<const void*>(properties), handle);
}

CUDAMOD_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    return locked_call(
        "cuMemRetainAllocationHandle",
        [&] {
            require_pointer(handle, "the handle");
            const auto at = reinterpret_cast<std::uintptr_t>(address);
            Reservation& reservation = reservation_of(at, 1);
            auto mapping = reservation.mappings.upper_bound(at);
            if (mapping == reservation.mappings.begin() ||
                at >= std::prev(mapping)->first + std::prev(mapping)->second.bytes)
                fail(CUDA_ERROR_INVALID_VALUE, "Nothing is mapped at %p", address);
            const auto& memory = std::prev(mapping)->second.memory;
            if (memory->references++ == 0)
                memory->handle = objects().physical_memory.insert(memory);
            *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory->handle);
        },
        handle, address);
}

CUDAMOD_API cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                                CUdeviceptr wanted, unsigned long long flags) {
    return locked_call(
        "cuMemAddressReserve",
        [&] {
            require_pointer(address, "the address");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %llu", flags);
            require_size(bytes, "A reservation");
            if (alignment & (alignment - 1))
                fail(CUDA_ERROR_INVALID_VALUE, "Alignment %zu is no power of 2", alignment);
            const std::size_t unit = std::max(alignment, kGranularity);
            Reservation made;
            made.bytes = bytes;
            made.address_bytes = bytes + unit;
            // The address that is wanted is a hint.
            made.addresses = made.address_bytes < bytes
                                 ? MAP_FAILED
                                 : mmap(nullptr, made.address_bytes, PROT_NONE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (made.addresses == MAP_FAILED)
                fail(CUDA_ERROR_OUT_OF_MEMORY, "There are no %zu bytes of addresses", bytes);
            const auto first = reinterpret_cast<std::uintptr_t>(made.addresses);
            made.begin = (first + unit - 1) / unit * unit;
            *address = made.begin;
            address_space().reserve_addresses(made.begin, made.end());
            reservations().emplace(made.begin, std::move(made));
        },
        address, bytes, alignment, wanted, flags);
}

CUDAMOD_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return locked_call(
        "cuMemAddressFree",
        [&] {
            Reservation& reservation = reservation_of(address, bytes);
            if (reservation.begin != address || reservation.bytes != bytes) {
                fail(CUDA_ERROR_INVALID_VALUE,
                     "%zu bytes at 0x%llx are only a part of what was reserved", bytes, address);
            }
            if (!reservation.mappings.empty())
                fail(CUDA_ERROR_INVALID_VALUE, "Memory is mapped at 0x%llx",
                     static_cast<CUdeviceptr>(reservation.mappings.begin()->first));
            address_space().forget_addresses(address);
            munmap(reservation.addresses, reservation.address_bytes);
            reservations().erase(address);
        },
        address, bytes);
}

CUDAMOD_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return locked_call(
        "cuMemMap",
        [&] {
            if (flags || offset)
                fail(CUDA_ERROR_INVALID_VALUE, "Flags and offset must be 0, not %llu and %zu",
                     flags, offset);
            const auto memory = find_physical(handle);
            require_size(bytes, "A mapping");
            Reservation& reservation = reservation_of(address, bytes);
            if (address % kGranularity)
                fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is no multiple of %zu", address,
                     kGranularity);
            if (bytes != memory->bytes)
                fail(CUDA_ERROR_INVALID_VALUE, "%zu of the memory's %zu bytes cannot be mapped",
                     bytes, memory->bytes);
            const auto next = reservation.mappings.lower_bound(address);
            const bool after = next != reservation.mappings.end() && next->first < address + bytes;
            const bool before = next != reservation.mappings.begin() &&
                                std::prev(next)->first + std::prev(next)->second.bytes > address;
            if (after || before)
                fail(CUDA_ERROR_INVALID_VALUE, "Memory is mapped there already: 0x%llx", address);
            reservation.mappings[address] = {bytes, memory, {}};
        },
        address, bytes, offset, handle, flags);
}

CUDAMOD_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
    return locked_call(
        "cuMemUnmap",
        [&] {
            require_size(bytes, "A mapping");
            Reservation& reservation = reservation_of(address, bytes);
            for (const auto& mapping : mappings_of(reservation, address, bytes))
                reservation.mappings.erase(mapping);
            settle(reservation);
        },
        address, bytes);
}

CUDAMOD_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                           size_t count) {
    return locked_call(
        "cuMemSetAccess",
        [&] {
            require_pointer(access, "the access");
            require_size(bytes, "A mapping");
            Reservation& reservation = reservation_of(address, bytes);
            const auto mappings = mappings_of(reservation, address, bytes);
            for (std::size_t n = 0; n < count; ++n) {
                if (access[n].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                    fail(CUDA_ERROR_NOT_SUPPORTED, "Access of location type %d cannot be set",
                         static_cast<int>(access[n].location.type));
                device_at(access[n].location.id);
                if (access[n].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
                    access[n].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
                    access[n].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                    fail(CUDA_ERROR_INVALID_VALUE, "Access %d is unknown",
                         static_cast<int>(access[n].flags));
            }
            for (const auto& mapping : mappings) {
                auto& own = mapping->second.access;
                for (std::size_t n = 0; n < count; ++n) {
                    if (access[n].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
                        own.erase(access[n].location.id);
                    else
                        own[access[n].location.id] = access[n].flags;
                }
            }
            settle(reservation);
        },
        address, bytes, access, count);
}

CUDAMOD_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                           CUdeviceptr address) {
    return locked_call(
        "cuMemGetAccess",
        [&] {
            require_pointer(flags, "the flags");
            require_pointer(location, "the location");
            if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
                fail(CUDA_ERROR_INVALID_VALUE, "The location is no device");
            device_at(location->id);
            Reservation& reservation = reservation_of(address, 1);
            const auto next = reservation.mappings.upper_bound(address);
            if (next == reservation.mappings.begin() ||
                address >= std::prev(next)->first + std::prev(next)->second.bytes)
                fail(CUDA_ERROR_INVALID_VALUE, "Nothing is mapped at 0x%llx", address);
            const auto& access = std::prev(next)->second.access;
            const auto found = access.find(location->id);
            *flags = found == access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
        },
        flags, location, address);
}
