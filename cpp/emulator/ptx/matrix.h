/// Fragments: which element of a matrix lies where in the registers of a warp.
#pragma once

#include "emulator/ptx/form.h"
#include "emulator/ptx/warp.h"

#include <algorithm>

namespace cudamod::emulator::ptx::matrix {

struct Position {
    unsigned row = 0, column = 0;
};

constexpr unsigned register_bits(Type type) {
    return type == Type::F64 ? 64 : 32;
}

/// Elements in one register.
inline unsigned elements_per_register(Type type) {
    return register_bits(type) / bits_of(type);
}

/// Registers of a thread that hold different elements; wmma's fragments may hold each twice.
inline unsigned distinct_registers(const Fragment& fragment) {
    const unsigned elements = fragment.rows * fragment.columns / kLanes;
    return elements / elements_per_register(fragment.type);
}

/// Element `index` of a thread, counted through its registers. The layout is mma's; that of wmma,
/// which PTX leaves open, continues it to the larger shapes.
inline Position position_of(const Fragment& fragment, unsigned lane, unsigned index) {
    const unsigned group = lane >> 2, member = lane & 3;
    if (fragment.role == Fragment::Role::Accumulator) {
        const unsigned block = index >> 1, blocks = fragment.rows / 8u;
        return {group + 8 * (block % blocks), 2 * member + (index & 1) + 8 * (block / blocks)};
    }
    const unsigned each = elements_per_register(fragment.type);
    const unsigned number = index / each % distinct_registers(fragment);
    const unsigned within = member * each + index % each;
    if (fragment.role == Fragment::Role::Left) {
        const unsigned blocks = fragment.rows / 8u;
        return {group + 8 * (number % blocks), within + 4 * each * (number / blocks)};
    }
    const unsigned blocks = fragment.rows / (4 * each);
    return {within + 4 * each * (number % blocks), group + 8 * (number / blocks)};
}

/// Faults unless all 32 threads of the warp take part.
void require_whole_warp(const Warp& w, const Part* parts, std::size_t count);

/// One register of all lanes, wherever their frames are.
template <class T>
void read_register(const Warp& w, const Part* parts, std::size_t count, Slot slot, T* values) {
    for (std::size_t n = 0; n < count; ++n) {
        std::byte* base = (slot & kConstantBit) != 0 ? w.bases[1] : parts[n].frame->registers;
        const T* from = reinterpret_cast<const T*>(base + (slot & ~kConstantBit));
        if (n == 0) {
            std::copy_n(from, kLanes, values);
            continue;
        }
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((parts[n].mask >> l & 1) != 0) values[l] = from[l];
        }
    }
}

template <class T>
void write_register(const Part* parts, std::size_t count, Slot slot, const T* values) {
    for (std::size_t n = 0; n < count; ++n) {
        T* to = reinterpret_cast<T*>(parts[n].frame->registers + slot);
        for (unsigned l = 0; l < kLanes; ++l) {
            if ((parts[n].mask >> l & 1) != 0) to[l] = values[l];
        }
    }
}

// Instruction::extra of all: Code::matrices; slots[0]: every lane's membermask.
void multiply(Warp& w, const Instruction& i, std::uint32_t mask);       ///< d = a * b + c
void load_matrices(Warp& w, const Instruction& i, std::uint32_t mask);  ///< ldmatrix into d
void store_matrices(Warp& w, const Instruction& i, std::uint32_t mask); ///< stmatrix of a
void transpose(Warp& w, const Instruction& i, std::uint32_t mask);      ///< movmatrix: d from a
/// wmma.load into d; slots[1]: stride, or none. Memory by Instruction::immediate's address.
void load_fragment(Warp& w, const Instruction& i, std::uint32_t mask);
void store_fragment(Warp& w, const Instruction& i, std::uint32_t mask); ///< wmma.store of a

} // namespace cudamod::emulator::ptx::matrix
