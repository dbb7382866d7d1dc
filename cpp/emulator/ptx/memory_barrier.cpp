#include "emulator/ptx/memory_barrier.h"

#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/worker.h"

#include <cstring>

namespace cudamod::emulator::ptx::memory_barrier {
namespace {

using std::int32_t, std::uint32_t, std::uint64_t;

constexpr int32_t kMaxBytes = (1 << 20) - 1;

enum Setting : uint32_t {
    kGeneric = 1,
    kExpectBytes = 2, ///< arrive: slots[1] are bytes
    kDrop = 4,        ///< arrive: and never again
    kIncomplete = 8,  ///< arrive: must not complete the phase
    kParity = 16,     ///< wait: slots[1] is a parity
    kNoIncrement = 32 ///< cp.async.mbarrier.arrive.noinc
};

std::byte* object(const Warp& w, const Instruction& i, unsigned l) {
    uint64_t address =
        w.at<uint64_t>(i.slots[kAddressSlot])[l] + static_cast<uint64_t>(i.immediate);
    if ((i.extra & kGeneric) != 0) address = w.worker->shared_offset(w, i, l, address);
    return w.worker->find_shared(w, i, l, address, 8);
}

State load(const Warp& w, const Instruction& i, unsigned l, const std::byte* at) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const State state = State::decoded(word);
    if (!state.valid)
        w.fault(FaultKind::IllegalInstruction, i, l,
                "the memory holds no mbarrier: it is not initialized, or was invalidated");
    return state;
}

void store(std::byte* at, const State& state) {
    const uint64_t word = state.encoded();
    std::memcpy(at, &word, sizeof word);
}

void expect(const Warp& w, const Instruction& i, unsigned l, State& state, uint32_t bytes) {
    if (bytes > static_cast<uint32_t>(kMaxBytes) ||
        state.bytes + static_cast<int32_t>(bytes) > kMaxBytes) {
        w.fault(FaultKind::IllegalInstruction, i, l,
                "mbarrier can't expect " + std::to_string(bytes) +
                    " more bytes: the limit is 1048575");
    }
    state.bytes += static_cast<int32_t>(bytes);
}

void subtract(const Warp& w, const Instruction& i, unsigned l, State& state, uint32_t count) {
    if (count == 0 || count > state.pending) {
        w.fault(FaultKind::IllegalInstruction, i, l,
                std::to_string(count) + " arrivals at an mbarrier whose phase lacks " +
                    std::to_string(state.pending));
    }
    state.pending -= count;
}

template <class F>
void each_lane(uint32_t mask, F apply) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
        apply(static_cast<unsigned>(__builtin_ctz(rest)));
}

void initialize(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) {
        const uint32_t count = w.at<uint32_t>(i.slots[1])[l];
        if (count == 0 || count > State::kMaxCount) {
            w.fault(FaultKind::IllegalInstruction, i, l,
                    "an mbarrier can't count " + std::to_string(count) + " arrivals: 1 to 1048575");
        }
        State state;
        state.expected = state.pending = count;
        state.valid = true;
        store(object(w, i, l), state);
    });
}

void invalidate(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) {
        std::byte* at = object(w, i, l);
        load(w, i, l, at);
        store(at, State{});
    });
}

void change_bytes(Warp& w, const Instruction& i, unsigned l, bool complete) {
    std::byte* at = object(w, i, l);
    const uint32_t bytes = w.at<uint32_t>(i.slots[1])[l];
    if (complete) {
        complete_bytes(w, i, l, at, bytes);
        return;
    }
    State state = load(w, i, l, at);
    expect(w, i, l, state, bytes);
    store(at, state);
}

void expect_bytes(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) { change_bytes(w, i, l, false); });
}
void bytes_came(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) { change_bytes(w, i, l, true); });
}

void arrive(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) {
        std::byte* at = object(w, i, l);
        State state = load(w, i, l, at);
        const uint64_t before = state.encoded();
        const uint32_t operand = i.slots[1] == kNoSlot ? 1 : w.at<uint32_t>(i.slots[1])[l];
        const bool bytes = (i.extra & kExpectBytes) != 0;
        if (bytes) expect(w, i, l, state, operand);
        const uint32_t count = bytes ? 1 : operand;
        subtract(w, i, l, state, count);
        if ((i.extra & kDrop) != 0) state.expected -= std::min(count, state.expected);
        if (state.complete() && (i.extra & kIncomplete) != 0) {
            w.fault(FaultKind::IllegalInstruction, i, l,
                    "an arrival with .noComplete completes the phase");
        }
        store(at, state);
        if (i.slots[0] != kNoSlot) w.at<uint64_t>(i.slots[0])[l] = before;
    });
}

/// The thread's copies are there already: with the pending arrival that the instruction adds
/// nothing changes but that the phase could end.
void arrive_behind_copies(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) {
        std::byte* at = object(w, i, l);
        State state = load(w, i, l, at);
        if ((i.extra & kNoIncrement) != 0) subtract(w, i, l, state, 1);
        state.complete();
        store(at, state);
    });
}

void wait(Warp& w, const Instruction& i, uint32_t mask) {
    uint32_t done = 0;
    each_lane(mask, [&](unsigned l) {
        const State state = load(w, i, l, object(w, i, l));
        const bool awaited = (i.extra & kParity) != 0
                                 ? (w.at<uint32_t>(i.slots[1])[l] & 1) != 0
                                 : State::decoded(w.at<uint64_t>(i.slots[1])[l]).phase;
        if (state.phase != awaited) done |= 1u << l;
    });
    if (i.slots[0] != kNoSlot) {
        auto* p = w.at<uint32_t>(i.slots[0]);
        *p = (*p & ~mask) | done;
    }
    if (done != mask) w.give_way();
}

void pending_count(Warp& w, const Instruction& i, uint32_t mask) {
    each_lane(mask, [&](unsigned l) {
        w.at<uint32_t>(i.slots[0])[l] = State::decoded(w.at<uint64_t>(i.slots[1])[l]).pending;
    });
}

} // namespace

State State::decoded(std::uint64_t word) {
    State state;
    state.expected = static_cast<uint32_t>(word & kMaxCount);
    state.pending = static_cast<uint32_t>(word >> 20 & kMaxCount);
    // Sign-extended from 21 bits.
    state.bytes = static_cast<int32_t>(static_cast<uint32_t>(word >> 40) << 11) >> 11;
    state.phase = (word >> 61 & 1) != 0;
    state.valid = word >> 62 == 2;
    return state;
}

std::uint64_t State::encoded() const {
    if (!valid) return 0;
    return uint64_t{expected} | uint64_t{pending} << 20 |
           (static_cast<uint64_t>(bytes) & 0x1fffff) << 40 | uint64_t{phase ? 1u : 0u} << 61 |
           uint64_t{2} << 62;
}

bool State::complete() {
    if (pending != 0 || bytes != 0) return false;
    phase = !phase;
    pending = expected;
    return true;
}

void complete_bytes(const Warp& w, const Instruction& i, unsigned lane, std::byte* barrier,
                    std::uint32_t bytes) {
    State state = load(w, i, lane, barrier);
    if (bytes > static_cast<uint32_t>(kMaxBytes) ||
        state.bytes - static_cast<int32_t>(bytes) < -kMaxBytes) {
        w.fault(FaultKind::IllegalInstruction, i, lane,
                "more bytes complete at an mbarrier than it can count");
    }
    state.bytes -= static_cast<int32_t>(bytes);
    state.complete();
    store(barrier, state);
}

Handler select(const Form& form) {
    if (form.is("cp")) return &arrive_behind_copies;
    if (form.has("init")) return &initialize;
    if (form.has("inval")) return &invalidate;
    if (form.has("arrive") || form.has("arrive_drop")) return &arrive;
    if (form.has("expect_tx")) return &expect_bytes;
    if (form.has("complete_tx")) return &bytes_came;
    return form.has("pending_count") ? &pending_count : &wait;
}

std::uint32_t settings(const Form& form) {
    const bool shared =
        form.has("shared") || form.has("shared::cta") || form.has("shared::cluster");
    return (shared ? 0u : kGeneric) | (form.has("expect_tx") ? kExpectBytes : 0u) |
           (form.has("arrive_drop") ? kDrop : 0u) | (form.has("noComplete") ? kIncomplete : 0u) |
           (form.has("parity") ? kParity : 0u) | (form.has("noinc") ? kNoIncrement : 0u);
}

} // namespace cudamod::emulator::ptx::memory_barrier
