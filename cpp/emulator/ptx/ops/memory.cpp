/// Loads and stores.
///
/// Fast for what kernels do most: consecutive lanes on consecutive elements, all lanes on one, or
/// any pattern inside one allocation. What fails there goes lane by lane, so that a fault names its
/// lane.
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/ops/lanes.h"
#include "emulator/ptx/worker.h"

#include <cstring>

namespace cudamod::emulator::ptx::ops {

Handler select_load(unsigned bytes, unsigned vector, Where where);
Handler select_store(unsigned bytes, unsigned vector, Where where);
Handler select_parameter(unsigned bytes, unsigned vector);
Handler select_resize(unsigned to, unsigned from, bool sign);
void add_immediate(Warp& w, const Instruction& i, std::uint32_t mask);

namespace {

using std::uint32_t, std::uint64_t;

struct View {
    uint64_t begin, end;
    std::byte* host;
};

template <Where S>
CUDAMOD_INLINE View view_of(const Warp& w, const Instruction& i) {
    if constexpr (S == Where::Shared) return {0, w.block->shared.size(), w.block->shared.data()};
    const Window& window = w.worker->windows.data()[i.cache];
    return {window.begin, window.end, window.host};
}

/// What to add to a lane's base for the host address; it may lie far outside of the view.
CUDAMOD_INLINE uint64_t origin_of(const View& view, const Instruction& i) {
    return reinterpret_cast<uint64_t>(view.host) + static_cast<uint64_t>(i.immediate) - view.begin;
}

template <Where S>
std::byte* locate(Warp& w, const Instruction& i, unsigned l, uint64_t address, uint32_t bytes,
                  bool write) {
    if constexpr (S == Where::Local) {
        if (address % bytes == 0 && address + bytes <= w.local_limit)
            return w.local + std::size_t{l} * w.local_stride + address;
        return w.worker->find_local(w, i, l, address, bytes);
    } else {
        const View view = view_of<S>(w, i);
        if (address % bytes == 0 && address >= view.begin && address < view.end &&
            view.end - address >= bytes) {
            return view.host + (address - view.begin);
        }
        if constexpr (S == Where::Shared) return w.worker->find_shared(w, i, l, address, bytes);
        if constexpr (S == Where::Generic)
            return w.worker->find_generic(w, i, l, address, bytes, write);
        return w.worker->find_global(w, i, l, address, bytes, write);
    }
}

/// Whether all lanes' accesses are aligned and inside the view.
template <uint32_t Bytes>
CUDAMOD_INLINE bool all_inside(const View view, const uint64_t* base, int64_t displacement) {
    if (view.end - view.begin < Bytes) return false;
    const uint64_t last = view.end - view.begin - Bytes,
                   shift = static_cast<uint64_t>(displacement) - view.begin;
    uint64_t bad = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const uint64_t offset = base[l] + shift;
        bad |= (offset > last ? 1u : 0u) |
               ((base[l] + static_cast<uint64_t>(displacement)) & (Bytes - 1));
    }
    return bad == 0;
}

CUDAMOD_INLINE bool consecutive(const uint64_t* base, uint64_t step) {
    uint64_t difference = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        difference |= base[l] - base[0] - l * step;
    return difference == 0;
}

template <class T>
CUDAMOD_INLINE T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T, unsigned V>
struct Registers {
    T* lanes[V];
    CUDAMOD_INLINE Registers(const Warp& w, const Instruction& i) {
        for (unsigned n = 0; n < V; ++n)
            lanes[n] = i.slots[n] == kNoSlot ? nullptr : w.at<T>(i.slots[n]);
    }
    CUDAMOD_INLINE void set(unsigned l, const std::byte* from) {
        for (unsigned n = 0; n < V; ++n) {
            if (lanes[n] != nullptr) lanes[n][l] = read<T>(from + n * sizeof(T));
        }
    }
    CUDAMOD_INLINE void get(unsigned l, std::byte* to) const {
        for (unsigned n = 0; n < V; ++n)
            std::memcpy(to + n * sizeof(T), &lanes[n][l], sizeof(T));
    }
};

template <class T, unsigned V, Where S>
void load(Warp& w, const Instruction& i, uint32_t mask) {
    constexpr uint32_t kBytes = sizeof(T) * V;
    const uint64_t* base = w.at<uint64_t>(i.slots[kAddressSlot]);
    Registers<T, V> values(w, i);
    if constexpr (S != Where::Local) {
        if (mask == kAllLanes) {
            if (V == 1 && consecutive(base, kBytes)) {
                const uint64_t first = base[0] + static_cast<uint64_t>(i.immediate);
                const View view = view_of<S>(w, i);
                if (first % kBytes == 0 && first >= view.begin && first < view.end &&
                    view.end - first >= kLanes * kBytes && values.lanes[0] != nullptr) {
                    std::memcpy(values.lanes[0], view.host + (first - view.begin), kLanes * kBytes);
                    return;
                }
            } else if (base[1] == base[0] && consecutive(base, 0)) {
                const std::byte* from =
                    locate<S>(w, i, 0, base[0] + static_cast<uint64_t>(i.immediate), kBytes, false);
                for (unsigned n = 0; n < V; ++n) {
                    const T value = read<T>(from + n * sizeof(T));
                    if (values.lanes[n] == nullptr) continue;
                    for (unsigned l = 0; l < kLanes; ++l)
                        values.lanes[n][l] = value;
                }
                return;
            }
            const View view = view_of<S>(w, i);
            if (all_inside<kBytes>(view, base, i.immediate)) {
                const uint64_t origin = origin_of(view, i);
                uint64_t addresses[kLanes]; // the destination may be the address register
                std::memcpy(addresses, base, sizeof addresses);
                for (unsigned l = 0; l < kLanes; ++l)
                    values.set(l, reinterpret_cast<const std::byte*>(origin + addresses[l]));
                return;
            }
        }
    }
    const std::byte* from[kLanes];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        from[l] = locate<S>(w, i, l, base[l] + static_cast<uint64_t>(i.immediate), kBytes, false);
    }
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        values.set(l, from[l]);
    }
}

template <class T, unsigned V, Where S>
void store(Warp& w, const Instruction& i, uint32_t mask) {
    constexpr uint32_t kBytes = sizeof(T) * V;
    const uint64_t* base = w.at<uint64_t>(i.slots[kAddressSlot]);
    const Registers<T, V> values(w, i);
    if constexpr (S != Where::Local) {
        if (mask == kAllLanes) {
            const View view = view_of<S>(w, i);
            const uint64_t first = base[0] + static_cast<uint64_t>(i.immediate);
            if (V == 1 && consecutive(base, kBytes) && first % kBytes == 0 && first >= view.begin &&
                first < view.end && view.end - first >= kLanes * kBytes) {
                std::memcpy(view.host + (first - view.begin), values.lanes[0], kLanes * kBytes);
                return;
            }
            if (all_inside<kBytes>(view, base, i.immediate)) {
                const uint64_t origin = origin_of(view, i);
                for (unsigned l = 0; l < kLanes; ++l)
                    values.get(l, reinterpret_cast<std::byte*>(origin + base[l]));
                return;
            }
        }
    }
    std::byte* to[kLanes];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        to[l] = locate<S>(w, i, l, base[l] + static_cast<uint64_t>(i.immediate), kBytes, true);
    }
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        values.get(l, to[l]);
    }
}

/// A kernel's parameter: the loader has checked that it lies inside the block.
template <class T, unsigned V>
void load_parameter(Warp& w, const Instruction& i, uint32_t mask) {
    const std::byte* from = w.worker->grid.launch.parameters + i.immediate;
    for (unsigned n = 0; n < V; ++n) {
        if (i.slots[n] == kNoSlot) continue;
        T* d = w.at<T>(i.slots[n]);
        const T value = read<T>(from + n * sizeof(T));
        if (mask == kAllLanes) {
            for (unsigned l = 0; l < kLanes; ++l)
                d[l] = value;
        } else {
            for (unsigned l = 0; l < kLanes; ++l)
                d[l] = (mask >> l & 1) != 0 ? value : d[l];
        }
    }
}

template <class F>
Handler for_width(unsigned bytes, F make) {
    switch (bytes) {
    case 1:
        return make.template operator()<std::uint8_t>();
    case 2:
        return make.template operator()<std::uint16_t>();
    case 4:
        return make.template operator()<uint32_t>();
    default:
        return make.template operator()<uint64_t>();
    }
}

template <Where S>
Handler load_from(unsigned bytes, unsigned vector) {
    return for_width(bytes, [&]<class T>() -> Handler {
        return vector == 1   ? &load<T, 1, S>
               : vector == 2 ? Handler{&load<T, 2, S>}
                             : &load<T, 4, S>;
    });
}
template <Where S>
Handler store_to(unsigned bytes, unsigned vector) {
    return for_width(bytes, [&]<class T>() -> Handler {
        return vector == 1   ? &store<T, 1, S>
               : vector == 2 ? Handler{&store<T, 2, S>}
                             : &store<T, 4, S>;
    });
}

template <class D, class S>
struct Resize {
    CUDAMOD_INLINE static D apply(S a) { return static_cast<D>(a); }
};

} // namespace

Handler select_load(unsigned bytes, unsigned vector, Where where) {
    switch (where) {
    case Where::Global:
        return load_from<Where::Global>(bytes, vector);
    case Where::Shared:
        return load_from<Where::Shared>(bytes, vector);
    case Where::Local:
        return load_from<Where::Local>(bytes, vector);
    default:
        return load_from<Where::Generic>(bytes, vector);
    }
}

Handler select_store(unsigned bytes, unsigned vector, Where where) {
    switch (where) {
    case Where::Global:
        return store_to<Where::Global>(bytes, vector);
    case Where::Shared:
        return store_to<Where::Shared>(bytes, vector);
    case Where::Local:
        return store_to<Where::Local>(bytes, vector);
    default:
        return store_to<Where::Generic>(bytes, vector);
    }
}

Handler select_parameter(unsigned bytes, unsigned vector) {
    return for_width(bytes, [&]<class T>() -> Handler {
        return vector == 1   ? &load_parameter<T, 1>
               : vector == 2 ? Handler{&load_parameter<T, 2>}
                             : &load_parameter<T, 4>;
    });
}

Handler select_resize(unsigned to, unsigned from, bool sign) {
    return for_width(to, [&]<class D>() -> Handler {
        return for_width(from, [&]<class S>() -> Handler {
            using Signed = std::make_signed_t<S>;
            return sign ? &unary<Resize<D, Signed>, D, Signed>
                        : Handler{&unary<Resize<D, S>, D, S>};
        });
    });
}

void add_immediate(Warp& w, const Instruction& i, uint32_t mask) {
    uint64_t* d = w.at<uint64_t>(i.slots[0]);
    const uint64_t* a = w.at<uint64_t>(i.slots[1]);
    const auto b = static_cast<uint64_t>(i.immediate);
    CUDAMOD_LANES
    for (unsigned l = 0; l < kLanes; ++l)
        d[l] = (mask >> l & 1) != 0 ? a[l] + b : d[l];
}

} // namespace cudamod::emulator::ptx::ops
