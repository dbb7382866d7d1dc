/// mov between one wide register and several narrow ones.
#include "emulator/ptx/runtime.h"

#include <cstring>

namespace cudamod::emulator::ptx {
namespace {

/// Element n of lane l lies at (l * Count + n) * sizeof(T) of the wide register.
template <class T, unsigned Count>
void pack(Warp& w, const Instruction& i, std::uint32_t mask) {
    T values[kLanes * Count];
    T* wide = w.at<T>(i.slots[0]);
    std::memcpy(values, wide, sizeof values);
    for (unsigned n = 0; n < Count; ++n) {
        const T* from = w.at<T>(i.slots[n + 1]);
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((mask >> l & 1) != 0) values[l * Count + n] = from[l];
        }
    }
    std::memcpy(wide, values, sizeof values);
}

template <class T, unsigned Count>
void unpack(Warp& w, const Instruction& i, std::uint32_t mask) {
    T values[kLanes * Count];
    std::memcpy(values, w.at<T>(i.slots[0]), sizeof values);
    for (unsigned n = 0; n < Count; ++n) {
        if (i.slots[n + 1] == kNoSlot) continue;
        T* to = w.at<T>(i.slots[n + 1]);
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((mask >> l & 1) != 0) to[l] = values[l * Count + n];
        }
    }
}

template <unsigned Count>
Handler packed(unsigned bytes) {
    return bytes == 1   ? &pack<std::uint8_t, Count>
           : bytes == 2 ? Handler{&pack<std::uint16_t, Count>}
                        : &pack<std::uint32_t, Count>;
}
template <unsigned Count>
Handler unpacked(unsigned bytes) {
    return bytes == 1   ? &unpack<std::uint8_t, Count>
           : bytes == 2 ? Handler{&unpack<std::uint16_t, Count>}
                        : &unpack<std::uint32_t, Count>;
}

} // namespace

Handler pack_elements(unsigned bytes, unsigned count) {
    return count == 2 ? packed<2>(bytes) : packed<4>(bytes);
}
Handler unpack_elements(unsigned bytes, unsigned count) {
    return count == 2 ? unpacked<2>(bytes) : unpacked<4>(bytes);
}

} // namespace cudamod::emulator::ptx
