#include "emulator/control.h"

#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/findings.h"
#include "emulator/injection.h"
#include "emulator/journal.h"
#include "emulator/leaks.h"
#include "emulator/null_launch.h"
#include "emulator/objects.h"
#include "emulator/process.h"
#include "emulator/recorder.h"
#include "emulator/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#define CUDAMOD_CONTROL extern "C" __attribute__((visibility("default")))

using namespace cudamod::emulator;

namespace {

struct Behaviour {
    const char *topic, *basis, *text;
};

constexpr Behaviour kBehaviours[] = {
#define CUDAMOD_BEHAVIOUR(topic, basis, text) {topic, #basis, text},
#include "emulator/behaviour_list.h"
};

/// What the environment switches on, before the first call.
const bool environment_applied = [] {
    if (!settings().journal.empty()) {
        journal::enable(true);
        recorder::enable(true);
    }
    if (!settings().failures.empty() && !injection::arm_all(settings().failures)) {
        std::fprintf(stderr,
                     "cudamod: emulated driver: CUDAMOD_EMULATOR_FAIL='%s' cannot be read: "
                     "call:nth:status wanted\n",
                     settings().failures.c_str());
    }
    return true;
}();

} // namespace

CUDAMOD_CONTROL int cudamodEmulatorControlVersion() {
    return CUDAMOD_EMULATOR_CONTROL_VERSION;
}

CUDAMOD_CONTROL void cudamodEmulatorJournal(int on) {
    journal::enable(on != 0);
}
CUDAMOD_CONTROL void cudamodEmulatorClearJournal() {
    journal::clear();
}
CUDAMOD_CONTROL size_t cudamodEmulatorJournalSize() {
    return journal::size();
}

CUDAMOD_CONTROL int cudamodEmulatorReadCall(size_t position, CudamodEmulatorCall* call) {
    thread_local journal::Entry entry;
    if (!call || !journal::read(position, entry)) return 0;
    *call = {entry.index, entry.thread, entry.call, entry.arguments.c_str(),
             static_cast<int>(entry.status)};
    return 1;
}

CUDAMOD_CONTROL void cudamodEmulatorRecordLaunches(int on) {
    recorder::enable(on != 0);
}
CUDAMOD_CONTROL void cudamodEmulatorClearLaunches() {
    recorder::clear();
}
CUDAMOD_CONTROL size_t cudamodEmulatorLaunchCount() {
    return recorder::size();
}

CUDAMOD_CONTROL int cudamodEmulatorReadLaunch(size_t position, CudamodEmulatorLaunch* launch) {
    thread_local recorder::Record record;
    if (!launch || !recorder::read(position, record)) return 0;
    *launch = {};
    launch->index = record.index;
    launch->kernel = record.kernel.c_str();
    launch->device = record.device;
    std::copy(record.grid.begin(), record.grid.end(), launch->grid);
    std::copy(record.block.begin(), record.block.end(), launch->block);
    std::copy(record.cluster.begin(), record.cluster.end(), launch->cluster);
    launch->dynamic_shared = record.dynamic_shared;
    launch->cooperative = record.cooperative;
    launch->stream = reinterpret_cast<std::uintptr_t>(record.stream);
    launch->parameters = reinterpret_cast<const unsigned char*>(record.parameters.data());
    launch->parameter_bytes = record.parameters.size();
    launch->offsets = record.offsets.data();
    launch->sizes = record.sizes.data();
    launch->parameter_count = record.offsets.size();
    return 1;
}

CUDAMOD_CONTROL int cudamodEmulatorReadLaunchAttribute(size_t position, size_t index, int* id,
                                                       const unsigned char** value) {
    thread_local recorder::Record record;
    if (!id || !value || !recorder::read(position, record) || index >= record.attributes.size())
        return 0;
    *id = static_cast<int>(record.attributes[index].id);
    *value = reinterpret_cast<const unsigned char*>(&record.attributes[index].value);
    return 1;
}

CUDAMOD_CONTROL int cudamodEmulatorInject(const char* call, uint64_t nth, int status) {
    if (!call || !*call || !nth || status <= 0) return 0;
    injection::arm(call, nth, static_cast<CUresult>(status));
    return 1;
}

CUDAMOD_CONTROL void cudamodEmulatorClearInjections() {
    injection::disarm_all();
}
CUDAMOD_CONTROL size_t cudamodEmulatorInjectionsLeft() {
    return injection::armed();
}

CUDAMOD_CONTROL int cudamodEmulatorLiveCount(size_t position, const char** family, size_t* count) {
    thread_local std::vector<std::pair<std::string, std::size_t>> counts;
    counts = live_counts();
    if (position >= counts.size() || !family || !count) return 0;
    *family = counts[position].first.c_str();
    *count = counts[position].second;
    return 1;
}

CUDAMOD_CONTROL void cudamodEmulatorNullLaunch(int on) {
    set_attention(kNullLaunch, on != 0);
}
CUDAMOD_CONTROL uint64_t cudamodEmulatorNullLaunches() {
    return null_launches();
}

CUDAMOD_CONTROL int cudamodEmulatorDevice(size_t ordinal, const char** architecture,
                                          const char** name) {
    std::lock_guard lock(driver_mutex());
    if (ordinal >= devices().size() || !architecture || !name) return 0;
    *architecture = devices()[ordinal]->profile->architecture.c_str();
    *name = devices()[ordinal]->profile->name.c_str();
    return 1;
}

CUDAMOD_CONTROL int cudamodEmulatorProfile(size_t position, const char** architecture) {
    static const auto* const names = new std::vector<std::string>(profile_names());
    if (position >= names->size() || !architecture) return 0;
    *architecture = (*names)[position].c_str();
    return 1;
}

CUDAMOD_CONTROL int cudamodEmulatorReadFinding(size_t position, CudamodEmulatorFinding* finding) {
    thread_local ptx::Fault fault;
    if (!finding || !findings::read(position, fault)) return 0;
    *finding = {};
    finding->kind = findings::kind_name(fault.kind);
    finding->kernel = fault.kernel.c_str();
    finding->instruction = fault.instruction.c_str();
    finding->text = fault.message.c_str();
    finding->line = fault.line;
    const auto copy = [](const ptx::Dim3& from, std::uint32_t* to) {
        to[0] = from.x, to[1] = from.y, to[2] = from.z;
    };
    copy(fault.block, finding->block);
    copy(fault.thread, finding->thread);
    finding->has_address = fault.address.has_value();
    finding->address = fault.address.value_or(0);
    return 1;
}

CUDAMOD_CONTROL void cudamodEmulatorClearFindings() {
    findings::clear();
}

CUDAMOD_CONTROL int cudamodEmulatorChecks(const char* names) {
    unsigned checks = 0;
    std::string_view rest = names ? names : "";
    while (!rest.empty()) {
        const std::string_view name = rest.substr(0, rest.find(','));
        const auto check = findings::check_named(name);
        if (!check) return 0;
        checks |= *check;
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    }
    findings::set_checks(checks);
    return 1;
}

CUDAMOD_CONTROL void cudamodEmulatorReset() {
    journal::enable(false);
    journal::clear();
    recorder::enable(false);
    recorder::clear();
    injection::disarm_all();
    clear_null_launches();
    set_attention(kNullLaunch, settings().null_launch);
    findings::clear();
    findings::set_checks(settings().checks);
    std::lock_guard lock(driver_mutex());
    objects().contexts.visit([](const auto& context) { clear_fault(*context); });
}

CUDAMOD_CONTROL int cudamodEmulatorBehaviour(size_t position, const char** topic,
                                             const char** basis, const char** behaviour) {
    if (position >= std::size(kBehaviours) || !topic || !basis || !behaviour) return 0;
    *topic = kBehaviours[position].topic;
    *basis = kBehaviours[position].basis;
    *behaviour = kBehaviours[position].text;
    return 1;
}
