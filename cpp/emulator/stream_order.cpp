#include "emulator/stream_order.h"

#include "emulator/access_map.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/findings.h"
#include "emulator/stream.h"

#include <algorithm>
#include <cstdio>

namespace cudamod::emulator {
namespace {

thread_local NodeOrder* placed = nullptr;
thread_local std::shared_ptr<WorkRecord> running;

/// What both know, of work after the floor.
ClockPointer merged(const ClockPointer& one, const ClockPointer& other, std::uint64_t floor) {
    if (!other || one == other) return one;
    if (!one) return other;
    auto both = std::make_shared<Clock>();
    both->known.reserve(std::max(one->known.size(), other->known.size()));
    auto a = one->known.begin(), b = other->known.begin();
    const auto add = [&](const auto& entry) {
        if (entry.second > floor) both->known.push_back(entry);
    };
    while (a != one->known.end() || b != other->known.end()) {
        if (b == other->known.end() || (a != one->known.end() && a->first < b->first)) {
            add(*a++);
        } else if (a == one->known.end() || b->first < a->first) {
            add(*b++);
        } else {
            add(std::max(*a++, *b++));
        }
    }
    return both;
}

ClockPointer with(const ClockPointer& clock, std::uint32_t lane, std::uint64_t number,
                  std::uint64_t floor) {
    auto one = std::make_shared<Clock>();
    one->known.emplace_back(lane, number);
    return merged(clock, one, floor);
}

std::string place_of(const Stream& stream, std::uint64_t work) {
    char text[96];
    const auto count = static_cast<unsigned long long>(work);
    if (stream.handle) {
        std::snprintf(text, sizeof text, "stream %p, its work %llu",
                      static_cast<void*>(stream.handle), count);
    } else {
        std::snprintf(text, sizeof text, "%s, its work %llu",
                      stream.kind == StreamKind::legacy       ? "the legacy default stream"
                      : stream.kind == StreamKind::per_thread ? "a thread's default stream"
                                                              : "a stream of the driver's",
                      count);
    }
    return text;
}

} // namespace

bool Clock::knows(std::uint32_t lane, std::uint64_t number) const {
    const auto found = std::lower_bound(known.begin(), known.end(),
                                        std::pair<std::uint32_t, std::uint64_t>{lane, 0});
    return found != known.end() && found->first == lane && found->second >= number;
}

bool WorkRecord::after(const WorkRecord& other) const {
    return other.number <= floor || (before && before->knows(other.lane, other.number));
}

StreamOrder& stream_order() {
    static StreamOrder* const only = new StreamOrder;
    return *only;
}

bool checks_streams() {
    return (findings::checks() & ptx::kCheckStreams) != 0;
}

std::uint32_t StreamOrder::lane_of(Stream& stream) {
    auto& lanes = stream.queue.lanes;
    if (lanes.empty()) lanes.push_back(++lanes_);
    return lanes.front();
}

ClockPointer StreamOrder::push(Stream& stream, Work& work) {
    std::lock_guard lock(mutex_);
    Queue& queue = stream.queue;
    ContextOrder& context = contexts_[stream.context->id];
    NodeOrder* const node = placed && &placed->stream_ == &stream ? placed : nullptr;
    ClockPointer clock = node ? queue.outside : queue.clock;
    const auto learn = [&](const ClockPointer& other) { clock = merged(clock, other, floor_); };
    learn(host_);
    if (node) learn(node->after_[node->step_]);
    if (stream.blocking())
        learn(stream.kind == StreamKind::legacy ? context.blocking : context.legacy);
    for (const Ticket& ticket : work.after)
        learn(ticket.clock);
    if (work.awaited) learn(work.awaited->clock);
    learn(work.known);
    ClockPointer after = clock;
    if (work.task) {
        const std::uint32_t lane = node ? node->lane(stream) : lane_of(stream);
        auto record = std::make_shared<WorkRecord>();
        record->number = ++last_;
        record->lane = lane;
        record->before = clock;
        record->floor = floor_;
        record->context = stream.context;
        record->what = work.what;
        record->place = place_of(stream, ++queue.checked);
        work.record = std::move(record);
        context.lanes[lane] = last_;
        after = with(clock, lane, last_, floor_);
    }
    if (node) {
        node->after_[node->step_] = after;
        queue.clock = merged(queue.clock, after, floor_);
    } else {
        queue.clock = queue.outside = after;
    }
    if (stream.kind == StreamKind::legacy)
        context.legacy = queue.clock;
    else if (stream.blocking())
        context.blocking = merged(context.blocking, queue.clock, floor_);
    if (work.mark) work.mark->clock = after;
    return after;
}

void StreamOrder::host_learns(const ClockPointer& clock) {
    if (!clock) return;
    std::lock_guard lock(mutex_);
    host_ = merged(host_, clock, floor_);
    raise_floor();
}

void StreamOrder::host_learns_all_of(const Stream& stream) {
    std::lock_guard lock(mutex_);
    host_ = merged(host_, stream.queue.clock, floor_);
    const auto context = contexts_.find(stream.context->id);
    if (stream.kind == StreamKind::legacy && context != contexts_.end())
        host_ = merged(host_, context->second.blocking, floor_);
    raise_floor();
}

/// The host knows everything: no later work can conflict with any before.
void StreamOrder::raise_floor() {
    for (const auto& [id, context] : contexts_) {
        for (const auto& [lane, number] : context.lanes) {
            if (number > floor_ && !(host_ && host_->knows(lane, number))) return;
        }
    }
    floor_ = last_;
    host_ = nullptr;
    contexts_.clear();
    forget_accesses();
}

ClockPointer StreamOrder::all_of(const Context& context) {
    if (!checks_streams()) return nullptr;
    std::lock_guard lock(mutex_);
    const auto found = contexts_.find(context.id);
    if (found == contexts_.end()) return nullptr;
    auto clock = std::make_shared<Clock>();
    clock->known.assign(found->second.lanes.begin(), found->second.lanes.end());
    return clock;
}

void StreamOrder::begin() {
    std::lock_guard lock(mutex_);
    floor_ = last_;
    host_ = nullptr;
    contexts_.clear();
    forget_accesses();
}

NodeOrder::NodeOrder(Stream& stream, std::size_t steps)
    : stream_(stream), active_(checks_streams()), outer_(placed) {
    if (!active_) return;
    after_.resize(steps);
    lanes_.resize(steps);
    std::lock_guard lock(stream_order().mutex_);
    stream.queue.outside = stream.queue.clock;
    placed = this;
}

NodeOrder::~NodeOrder() {
    if (active_) placed = outer_;
}

void NodeOrder::enter(std::size_t step, const std::vector<std::size_t>& dependencies) {
    if (!active_) return;
    step_ = step;
    dependencies_ = dependencies;
    for (const std::size_t before : dependencies)
        after_[step] = merged(after_[step], after_[before], 0);
}

/// A lane whose latest step the entered one depends on, else one that no step has yet.
std::uint32_t NodeOrder::lane(Stream& stream) {
    std::uint32_t lane = 0;
    for (const std::size_t before : dependencies_) {
        const auto last = last_.find(lanes_[before]);
        if (lanes_[before] != 0 && last != last_.end() && last->second == before)
            lane = lanes_[before];
    }
    if (lane == 0) {
        stream_order().lane_of(stream);
        auto& lanes = stream.queue.lanes;
        if (last_.size() == lanes.size()) lanes.push_back(++stream_order().lanes_);
        lane = *std::find_if(lanes.begin(), lanes.end(),
                             [&](std::uint32_t one) { return !last_.contains(one); });
    }
    lanes_[step_] = lane;
    last_[lane] = step_;
    return lane;
}

const std::shared_ptr<WorkRecord>& running_work() {
    return running;
}

RunningWork::RunningWork(const std::shared_ptr<WorkRecord>& record) : before_(std::move(running)) {
    running = record;
}

RunningWork::~RunningWork() {
    running = std::move(before_);
}

} // namespace cudamod::emulator
