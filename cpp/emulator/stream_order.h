#pragma once

#include "emulator/access_map.h"
#include "emulator/api.h"
#include "emulator/ptx/program.h"
#include "emulator/queue.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Stream;

/// How far each lane is known: of every lane the number of its latest known work. A lane is a chain
/// of work in which each piece comes after the one before: a stream, or a branch of the graphs that
/// one runs.
struct Clock {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> known; ///< by lane, sorted

    bool knows(std::uint32_t lane, std::uint64_t number) const;
};
using ClockPointer = std::shared_ptr<const Clock>; ///< null: knows nothing

/// One piece of work as the check of streams sees it. What runs it fills in what a finding tells;
/// the rest does not change.
struct WorkRecord {
    std::uint64_t number = 0; ///< counts all work of the process
    std::uint32_t lane = 0;
    ClockPointer before;     ///< what it knows
    std::uint64_t floor = 0; ///< all work up to this number is known as well
    std::shared_ptr<Context> context;
    CUstream stream = nullptr;
    std::string place; ///< "stream 0x1230, its work 4"

    const char* what = "work";      ///< "copy", "kernel", ...
    AccessId reads = 0, writes = 0; ///< of one that is no kernel
    std::string kernel;
    std::shared_ptr<const ptx::Program> program; ///< null: no kernel
    std::array<std::uint32_t, 3> grid{}, block{};

    /// Whether the other work is over before this one begins, whatever runs when.
    bool after(const WorkRecord& other) const;
};

/// What happens before what, while somebody asks for the check of streams: a vector clock over
/// streams, events, graphs' edges and the host. The host is taken for one thread: its threads may
/// tell each other what they waited for. Its own lock is taken last of all.
class StreamOrder {
  public:
    /// Under the scheduler's lock: gives the work its place, and returns what is known once it is
    /// done.
    ClockPointer push(Stream& stream, Work& work);

    /// The host waited for what is known there.
    void host_learns(const ClockPointer& clock);

    /// The same for all that the stream would wait for. Under the scheduler's lock.
    void host_learns_all_of(const Stream& stream);

    /// All work of the context that was pushed so far.
    ClockPointer all_of(const Context& context);

    /// Everything that was pushed so far is taken for known: the check begins now.
    void begin();

  private:
    friend class NodeOrder;
    struct ContextOrder {
        ClockPointer legacy, blocking; ///< what work of the legacy and of blocking streams leaves
        std::map<std::uint32_t, std::uint64_t> lanes; ///< the latest of each
    };

    std::uint32_t lane_of(Stream& stream);
    void raise_floor();

    std::mutex mutex_;
    std::uint64_t last_ = 0, floor_ = 0;
    std::uint32_t lanes_ = 0;
    ClockPointer host_;
    std::map<unsigned long long, ContextOrder> contexts_; ///< by id
};

StreamOrder& stream_order();

/// Whether streams are checked now.
bool checks_streams();

/// While it lives, what its thread pushes into the stream is the work of a graph's steps, which
/// their edges order and the stream does not.
class NodeOrder {
  public:
    NodeOrder(Stream& stream, std::size_t steps);
    ~NodeOrder();
    NodeOrder(const NodeOrder&) = delete;
    NodeOrder& operator=(const NodeOrder&) = delete;

    /// What is pushed from here on is this step, which comes after those.
    void enter(std::size_t step, const std::vector<std::size_t>& dependencies);

  private:
    friend class StreamOrder;
    std::uint32_t lane(Stream& stream);

    Stream& stream_;
    bool active_;
    std::vector<ClockPointer> after_;           ///< by step: what is known once it is done
    std::vector<std::uint32_t> lanes_;          ///< by step; 0: it pushed nothing
    std::map<std::uint32_t, std::size_t> last_; ///< the latest step of each lane in use
    std::vector<std::size_t> dependencies_;
    std::size_t step_ = 0;
    NodeOrder* outer_;
};

/// The record of the work that the calling thread runs; null while nobody checks.
const std::shared_ptr<WorkRecord>& running_work();

/// Makes a record the running work for as long as it lives.
class RunningWork {
  public:
    explicit RunningWork(const std::shared_ptr<WorkRecord>& record);
    ~RunningWork();
    RunningWork(const RunningWork&) = delete;
    RunningWork& operator=(const RunningWork&) = delete;

  private:
    std::shared_ptr<WorkRecord> before_;
};

} // namespace cudamod::emulator
