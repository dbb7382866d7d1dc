#include "handles/memory_pool.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/deferred_frees.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace cudamod::handles {

static_assert(offsetof(MemoryPoolBox, raw) == 0);

namespace {

/// A pool without handles that may not be destroyed yet.
struct RetiredPool {
    CUmemoryPool raw;
    int device;
    bool imported;
    std::shared_ptr<PoolEnd> end;

    /// Whether nothing of it is alive. Memory that somebody allocated from it by a call of the
    /// driver is not ours to see, but the driver counts it. A pool that can't be asked waits.
    bool is_unused() {
        RelaxedCapture relaxed; // a question about an event spoils a capture in global mode
        if (!end->frees.done()) return false;
        if (imported) return true;
        cuuint64_t used = 0;
        CUresult status =
            driver::table.cuMemPoolGetAttribute(raw, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
        if (status != CUDA_SUCCESS) driver::take_log(status);
        return status == CUDA_SUCCESS && used == 0;
    }
};

struct RetiredPools {
    std::mutex mutex;
    std::vector<RetiredPool> pools;
    std::map<CUmemoryPool, std::weak_ptr<PoolEnd>> imported;
    std::condition_variable turn_is_over;
    bool turn_is_taken = false;
};

RetiredPools& retired_pools() {
    static auto* instance = new RetiredPools;
    return *instance;
}

/// One thread at a time imports a pool or destroys an imported one: until it is destroyed the
/// driver answers the same pool for each import.
class ImportTurn {
  public:
    /// With `wait` false the turn is not taken from another, or from this thread itself.
    explicit ImportTurn(bool wait) {
        RetiredPools& pools = retired_pools();
        std::optional<InterpreterUnlocked> unlocked;
        if (wait) unlocked.emplace();
        std::unique_lock lock(pools.mutex);
        if (wait) pools.turn_is_over.wait(lock, [&] { return !pools.turn_is_taken; });
        taken_ = !std::exchange(pools.turn_is_taken, true);
    }
    ~ImportTurn() {
        if (!taken_) return;
        {
            std::lock_guard lock(retired_pools().mutex);
            retired_pools().turn_is_taken = false;
        }
        retired_pools().turn_is_over.notify_one();
    }
    ImportTurn(const ImportTurn&) = delete;
    ImportTurn& operator=(const ImportTurn&) = delete;
    explicit operator bool() const { return taken_; }

  private:
    bool taken_ = false;
};

/// Shared with whatever is left of the pool's earlier boxes.
std::shared_ptr<PoolEnd> end_of_import(CUmemoryPool raw) {
    auto fresh = std::make_shared<PoolEnd>();
    std::lock_guard lock(retired_pools().mutex);
    std::erase_if(retired_pools().imported,
                  [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<PoolEnd>& known = retired_pools().imported[raw];
    if (auto end = known.lock()) return end;
    known = fresh;
    return fresh;
}

std::vector<CUmemAccessDesc> descriptors(const std::vector<int>& devices, CUmemAccess_flags flags) {
    std::vector<CUmemAccessDesc> all;
    for (int device : devices) {
        CUmemAccessDesc descriptor{};
        descriptor.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        descriptor.location.id = device;
        descriptor.flags = flags;
        all.push_back(descriptor);
    }
    return all;
}

std::vector<int> devices_except(int excluded) {
    std::vector<int> devices;
    for (int device = 0, count = device_count(); device < count; ++device)
        if (device != excluded) devices.push_back(device);
    return devices;
}

/// A pool to whose memory peers have access can't be destroyed safely (the driver's own bug).
void take_access_from_peers(CUmemoryPool raw, int device) noexcept {
    try {
        auto none = descriptors(devices_except(device), CU_MEM_ACCESS_FLAGS_PROT_NONE);
        if (!none.empty()) driver::table.cuMemPoolSetAccess(raw, none.data(), none.size());
        driver::take_log(CUDA_SUCCESS);
    } catch (...) {
        // Out of memory, or no devices any more; the destruction itself reports what matters.
    }
}

void destroy_pool(const RetiredPool& pool) noexcept {
    destroy("cuMemPoolDestroy", MemoryPoolBox::kKind, value_of(pool.raw), true, [&] {
        if (pool.end->has_peers) take_access_from_peers(pool.raw, pool.device);
        return driver::table.cuMemPoolDestroy(pool.raw);
    });
}

/// What became of a retired pool.
enum class Fate { Destroyed, LeftToAnother, Waits };

Fate try_to_destroy(RetiredPool& pool, bool wait) noexcept {
    std::optional<ImportTurn> turn;
    if (pool.imported) {
        turn.emplace(wait);
        if (!*turn) return Fate::Waits;
        // It was imported again: whoever has the pool now, or retired it, destroys it.
        if (pool.end.use_count() > 1) {
            pool.end.reset();
            return Fate::LeftToAnother;
        }
    }
    if (wait) {
        RelaxedCapture relaxed;
        InterpreterUnlocked unlocked;
        pool.end->frees.wait();
    }
    if (!pool.is_unused()) return Fate::Waits;
    destroy_pool(pool);
    pool.end.reset();
    return Fate::Destroyed;
}

void retire(RetiredPool pool) noexcept {
    try {
        std::lock_guard lock(retired_pools().mutex);
        retired_pools().pools.push_back(std::move(pool));
    } catch (...) {
        // Out of memory: the pool is left to the end of the process.
    }
}

std::string subject(const PoolPlace& place) {
    switch (place.kind) {
    case PoolKind::Device:
        return "memory pool of device " + std::to_string(place.id);
    case PoolKind::Pinned:
        return place.location == CU_MEM_LOCATION_TYPE_HOST
                   ? "pinned memory pool"
                   : "pinned memory pool on NUMA node " + std::to_string(place.id);
    default:
        return "managed memory pool";
    }
}

CUmemAllocationType allocation_type([[maybe_unused]] const PoolPlace& place) {
#if CUDA_VERSION >= 13000
    if (place.kind == PoolKind::Managed) return CU_MEM_ALLOCATION_TYPE_MANAGED;
#endif
    return CU_MEM_ALLOCATION_TYPE_PINNED;
}

CUmemLocation location_of(const PoolPlace& place) {
    CUmemLocation location{};
    location.type = place.location;
    location.id = place.id < 0 ? 0 : place.id;
    return location;
}

MemoryPoolHandle own(CUmemoryPool raw, const PoolPlace& place, bool imported, bool exportable,
                     std::shared_ptr<PoolEnd> end = std::make_shared<PoolEnd>()) {
    auto box = make_box<MemoryPoolBox>(raw, place, true, imported, exportable, std::move(end));
    registry<MemoryPoolBox>().insert(box);
    return alias<MemoryPoolBox>(std::move(box));
}

MemoryPoolHandle import_in_turn(const PoolPlace& place, int file) {
    ImportTurn turn(true);
    CUmemoryPool raw = nullptr;
    auto handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(file));
    driver::check(driver::table.cuMemPoolImportFromShareableHandle(
                      &raw, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  "cuMemPoolImportFromShareableHandle",
                  [&] { return subject(place) + " from file descriptor " + std::to_string(file); });
    auto box = registry<MemoryPoolBox>().find(raw);
    if (box) return alias<MemoryPoolBox>(std::move(box));
    return own(raw, place, true, false, end_of_import(raw));
}

/// At its own place alone can the memory of a pinned pool be reached without this.
void open_to_all_devices(const MemoryPoolHandle& pool) {
    if (box_of<MemoryPoolBox>(pool).place.kind == PoolKind::Pinned)
        set_access(pool, devices_except(-1), {});
}

void raise_release_threshold(CUmemoryPool raw, const PoolPlace& place) {
    cuuint64_t threshold = 0;
    driver::check(
        driver::table.cuMemPoolGetAttribute(raw, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
        "cuMemPoolGetAttribute", [&] { return subject(place); });
    if (threshold) return;
    threshold = ~cuuint64_t{0};
    driver::check(
        driver::table.cuMemPoolSetAttribute(raw, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
        "cuMemPoolSetAttribute", [&] { return subject(place); });
}

CUmemoryPool find_current(const PoolPlace& place) {
    CUmemoryPool raw = nullptr;
    if (place.kind == PoolKind::Device) {
        driver::check(driver::table.cuDeviceGetMemPool(&raw, place.id), "cuDeviceGetMemPool",
                      [&] { return subject(place); });
        return raw;
    }
#if CUDA_VERSION >= 13000
    CUmemLocation location = location_of(place);
    driver::check(driver::table.cuMemGetMemPool(&raw, &location, allocation_type(place)),
                  "cuMemGetMemPool", [&] { return subject(place); });
    return raw;
#else
    driver::raise(CUDA_ERROR_NOT_SUPPORTED, "cuMemGetMemPool",
                  "this build of cudamod is for CUDA 12; give options for a pool of your own");
#endif
}

} // namespace

MemoryPoolBox::~MemoryPoolBox() {
    registry<MemoryPoolBox>().erase_expired(raw);
    if (!owned || !driver_is_ours()) return;
    reclaim_pools(false);
    RetiredPool retired{raw, device(), imported, std::move(end)};
    if (try_to_destroy(retired, false) == Fate::Waits) retire(std::move(retired));
}

MemoryPoolHandle create_pool(const PoolPlace& place, bool exportable, std::size_t max_size) {
    reclaim_pools(false);
    CUmemPoolProps properties{};
    properties.allocType = allocation_type(place);
    properties.handleTypes =
        exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    properties.location = location_of(place);
    properties.maxSize = max_size;
    CUmemoryPool raw = nullptr;
    driver::check(driver::table.cuMemPoolCreate(&raw, &properties), "cuMemPoolCreate",
                  [&] { return subject(place); });
    MemoryPoolHandle pool = own(raw, place, false, exportable);
    open_to_all_devices(pool);
    return pool;
}

MemoryPoolHandle current_pool(const PoolPlace& place) {
    CUmemoryPool raw = find_current(place);
    MemoryPoolHandle pool;
    if (auto known = registry<MemoryPoolBox>().find(raw))
        pool = alias<MemoryPoolBox>(std::move(known));
    else
        pool = alias<MemoryPoolBox>(registry<MemoryPoolBox>().find_or_insert(
            make_box<MemoryPoolBox>(raw, place, false, false, false)));
    raise_release_threshold(raw, place);
    open_to_all_devices(pool);
    return pool;
}

MemoryPoolHandle device_pool(int device) {
    static auto* known = new std::map<int, MemoryPoolHandle>;
    static auto* mutex = new std::mutex;
    {
        std::lock_guard lock(*mutex);
        if (auto it = known->find(device); it != known->end()) return it->second;
    }
    int supported = 0;
    driver::check(driver::table.cuDeviceGetAttribute(
                      &supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device),
                  "cuDeviceGetAttribute", "memory pools supported");
    MemoryPoolHandle pool;
    if (supported) pool = current_pool({PoolKind::Device, CU_MEM_LOCATION_TYPE_DEVICE, device});
    std::lock_guard lock(*mutex);
    return known->try_emplace(device, std::move(pool)).first->second;
}

MemoryPoolHandle import_pool(const PoolPlace& place, int file) {
    reclaim_pools(false);
    MemoryPoolHandle pool = import_in_turn(place, file);
    open_to_all_devices(pool);
    return pool;
}

int export_pool(const MemoryPoolHandle& pool) {
    int file = -1;
    driver::check(driver::table.cuMemPoolExportToShareableHandle(
                      &file, *pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  "cuMemPoolExportToShareableHandle", [&] { return describe_pool(pool); });
    box_of<MemoryPoolBox>(pool).exported = true;
    return file;
}

bool has_access(const MemoryPoolHandle& pool, int device) {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    driver::check(driver::table.cuMemPoolGetAccess(&flags, *pool, &location), "cuMemPoolGetAccess",
                  [&] { return describe_pool(pool) + ", device " + std::to_string(device); });
    return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

void set_access(const MemoryPoolHandle& pool, const std::vector<int>& given,
                const std::vector<int>& taken) {
    auto wanted = descriptors(given, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    for (const CUmemAccessDesc& none : descriptors(taken, CU_MEM_ACCESS_FLAGS_PROT_NONE))
        wanted.push_back(none);
    if (wanted.empty()) return;
    if (!given.empty()) box_of<MemoryPoolBox>(pool).end->has_peers = true;
    driver::check(driver::table.cuMemPoolSetAccess(*pool, wanted.data(), wanted.size()),
                  "cuMemPoolSetAccess", [&] { return describe_pool(pool); });
    // Of a pool of the host the driver remarks on what it was not asked for.
    driver::take_log(CUDA_SUCCESS);
}

std::size_t reclaim_pools(bool wait) noexcept {
    free_deferred();
    std::vector<RetiredPool> pools;
    {
        std::lock_guard lock(retired_pools().mutex);
        pools.swap(retired_pools().pools);
    }
    std::size_t destroyed = 0;
    for (RetiredPool& pool : pools) {
        const Fate fate = try_to_destroy(pool, wait);
        if (fate == Fate::Destroyed) ++destroyed;
        if (fate == Fate::Waits) retire(std::move(pool));
    }
    return destroyed;
}

std::string describe_pool(const MemoryPoolHandle& pool) {
    return describe(MemoryPoolBox::kKind, value_of(*pool));
}

} // namespace cudamod::handles
