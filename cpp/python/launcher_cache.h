#pragma once

#include "launch/config.h"
#include "launch/kernel.h"
#include "python/instance.h"

#include <cuda.h>

#include <array>
#include <memory>

namespace cudamod::python {

/// The launchers of `kernel[grid, block, stream, shmem_size]`, part of the Python kernel: a bounded
/// table that forgets in turn. A launcher on CURRENT, a default stream or somebody else's stream is
/// kept, since it keeps no stream alive. For an own stream only the configuration is kept, and each
/// look-up makes a launcher, so that the table never outlives anybody's stream. Launchers know the
/// shared kernel, not the Python object, so the table makes no cycle. Safe for any thread.
class LauncherCache {
  public:
    LauncherCache() = default;
    LauncherCache(const LauncherCache&) = delete;
    LauncherCache& operator=(const LauncherCache&) = delete;

    /// The launcher for a subscript: (grid, block), (grid, block, stream) or (grid, block, stream,
    /// shmem_size). Without a stream it is on CURRENT. Throws as Kernel.bind and LaunchConfig do.
    nb::object find(const std::shared_ptr<const launch::Kernel>& kernel, nb::handle key);

  private:
    struct Key {
        launch::Dim3 grid, block;
        unsigned shmem_size;
        CUstream stream; // null: CURRENT
        CUcontext context;

        bool operator==(const Key&) const = default;
    };
    struct Entry {
        Key key{};
        nb::object config, launcher; // launcher: none for an own stream
    };
    static constexpr std::size_t kSlots = 64, kProbes = 4;

    static std::size_t start_of(const Key& key);
    Entry look_up(const Key& key);
    void remember(Entry entry);

    nb::ft_mutex mutex_; // a leaf: only references are taken while it is held
    std::unique_ptr<std::array<Entry, kSlots>> entries_;
    std::size_t next_ = 0;
};

} // namespace cudamod::python
