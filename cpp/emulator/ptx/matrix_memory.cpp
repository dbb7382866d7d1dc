/// ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/matrix.h"
#include "emulator/ptx/worker.h"

#include <array>
#include <cstring>

namespace cudamod::emulator::ptx::matrix {
namespace {

using std::uint16_t, std::uint32_t, std::uint64_t;

const MatrixSite& site_of(const Warp& w, const Part* parts) {
    return w.worker->grid.code.matrices[parts[0].instruction->extra];
}

unsigned lane_in(std::uint32_t mask) {
    return static_cast<unsigned>(__builtin_ctz(mask));
}

/// The instruction that a lane is in.
const Instruction& instruction_of(const Part* parts, std::size_t count, unsigned lane) {
    std::size_t n = 0;
    while (n + 1 < count && (parts[n].mask >> lane & 1) == 0)
        ++n;
    return *parts[n].instruction;
}

/// Rows of 8 elements of 16 bits in shared memory; thread l names row l % 8 of matrix l / 8.
struct Rows {
    std::byte* at[kLanes] = {};

    Rows(Warp& w, const Part* parts, std::size_t count, const MatrixSite& site) {
        uint64_t address[kLanes];
        const Instruction& first = *parts[0].instruction;
        read_register(w, parts, count, first.slots[kAddressSlot], address);
        for (unsigned l = 0; l < 8 * site.matrices; ++l) {
            const Instruction& i = instruction_of(parts, count, l);
            uint64_t where = address[l] + static_cast<uint64_t>(i.immediate);
            if (static_cast<Where>(site.where) == Where::Generic)
                where = w.worker->shared_offset(w, i, l, where);
            at[l] = w.worker->find_shared(w, i, l, where, 16);
        }
    }
};

/// Element `e` of lane `l` in an 8x8 matrix.
unsigned offset_of(unsigned l, unsigned e, bool transposed, unsigned& row) {
    row = transposed ? 2 * (l % 4) + e : l / 4;
    return transposed ? l / 4 : 2 * (l % 4) + e;
}

void evaluate_load_matrices(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const MatrixSite& site = site_of(w, parts);
    const Rows rows(w, parts, count, site);
    uint32_t values[4][kLanes];
    for (unsigned m = 0; m < site.matrices; ++m) {
        for (unsigned l = 0; l < kLanes; ++l) {
            values[m][l] = 0;
            for (unsigned e = 0; e < 2; ++e) {
                unsigned row = 0;
                const unsigned column = offset_of(l, e, site.transposed, row);
                uint16_t element = 0;
                std::memcpy(&element, rows.at[8 * m + row] + 2 * column, sizeof element);
                values[m][l] |= uint32_t{element} << (16 * e);
            }
        }
    }
    for (unsigned m = 0; m < site.matrices; ++m)
        write_register(parts, count, site.d.slots[m], values[m]);
}

void evaluate_store_matrices(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const MatrixSite& site = site_of(w, parts);
    const Rows rows(w, parts, count, site);
    for (unsigned m = 0; m < site.matrices; ++m) {
        uint32_t values[kLanes];
        read_register(w, parts, count, site.a.slots[m], values);
        for (unsigned l = 0; l < kLanes; ++l) {
            for (unsigned e = 0; e < 2; ++e) {
                unsigned row = 0;
                const unsigned column = offset_of(l, e, site.transposed, row);
                const auto element = static_cast<uint16_t>(values[l] >> (16 * e));
                std::memcpy(rows.at[8 * m + row] + 2 * column, &element, sizeof element);
            }
        }
    }
}

void evaluate_transpose(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const MatrixSite& site = site_of(w, parts);
    uint32_t from[kLanes], to[kLanes];
    read_register(w, parts, count, site.a.slots[0], from);
    for (unsigned l = 0; l < kLanes; ++l) {
        to[l] = 0;
        for (unsigned e = 0; e < 2; ++e) {
            // Row and column of the result are column and row of the source.
            unsigned row = 0;
            const unsigned column = offset_of(l, e, true, row);
            to[l] |= (from[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff) << (16 * e);
        }
    }
    write_register(parts, count, site.d.slots[0], to);
}

/// Memory of wmma's fragments: every thread hands in the same address and stride.
class FragmentMemory {
  public:
    FragmentMemory(Warp& w, const Part* parts, std::size_t count, const Fragment& fragment,
                   bool write)
        : w_(w), i_(*parts[0].instruction), site_(site_of(w, parts)), fragment_(fragment),
          write_(write), lane_(lane_in(parts[0].mask)) {
        uint64_t address[kLanes];
        read_register(w, parts, count, i_.slots[kAddressSlot], address);
        base_ = address[lane_] + static_cast<uint64_t>(i_.immediate);
        stride_ = site_.stride;
        if (i_.slots[1] != kNoSlot) {
            uint32_t strides[kLanes];
            read_register(w, parts, count, i_.slots[1], strides);
            stride_ = strides[lane_];
        }
    }

    /// Where the element lies; `bytes` are accessed.
    std::byte* at(unsigned lane, const Position& position, uint32_t bytes) const {
        const uint64_t element = site_.transposed
                                     ? uint64_t{position.column} * stride_ + position.row
                                     : uint64_t{position.row} * stride_ + position.column;
        const uint64_t address = base_ + element * bits_of(fragment_.type) / 8;
        switch (static_cast<Where>(site_.where)) {
        case Where::Shared:
            return w_.worker->find_shared(w_, i_, lane, address, bytes);
        case Where::Global:
            return w_.worker->find_global(w_, i_, lane, address, bytes, write_);
        default:
            return w_.worker->find_generic(w_, i_, lane, address, bytes, write_);
        }
    }

  private:
    Warp& w_;
    const Instruction& i_;
    const MatrixSite& site_;
    const Fragment& fragment_;
    bool write_;
    unsigned lane_;
    uint64_t base_ = 0, stride_ = 0;
};

template <class T>
void load_elements(Warp& w, const Part* parts, std::size_t count, const Fragment& fragment) {
    const FragmentMemory memory(w, parts, count, fragment, false);
    const unsigned bits = bits_of(fragment.type);
    // What is smaller than a byte lies in the order of the registers and is read by the register.
    const unsigned each = bits < 8 ? 1 : elements_per_register(fragment.type);
    const unsigned step = elements_per_register(fragment.type) / each;
    const uint32_t bytes = bits < 8 ? sizeof(T) : bits / 8;
    std::vector<std::array<T, kLanes>> values(fragment.slots.size());
    for (unsigned r = 0; r < values.size(); ++r) {
        for (unsigned l = 0; l < kLanes; ++l) {
            values[r][l] = 0;
            for (unsigned e = 0; e < each; ++e) {
                T element = 0;
                const Position at = position_of(fragment, l, (r * each + e) * step);
                std::memcpy(&element, memory.at(l, at, bytes), bytes);
                values[r][l] |= static_cast<T>(element << (bits * e));
            }
        }
    }
    for (unsigned r = 0; r < values.size(); ++r)
        write_register(parts, count, fragment.slots[r], values[r].data());
}

template <class T>
void store_elements(Warp& w, const Part* parts, std::size_t count, const Fragment& fragment) {
    const FragmentMemory memory(w, parts, count, fragment, true);
    const unsigned bits = bits_of(fragment.type), each = elements_per_register(fragment.type);
    for (unsigned r = 0; r < fragment.slots.size(); ++r) {
        T values[kLanes];
        read_register(w, parts, count, fragment.slots[r], values);
        for (unsigned l = 0; l < kLanes; ++l) {
            for (unsigned e = 0; e < each; ++e) {
                const Position at = position_of(fragment, l, r * each + e);
                const T element = static_cast<T>(values[l] >> (bits * e));
                std::memcpy(memory.at(l, at, bits / 8), &element, bits / 8);
            }
        }
    }
}

void evaluate_load_fragment(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const Fragment& fragment = site_of(w, parts).d;
    if (fragment.type == Type::F64) {
        load_elements<uint64_t>(w, parts, count, fragment);
    } else {
        load_elements<uint32_t>(w, parts, count, fragment);
    }
}

void evaluate_store_fragment(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const Fragment& fragment = site_of(w, parts).a;
    if (fragment.type == Type::F64) {
        store_elements<uint64_t>(w, parts, count, fragment);
    } else {
        store_elements<uint32_t>(w, parts, count, fragment);
    }
}

} // namespace

void require_whole_warp(const Warp& w, const Part* parts, std::size_t count) {
    std::uint32_t here = 0;
    for (std::size_t n = 0; n < count; ++n)
        here |= parts[n].mask;
    if (here == kAllLanes) return;
    w.fault(FaultKind::IllegalInstruction, *parts[0].instruction, lane_in(parts[0].mask),
            "needs all 32 threads of the warp, " + std::to_string(__builtin_popcount(here)) +
                " are there");
}

void load_matrices(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_load_matrices);
}
void store_matrices(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_store_matrices);
}
void transpose(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_transpose);
}
void load_fragment(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_load_fragment);
}
void store_fragment(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_store_fragment);
}

} // namespace cudamod::emulator::ptx::matrix
