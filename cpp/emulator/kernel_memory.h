#pragma once

#include "emulator/address_space.h"
#include "emulator/ptx/program.h"
#include "emulator/stream_check.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace cudamod::emulator {

struct Context;

/// Device memory as one launch sees it. Whatever it found stays usable until it goes.
class KernelMemory : public ptx::Memory {
  public:
    /// On the thread that runs the launch as a stream's work.
    explicit KernelMemory(const ValidLaunch& launch);

    ptx::Window find(std::uint64_t address, std::size_t size) override;
    std::string explain(std::uint64_t address) override;

  private:
    bool reachable(const Allocation& allocation) const;
    bool writable(const Allocation& allocation) const; ///< which is reachable

    std::shared_ptr<Context> context_;
    std::optional<LaunchUses> uses_; ///< while streams are checked
    std::mutex mutex_;
    std::vector<std::shared_ptr<Allocation>> in_use_;
};

} // namespace cudamod::emulator
