/// Extended-precision arithmetic: the carry flag CC.CF, one bit per lane.
///
/// As on the card, a subtraction sets the flag when it does *not* borrow, and subc subtracts one
/// when the flag is clear.
#include "emulator/ptx/ops/lanes.h"

namespace cudamod::emulator::ptx::ops {
namespace {

/// x + y + carry-in with the carry out of it.
template <class T>
CUDAMOD_INLINE T add_carry(T x, T y, bool in, bool& out) {
    const T partial = static_cast<T>(x + y);
    const T sum = static_cast<T>(partial + (in ? 1 : 0));
    out = partial < x || sum < partial;
    return sum;
}

template <class T, bool Subtract, bool In, bool Out>
void add(Warp& w, const Instruction& i, std::uint32_t mask) {
    T* d = w.at<T>(i.slots[0]);
    const T* a = w.at<T>(i.slots[1]);
    const T* b = w.at<T>(i.slots[2]);
    std::uint32_t carry = w.carry;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        const T second = Subtract ? static_cast<T>(~b[l]) : b[l];
        const bool in = In ? (carry >> l & 1) != 0 : Subtract;
        bool out = false;
        d[l] = add_carry(a[l], second, in, out);
        if (Out) carry = (carry & ~(1u << l)) | (out ? 1u << l : 0u);
    }
    if (Out) w.carry = carry;
}

template <class T>
CUDAMOD_INLINE T product(T a, T b, bool high, bool is_signed) {
    if constexpr (sizeof(T) == 4) {
        const std::uint64_t p =
            is_signed ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(a)} *
                                                   static_cast<std::int32_t>(b))
                      : std::uint64_t{a} * b;
        return static_cast<T>(high ? p >> 32 : p);
    } else {
        const unsigned __int128 p = is_signed
                                        ? static_cast<unsigned __int128>(
                                              static_cast<__int128>(static_cast<std::int64_t>(a)) *
                                              static_cast<std::int64_t>(b))
                                        : static_cast<unsigned __int128>(a) * b;
        return static_cast<T>(high ? p >> 64 : p);
    }
}

template <class T, bool High, bool Signed, bool In, bool Out>
void multiply_add(Warp& w, const Instruction& i, std::uint32_t mask) {
    T* d = w.at<T>(i.slots[0]);
    const T* a = w.at<T>(i.slots[1]);
    const T* b = w.at<T>(i.slots[2]);
    const T* c = w.at<T>(i.slots[3]);
    std::uint32_t carry = w.carry;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        bool out = false;
        d[l] = add_carry(product(a[l], b[l], High, Signed), c[l], In && (carry >> l & 1) != 0, out);
        if (Out) carry = (carry & ~(1u << l)) | (out ? 1u << l : 0u);
    }
    if (Out) w.carry = carry;
}

template <class T, bool Subtract>
Handler add_of(bool in, bool out) {
    if (in) return out ? &add<T, Subtract, true, true> : Handler{&add<T, Subtract, true, false>};
    return &add<T, Subtract, false, true>;
}

template <class T, bool High, bool Signed>
Handler mad_of(bool in, bool out) {
    if (in)
        return out ? &multiply_add<T, High, Signed, true, true>
                   : Handler{&multiply_add<T, High, Signed, true, false>};
    return &multiply_add<T, High, Signed, false, true>;
}

template <class T>
Handler of_width(const Form& form) {
    const bool in = form.opcode().back() == 'c', out = form.has("cc");
    if (form.opcode().substr(0, 3) == "add") return add_of<T, false>(in, out);
    if (form.opcode().substr(0, 3) == "sub") return add_of<T, true>(in, out);
    const bool high = form.has("hi"), is_signed_type = is_signed(form.type());
    if (!high) return mad_of<T, false, false>(in, out);
    return is_signed_type ? mad_of<T, true, true>(in, out) : mad_of<T, true, false>(in, out);
}

} // namespace

Handler select_extended(const Form& form) {
    return size_of(form.type()) == 4 ? of_width<std::uint32_t>(form)
                                     : of_width<std::uint64_t>(form);
}

} // namespace cudamod::emulator::ptx::ops
