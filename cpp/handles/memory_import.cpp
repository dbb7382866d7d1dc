#include "handles/memory_import.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <unistd.h>
#include <utility>

namespace cudamod::handles {

namespace {

/// Imports by key; memory that is not alive is being imported or freed.
struct Imports {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<MemoryImportKey, std::weak_ptr<const CUdeviceptr>> by_key;
};

Imports& imports() {
    static auto* instance = new Imports;
    return *instance;
}

CUdeviceptr import_pointer(const MemoryPoolHandle& pool, const MemoryExport& exported) {
    CUmemPoolPtrExportData data;
    std::memcpy(&data, exported.data(), sizeof data);
    CUdeviceptr raw = 0;
    driver::check(driver::table.cuMemPoolImportPointer(&raw, *pool, &data),
                  "cuMemPoolImportPointer", [&] { return describe_pool(pool); });
    return raw;
}

} // namespace

std::shared_ptr<const MemoryImport> MemoryImport::begin(const MemoryImportKey& key) {
    auto import = std::make_shared<MemoryImport>(key);
    {
        std::lock_guard lock(imports().mutex);
        import->is_only_ = imports().by_key.try_emplace(key).second;
    }
    if (!import->is_only_) return nullptr;
    return import;
}

DeviceMemoryHandle MemoryImport::find(const MemoryImportKey& key) {
    std::lock_guard lock(imports().mutex);
    auto it = imports().by_key.find(key);
    return it == imports().by_key.end() ? nullptr : it->second.lock();
}

void MemoryImport::wait_briefly() {
    end_postponed_boxes();
    InterpreterUnlocked unlocked;
    std::unique_lock lock(imports().mutex);
    imports().changed.wait_for(lock, std::chrono::milliseconds(1));
}

MemoryImport::~MemoryImport() {
    if (!is_only_) return;
    {
        std::lock_guard lock(imports().mutex);
        imports().by_key.erase(key_);
    }
    imports().changed.notify_all();
}

void MemoryImport::is_alive(const DeviceMemoryHandle& memory) const {
    {
        std::lock_guard lock(imports().mutex);
        imports().by_key[key_] = memory;
    }
    imports().changed.notify_all();
}

MemoryExport export_memory(const DeviceMemoryHandle& memory) {
    const MemoryPoolHandle& pool = box_of<DeviceMemoryBox>(memory).pool;
    if (!box_of<MemoryPoolBox>(pool).exported) close(export_pool(pool));
    CUmemPoolPtrExportData data{};
    driver::check(driver::table.cuMemPoolExportPointer(&data, *memory), "cuMemPoolExportPointer",
                  [&] { return describe(DeviceMemoryBox::kKind, *memory); });
    MemoryExport exported;
    std::memcpy(exported.data(), &data, sizeof data);
    return exported;
}

DeviceMemoryHandle import_memory(const MemoryPoolHandle& pool, const StreamHandle& stream,
                                 const MemoryExport& exported, std::size_t size) {
    ContextScope scope(box_of<StreamBox>(stream).context);
    const MemoryImportKey key{*pool, exported};
    for (;; MemoryImport::wait_briefly()) {
        if (DeviceMemoryHandle known = MemoryImport::find(key)) return known;
        std::optional<DeferredFree> earlier = take_deferred_free(key);
        auto import = earlier ? earlier->import : MemoryImport::begin(key);
        if (!import) continue;
        CUdeviceptr raw = earlier ? earlier->raw : import_pointer(pool, exported);
        DeviceMemoryHandle memory =
            adopt(pool, earlier && earlier->stream ? earlier->stream : stream, raw, size, import);
        import->is_alive(memory);
        return memory;
    }
}

} // namespace cudamod::handles
