#include "emulator/recording.h"

#include "emulator/scheduler.h"
#include "emulator/shared_event.h"
#include "emulator/stream.h"

namespace cudamod::emulator {

namespace {

bool has_stopped() {
    return scheduler().stopped();
}

} // namespace

bool Recording::reached() const {
    if (elsewhere) return elsewhere->reached(number);
    return !mark || mark->reached();
}

Recording latest_recording(const Event& event) {
    Recording recording{event.mark, nullptr, 0};
    if (!event.shared) return recording;
    recording.number = event.shared->latest();
    if (!event.mark || event.mark->recording() != recording.number)
        recording.elsewhere = event.shared;
    return recording;
}

std::shared_ptr<Mark> begin_recording(Event& event) {
    event.mark = std::make_shared<Mark>();
    if (event.shared) event.mark->share(event.shared, event.shared->record());
    return event.mark;
}

void await_in(const std::shared_ptr<Stream>& stream, const Recording& recording) {
    if (!recording.elsewhere) return stream->await(recording.mark);
    if (recording.reached()) return;
    stream->enqueue_host([shared = recording.elsewhere, number = recording.number] {
        shared->wait(number, has_stopped);
    });
}

void wait_for(const Recording& recording) {
    if (recording.elsewhere)
        recording.elsewhere->wait(recording.number, has_stopped);
    else if (recording.mark)
        scheduler().wait(*recording.mark);
}

} // namespace cudamod::emulator
