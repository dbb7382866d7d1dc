#include "emulator/findings.h"

#include "emulator/settings.h"
#include "emulator/stream_order.h"

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>

namespace cudamod::emulator::findings {
namespace {

constexpr std::size_t kKeptFindings = 10'000;

struct Findings {
    std::mutex mutex;
    std::deque<ptx::Fault> list;
    std::atomic<unsigned> checks{settings().checks};
};

Findings& known() {
    static Findings* const findings = new Findings;
    return *findings;
}

} // namespace

unsigned checks() {
    return known().checks.load(std::memory_order_relaxed);
}

void set_checks(unsigned checks) {
    const unsigned before = known().checks.exchange(checks);
    if (checks & ~before & ptx::kCheckStreams) stream_order().begin();
}

std::optional<unsigned> check_named(std::string_view name) {
    if (name == "uninitialized") return ptx::kCheckUninitialized;
    if (name == "races") return ptx::kCheckRaces;
    if (name == "barriers") return ptx::kCheckBarriers;
    if (name == "streams") return ptx::kCheckStreams;
    if (name == "all") {
        return ptx::kCheckUninitialized | ptx::kCheckRaces | ptx::kCheckBarriers |
               ptx::kCheckStreams;
    }
    return std::nullopt;
}

bool hear(const ptx::Fault& finding) {
    std::fprintf(stderr, "cudamod: emulated driver: %s: %s\n", kind_name(finding.kind),
                 finding.message.c_str());
    add(finding);
    return settings().manner == Manner::faithful;
}

void add(const ptx::Fault& fault) {
    std::lock_guard lock(known().mutex);
    known().list.push_back(fault);
    if (known().list.size() > kKeptFindings) known().list.pop_front();
}

bool read(std::size_t position, ptx::Fault& finding) {
    std::lock_guard lock(known().mutex);
    if (position >= known().list.size()) return false;
    finding = known().list[position];
    return true;
}

void clear() {
    std::lock_guard lock(known().mutex);
    known().list.clear();
}

bool by_check(ptx::FaultKind kind) {
    return kind == ptx::FaultKind::UninitializedRead || kind == ptx::FaultKind::SharedRace ||
           kind == ptx::FaultKind::BarrierDivergence || kind == ptx::FaultKind::StreamConflict;
}

const char* kind_name(ptx::FaultKind kind) {
    using Kind = ptx::FaultKind;
    switch (kind) {
    case Kind::IllegalAddress:
        return "illegal address";
    case Kind::MisalignedAddress:
        return "misaligned address";
    case Kind::Trap:
        return "trap";
    case Kind::Assert:
        return "assertion";
    case Kind::IllegalInstruction:
        return "illegal instruction";
    case Kind::InvalidAddressSpace:
        return "invalid address space";
    case Kind::Timeout:
        return "timeout";
    case Kind::Deadlock:
        return "deadlock";
    case Kind::StackOverflow:
        return "stack overflow";
    case Kind::UninitializedRead:
        return "uninitialized read";
    case Kind::SharedRace:
        return "race";
    case Kind::BarrierDivergence:
        return "barrier divergence";
    case Kind::StreamConflict:
        return "stream conflict";
    }
    return "fault";
}

} // namespace cudamod::emulator::findings
