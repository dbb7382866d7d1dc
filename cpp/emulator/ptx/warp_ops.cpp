/// shfl, vote, match, redux, elect and bar.warp.
#include "emulator/ptx/block_check.h"
#include "emulator/ptx/runtime.h"

#include <algorithm>

namespace cudamod::emulator::ptx {
namespace {

using std::uint32_t, std::uint64_t;

template <class T>
T* lanes_of(const Warp& w, const Part& part, Slot slot) {
    std::byte* base = (slot & kConstantBit) != 0 ? w.bases[1] : part.frame->registers;
    return reinterpret_cast<T*>(base + (slot & ~kConstantBit));
}

/// The operand's value in every lane that takes part; other lanes show the first part's registers.
template <class T>
struct Values {
    T lane[kLanes];
    Values(const Warp& w, const Part* parts, std::size_t count, unsigned operand) {
        std::copy_n(lanes_of<T>(w, parts[0], parts[0].instruction->slots[operand]), kLanes, lane);
        for (std::size_t n = 1; n < count; ++n) {
            const T* from = lanes_of<T>(w, parts[n], parts[n].instruction->slots[operand]);
            for (unsigned l = 0; l < kLanes; ++l) {
                if ((parts[n].mask >> l & 1) != 0) lane[l] = from[l];
            }
        }
    }
};

uint32_t predicate(const Warp& w, const Part* parts, std::size_t count, unsigned operand) {
    uint32_t result = 0;
    for (std::size_t n = 0; n < count; ++n) {
        result |=
            *lanes_of<uint32_t>(w, parts[n], parts[n].instruction->slots[operand]) & parts[n].mask;
    }
    return result;
}

uint32_t everybody(const Part* parts, std::size_t count) {
    uint32_t result = 0;
    for (std::size_t n = 0; n < count; ++n)
        result |= parts[n].mask;
    return result;
}

template <class T>
void deliver(const Warp& w, const Part* parts, std::size_t count, unsigned operand,
             const T* values) {
    for (std::size_t n = 0; n < count; ++n) {
        const Slot slot = parts[n].instruction->slots[operand];
        if (slot == kNoSlot) continue;
        T* to = lanes_of<T>(w, parts[n], slot);
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((parts[n].mask >> l & 1) != 0) to[l] = values[l];
        }
    }
}

void deliver_predicate(const Warp& w, const Part* parts, std::size_t count, unsigned operand,
                       uint32_t value) {
    for (std::size_t n = 0; n < count; ++n) {
        const Slot slot = parts[n].instruction->slots[operand];
        if (slot == kNoSlot) continue;
        uint32_t* to = lanes_of<uint32_t>(w, parts[n], slot);
        *to = (*to & ~parts[n].mask) | (value & parts[n].mask);
    }
}

enum class Shuffle : uint32_t { Up, Down, Bfly, Idx };

void shuffle(Warp& w, const Part* parts, std::size_t count) {
    const auto mode = static_cast<Shuffle>(parts[0].instruction->extra);
    const Values<uint32_t> a(w, parts, count, 2), b(w, parts, count, 3), c(w, parts, count, 4);
    uint32_t result[kLanes], valid = 0;
    for (uint32_t l = 0; l < kLanes; ++l) {
        const uint32_t segment = c.lane[l] >> 8 & 31, clamp = c.lane[l] & 31,
                       offset = b.lane[l] & 31;
        const uint32_t last = (l & segment) | (clamp & ~segment & 31), first = l & segment;
        uint32_t from = l;
        bool in_range = false;
        switch (mode) {
        case Shuffle::Up:
            from = l - offset;
            in_range = static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(last);
            break;
        case Shuffle::Down:
            from = l + offset;
            in_range = from <= last;
            break;
        case Shuffle::Bfly:
            from = l ^ offset;
            in_range = from <= last;
            break;
        case Shuffle::Idx:
            from = first | (offset & ~segment & 31);
            in_range = from <= last;
            break;
        }
        result[l] = a.lane[in_range ? from & 31 : l];
        valid |= in_range ? 1u << l : 0u;
    }
    deliver(w, parts, count, 0, result);
    deliver_predicate(w, parts, count, 1, valid);
}

enum class Vote : uint32_t { All, Any, Uniform, Ballot };

void vote(Warp& w, const Part* parts, std::size_t count) {
    const uint32_t members = everybody(parts, count), votes = predicate(w, parts, count, 1);
    switch (static_cast<Vote>(parts[0].instruction->extra)) {
    case Vote::All:
        deliver_predicate(w, parts, count, 0, votes == members ? kAllLanes : 0);
        return;
    case Vote::Any:
        deliver_predicate(w, parts, count, 0, votes != 0 ? kAllLanes : 0);
        return;
    case Vote::Uniform:
        deliver_predicate(w, parts, count, 0, votes == 0 || votes == members ? kAllLanes : 0);
        return;
    case Vote::Ballot:
        break;
    }
    uint32_t result[kLanes];
    std::fill_n(result, kLanes, votes);
    deliver(w, parts, count, 0, result);
}

template <class T>
void match_any(Warp& w, const Part* parts, std::size_t count) {
    const uint32_t members = everybody(parts, count);
    const Values<T> a(w, parts, count, 1);
    uint32_t result[kLanes];
    for (unsigned l = 0; l < kLanes; ++l) {
        result[l] = 0;
        for (unsigned m = 0; m < kLanes; ++m) {
            if ((members >> m & 1) != 0 && a.lane[m] == a.lane[l]) result[l] |= 1u << m;
        }
    }
    deliver(w, parts, count, 0, result);
}

template <class T>
void match_all(Warp& w, const Part* parts, std::size_t count) {
    const uint32_t members = everybody(parts, count);
    const Values<T> a(w, parts, count, 2);
    const T value = a.lane[__builtin_ctz(members)];
    bool equal = true;
    for (unsigned l = 0; l < kLanes; ++l)
        equal &= (members >> l & 1) == 0 || a.lane[l] == value;
    uint32_t result[kLanes];
    std::fill_n(result, kLanes, equal ? members : 0);
    deliver(w, parts, count, 0, result);
    deliver_predicate(w, parts, count, 1, equal ? kAllLanes : 0);
}

enum class Reduce : uint32_t { Add, Min, Max, And, Or, Xor };

template <class T>
void reduce(Warp& w, const Part* parts, std::size_t count) {
    const uint32_t members = everybody(parts, count);
    const Values<T> a(w, parts, count, 1);
    const auto how = static_cast<Reduce>(parts[0].instruction->extra);
    bool first = true;
    T value = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((members >> l & 1) == 0) continue;
        const T x = a.lane[l];
        if (first) {
            value = x;
        } else {
            switch (how) {
            case Reduce::Add:
                value = static_cast<T>(static_cast<uint32_t>(value) + static_cast<uint32_t>(x));
                break;
            case Reduce::Min:
                value = std::min(value, x);
                break;
            case Reduce::Max:
                value = std::max(value, x);
                break;
            case Reduce::And:
                value &= x;
                break;
            case Reduce::Or:
                value |= x;
                break;
            case Reduce::Xor:
                value ^= x;
                break;
            }
        }
        first = false;
    }
    T result[kLanes];
    std::fill_n(result, kLanes, value);
    deliver(w, parts, count, 0, result);
}

void elect(Warp& w, const Part* parts, std::size_t count) {
    const uint32_t leader = static_cast<uint32_t>(__builtin_ctz(everybody(parts, count)));
    uint32_t result[kLanes];
    std::fill_n(result, kLanes, leader);
    deliver(w, parts, count, 0, result);
    deliver_predicate(w, parts, count, 1, 1u << leader);
}

void meet(Warp& w, const Part* parts, std::size_t count) {
    if (w.block->check) w.block->check->meet_in_warp(w, everybody(parts, count));
}

/// With a membermask, in the slot of that number.
template <Evaluate E, unsigned Members>
void together(Warp& w, const Instruction& i, uint32_t mask) {
    w.synchronize(i, mask, i.slots[Members], E);
}
/// The forms of old: whoever is active takes part.
template <Evaluate E>
void as_they_are(Warp& w, const Instruction& i, uint32_t mask) {
    const Part part{w.frame, &i, mask};
    E(w, &part, 1);
}

} // namespace

std::uint32_t warp_settings(const Form& form) {
    const auto position = [&form](std::initializer_list<std::string_view> names) {
        uint32_t n = 0;
        for (const std::string_view name : names) {
            if (form.has(name)) return n;
            ++n;
        }
        return 0u;
    };
    if (form.is("shfl")) return position({"up", "down", "bfly", "idx"});
    if (form.is("vote")) return position({"all", "any", "uni", "ballot"});
    if (form.is("redux")) return position({"add", "min", "max", "and", "or", "xor"});
    return 0;
}

Handler select_warp(const Form& form) {
    const bool sync = form.has("sync");
    if (form.is("bar")) return &together<&meet, 0>;
    if (form.is("shfl")) return sync ? &together<&shuffle, 5> : &as_they_are<&shuffle>;
    if (form.is("vote")) return sync ? &together<&vote, 2> : &as_they_are<&vote>;
    if (form.is("match")) {
        const bool wide = size_of(form.type()) == 8;
        if (form.has("any"))
            return wide ? &together<&match_any<uint64_t>, 2> : &together<&match_any<uint32_t>, 2>;
        return wide ? &together<&match_all<uint64_t>, 3> : &together<&match_all<uint32_t>, 3>;
    }
    if (form.is("redux")) {
        return form.type() == Type::S32 ? &together<&reduce<std::int32_t>, 2>
                                        : &together<&reduce<uint32_t>, 2>;
    }
    return &together<&elect, 2>;
}

} // namespace cudamod::emulator::ptx
