/// Loops over lanes, from which instruction families build their handlers.
#pragma once

#include "emulator/ptx/form.h"
#include "emulator/ptx/warp.h"

#if defined(__clang__)
#define CUDAMOD_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define CUDAMOD_LANES _Pragma("GCC ivdep")
#endif

#define CUDAMOD_INLINE [[gnu::always_inline]] inline
// Handlers are reached through pointers and from rounded(); copies inside the latter would only
// cost space.
#define CUDAMOD_HANDLER [[gnu::noinline]]

namespace cudamod::emulator::ptx::ops {

// Handlers of the families; null when the form's combination does not exist.
Handler select_integer(const Form& form);
Handler select_logic(const Form& form);
Handler select_float(const Form& form);
Handler select_compare(const Form& form);
Handler select_convert(const Form& form);
Handler select_extended(const Form& form);
Handler select_bits(const Form& form);
Handler select_half(const Form& form);
std::uint32_t half_settings(const Form& form);
Handler select_approximate(const Form& form);
namespace video {
Handler select(const Form& form);
std::uint32_t settings(const Form& form);
} // namespace video

namespace {

/// What `apply` gives for each lane of the mask; the other lanes keep their value.
template <class F, class D, class A>
CUDAMOD_HANDLER void unary(Warp& w, const Instruction& i, std::uint32_t mask) {
    D* d = w.at<D>(i.slots[0]);
    const A* a = w.at<A>(i.slots[1]);
    if (mask == kAllLanes) {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = F::apply(a[l]);
    } else {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = (mask >> l & 1) != 0 ? F::apply(a[l]) : d[l];
    }
}

template <class F, class D, class A, class B = A>
CUDAMOD_HANDLER void binary(Warp& w, const Instruction& i, std::uint32_t mask) {
    D* d = w.at<D>(i.slots[0]);
    const A* a = w.at<A>(i.slots[1]);
    const B* b = w.at<B>(i.slots[2]);
    if (mask == kAllLanes) {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = F::apply(a[l], b[l]);
    } else {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = (mask >> l & 1) != 0 ? F::apply(a[l], b[l]) : d[l];
    }
}

template <class F, class D, class A, class B = A, class C = B>
CUDAMOD_HANDLER void ternary(Warp& w, const Instruction& i, std::uint32_t mask) {
    D* d = w.at<D>(i.slots[0]);
    const A* a = w.at<A>(i.slots[1]);
    const B* b = w.at<B>(i.slots[2]);
    const C* c = w.at<C>(i.slots[3]);
    if (mask == kAllLanes) {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = F::apply(a[l], b[l], c[l]);
    } else {
        CUDAMOD_LANES
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = (mask >> l & 1) != 0 ? F::apply(a[l], b[l], c[l]) : d[l];
    }
}

template <class F, class D, class A, class B, class C, class E>
void quaternary(Warp& w, const Instruction& i, std::uint32_t mask) {
    D* d = w.at<D>(i.slots[0]);
    const A* a = w.at<A>(i.slots[1]);
    const B* b = w.at<B>(i.slots[2]);
    const C* c = w.at<C>(i.slots[3]);
    const E* e = w.at<E>(i.slots[4]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = F::apply(a[l], b[l], c[l], e[l]);
    }
}

/// One bit per lane for which `F::apply` holds.
template <class F, class A, class B>
CUDAMOD_INLINE std::uint32_t lanes_where(const A* a, const B* b) {
    std::uint32_t result = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        result |= F::apply(a[l], b[l]) ? 1u << l : 0u;
    return result;
}

CUDAMOD_INLINE void set_predicate(Warp& w, Slot slot, std::uint32_t value, std::uint32_t mask) {
    if (slot == kNoSlot) return;
    std::uint32_t* p = w.at<std::uint32_t>(slot);
    *p = (*p & ~mask) | (value & mask);
}

/// Calls `make.template operator()<T>()` with the C++ type of an integer or bits type.
template <class F>
Handler for_integer(Type type, F make) {
    switch (type) {
    case Type::U16:
        return make.template operator()<std::uint16_t>();
    case Type::U32:
        return make.template operator()<std::uint32_t>();
    case Type::U64:
        return make.template operator()<std::uint64_t>();
    case Type::S16:
        return make.template operator()<std::int16_t>();
    case Type::S32:
        return make.template operator()<std::int32_t>();
    case Type::S64:
        return make.template operator()<std::int64_t>();
    default:
        return nullptr;
    }
}

template <class F>
Handler for_bits(Type type, F make) {
    switch (size_of(type)) {
    case 2:
        return make.template operator()<std::uint16_t>();
    case 4:
        return make.template operator()<std::uint32_t>();
    case 8:
        return make.template operator()<std::uint64_t>();
    default:
        return nullptr;
    }
}

} // namespace
} // namespace cudamod::emulator::ptx::ops
