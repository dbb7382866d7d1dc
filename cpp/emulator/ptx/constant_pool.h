/// Immediates as lane arrays, each value once.
#pragma once

#include "emulator/ptx/code.h"

#include <bit>
#include <map>
#include <tuple>

namespace cudamod::emulator::ptx {

class ConstantPool {
  public:
    explicit ConstantPool(Code& code) : code_(code) {}

    /// `bytes` of 1, 2, 4 or 8; the value is cut to them.
    Slot value(unsigned bytes, std::uint64_t bits) {
        if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
        const auto [found, fresh] = values_.try_emplace({bytes, bits}, 0);
        if (fresh) {
            std::uint64_t word = bits;
            for (unsigned have = bytes; have < 8; have *= 2)
                word |= word << (8 * have);
            found->second = append(bytes * kLanes / 8, word);
        }
        return found->second;
    }

    Slot predicate(bool truth) {
        const auto [found, fresh] = values_.try_emplace({0u, truth ? 1u : 0u}, 0);
        if (fresh) found->second = append(1, truth ? ~std::uint64_t{0} : 0);
        return found->second;
    }

    /// A 64-bit value that the launch fills in.
    Slot patched(Patch patch) {
        const auto key = std::make_tuple(patch.kind, patch.index, patch.addend, patch.generic);
        const auto [found, fresh] = patches_.try_emplace(key, 0);
        if (fresh) {
            found->second = append(kLanes, 0);
            patch.offset = found->second & ~kConstantBit;
            code_.patches.push_back(patch);
        }
        return found->second;
    }

  private:
    Slot append(unsigned words, std::uint64_t word) {
        const std::size_t offset = code_.constants.size() * sizeof(std::uint64_t);
        code_.constants.insert(code_.constants.end(), words, word);
        return static_cast<Slot>(offset) | kConstantBit;
    }

    Code& code_;
    std::map<std::pair<unsigned, std::uint64_t>, Slot> values_;
    std::map<std::tuple<Patch::Kind, std::uint32_t, std::int64_t, bool>, Slot> patches_;
};

} // namespace cudamod::emulator::ptx
