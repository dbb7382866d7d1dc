#include "emulator/recorder.h"

#include "emulator/device.h"
#include "emulator/launch.h"
#include "emulator/process.h"

#include <deque>
#include <mutex>

namespace cudamod::emulator::recorder {
namespace {

constexpr std::size_t kKeptLaunches = 65'536;

struct Recorder {
    std::mutex mutex;
    std::deque<Record> launches;
    std::uint64_t written = 0;
};

Recorder& all() {
    static Recorder* const recorder = new Recorder;
    return *recorder;
}

} // namespace

void enable(bool on) {
    set_attention(kRecorder, on);
}

void write(const ValidLaunch& launch, CUstream stream) {
    const KernelView& view = launch.function->view;
    Record record;
    record.kernel = view.kernel->name;
    record.device = view.device->ordinal;
    record.grid = launch.grid;
    record.block = launch.block;
    record.cluster = launch.cluster;
    record.dynamic_shared = launch.dynamic_shared;
    record.cooperative = launch.cooperative;
    record.stream = stream;
    record.parameters = launch.parameters;
    record.attributes = launch.attributes;
    for (const KernelParameter& parameter : view.kernel->parameters) {
        record.offsets.push_back(parameter.offset);
        record.sizes.push_back(parameter.size);
    }
    std::lock_guard lock(all().mutex);
    record.index = all().written++;
    all().launches.push_back(std::move(record));
    if (all().launches.size() > kKeptLaunches) all().launches.pop_front();
}

void clear() {
    std::lock_guard lock(all().mutex);
    all().launches.clear();
    all().written = 0;
}

std::size_t size() {
    std::lock_guard lock(all().mutex);
    return all().launches.size();
}

bool read(std::size_t position, Record& record) {
    std::lock_guard lock(all().mutex);
    if (position >= all().launches.size()) return false;
    record = all().launches[position];
    return true;
}

} // namespace cudamod::emulator::recorder
