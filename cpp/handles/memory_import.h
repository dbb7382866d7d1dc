#pragma once

#include "handles/device_memory.h"

#include <array>
#include <cstddef>
#include <memory>

namespace cudamod::handles {

/// What describes memory of an exportable pool to another process. The pool is exported first,
/// without which the driver refuses.
using MemoryExport = std::array<unsigned char, sizeof(CUmemPoolPtrExportData)>;
MemoryExport export_memory(const DeviceMemoryHandle& memory);

struct MemoryImportKey {
    CUmemoryPool pool;
    MemoryExport data;
    auto operator<=>(const MemoryImportKey&) const = default;
};

/// That the driver has memory of another process imported. Owned by the memory's box, and after
/// that by its free, until that is done: another import before would be freed with it.
class MemoryImport {
  public:
    /// The only one of the key; empty while there is another.
    static std::shared_ptr<const MemoryImport> begin(const MemoryImportKey& key);

    /// The memory, when it is imported and alive.
    static DeviceMemoryHandle find(const MemoryImportKey& key);

    /// Waits until some import is alive or has ended, but not for long: a free that is deferred and
    /// a box whose end is postponed tell nobody.
    static void wait_briefly();

    explicit MemoryImport(const MemoryImportKey& key) : key_(key) {}
    ~MemoryImport();
    MemoryImport(const MemoryImport&) = delete;
    MemoryImport& operator=(const MemoryImport&) = delete;

    /// From here on `find` answers the memory.
    void is_alive(const DeviceMemoryHandle& memory) const;

    const MemoryImportKey& key() const { return key_; }

  private:
    MemoryImportKey key_;
    bool is_only_ = false;
};

/// Memory that another process exported from the pool that `pool` was imported from. While one
/// import is alive, further ones are the same: the driver would free them all with the first. One
/// that is being freed is waited for; one whose free is deferred is taken back, with its stream.
DeviceMemoryHandle import_memory(const MemoryPoolHandle& pool, const StreamHandle& stream,
                                 const MemoryExport& data, std::size_t size);

} // namespace cudamod::handles
