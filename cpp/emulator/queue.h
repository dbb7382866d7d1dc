#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace cudamod::emulator {

class Mark;
struct Clock;
struct Stream;
struct WorkRecord;

/// A point in a stream's work: reached when as many pieces of work are done.
struct Ticket {
    std::shared_ptr<Stream> stream;
    std::uint64_t number = 0;
    std::shared_ptr<const Clock> clock{}; ///< what is known then, while streams are checked
};

/// One piece of a stream's work. It owns what it uses.
struct Work {
    std::function<void()> task;    ///< null: order only
    bool host = false;             ///< calls a function of the host's
    bool after_fault = false;      ///< runs even when the context has a fault
    std::shared_ptr<Mark> mark;    ///< reached when the work is done, whether it ran or not
    std::shared_ptr<Mark> awaited; ///< begins after this one is reached
    std::vector<Ticket> after;     ///< begins after these points of other streams

    // While streams are checked:
    const char* what = "work";          ///< how a finding names it
    std::shared_ptr<const Clock> known; ///< it comes after all this as well
    std::shared_ptr<WorkRecord> record; ///< its place, given by the scheduler
};

/// What a stream has to do, first in first out. The scheduler's own; its lock guards it.
struct Queue {
    enum class State {
        waiting, ///< empty, or its first work may not begin yet
        ready,   ///< its first work may begin
        claimed, ///< a worker was asked to
        running
    };
    std::deque<Work> works;
    std::uint64_t pushed = 0, done = 0;
    State state = State::waiting;
    bool abandoned = false; ///< nothing of it runs any more

    // Of StreamOrder, whose lock guards them.
    std::shared_ptr<const Clock> clock;   ///< what is known once all of it is done
    std::shared_ptr<const Clock> outside; ///< the same without the graph that is entering
    std::vector<std::uint32_t> lanes;     ///< the stream's own, then those of its graphs' branches
    std::uint64_t checked = 0;            ///< works with a record
};

} // namespace cudamod::emulator
