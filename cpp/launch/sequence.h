#pragma once

#include "handles/graph.h"
#include "launch/call.h"

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace cudamod::launch {

/// One launch of a sequence. `pointers`: the address of each argument while the sequence is built;
/// null without any.
struct SequenceLaunch {
    const Kernel& kernel;
    const Config& config;
    void** pointers;
};

/// For each launch the positions of those that come before it.
using Dependencies = std::vector<std::vector<std::size_t>>;

/// Positions in an order that respects every dependency, as early as it can be. Raises
/// std::invalid_argument for a cycle.
std::vector<std::size_t> order_of(const Dependencies& after);

/// Launches as one graph, where the driver has graphs and can put all of their attributes into one.
class Sequence {
  public:
    Sequence(const std::vector<SequenceLaunch>& launches, const Dependencies& after,
             CUcontext context);

    const std::vector<std::size_t>& order() const { return order_; }
    CUcontext context() const { return context_; }

    /// Null when the launches have to be made one by one.
    const handles::GraphExecHandle& executable() const { return executable_; }

    /// Changes the arguments of one launch for the next replays. The caller holds the executable's
    /// `use`.
    CUresult patch(std::size_t position, const SequenceLaunch& launch, void** pointers) const;

    /// Enqueues the whole; the driver makes it wait for its own last replay. The caller holds the
    /// executable's `use`.
    CUresult replay(const handles::StreamBox& stream) const noexcept;

  private:
    void build(const std::vector<SequenceLaunch>& launches, const Dependencies& after);

    std::vector<std::size_t> order_;
    CUcontext context_;
    handles::GraphHandle graph_;
    handles::GraphExecHandle executable_;
    std::vector<CUgraphNode> nodes_; // by position
};

} // namespace cudamod::launch
