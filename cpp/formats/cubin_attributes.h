#pragma once

#include "formats/bytes.h"
#include "formats/cubin.h"
#include "formats/result.h"

#include <cstdint>
#include <unordered_map>

namespace cudamod::formats {

/// One record of a .nv.info section: u8 form, u8 code, u16 value or payload length, payload.
struct CubinAttribute {
    std::uint8_t form;
    std::uint8_t code;
    std::uint16_t value;
    Bytes payload; ///< of form 4 alone

    /// The 32-bit word at an index of the payload, 0 where it has none.
    std::uint32_t word(std::size_t index) const {
        return read<std::uint32_t>(payload, index * 4).value_or(0);
    }
};

/// Calls visit for each record; answers false when the last one is cut off.
template <class Visit>
bool for_each_attribute(Bytes bytes, Visit&& visit) {
    constexpr std::uint8_t kFormPayload = 4;
    std::uint64_t at = 0;
    while (at < bytes.size()) {
        auto form = read<std::uint8_t>(bytes, at);
        auto code = read<std::uint8_t>(bytes, at + 1);
        auto value = read<std::uint16_t>(bytes, at + 2);
        if (!form || !code || !value) return false;
        at += 4;
        Bytes payload;
        if (*form == kFormPayload) {
            auto part = slice(bytes, at, *value);
            if (!part) return false;
            payload = *part;
            at += *value;
        }
        visit(CubinAttribute{*form, *code, *value, payload});
    }
    return true;
}

/// What .nv.info says of one function, by symbol index.
struct SymbolResources {
    std::uint32_t registers = 0;
    std::uint32_t frame_bytes = 0;
};

Result<std::unordered_map<std::uint32_t, SymbolResources>> read_symbol_resources(Bytes nv_info);

/// Parameters, bounds, cluster and barriers from .nv.info.NAME into kernel; answers the version of
/// the compiler (129 is CUDA 12.9), 0 where it isn't said.
Result<int> read_kernel_attributes(Bytes nv_info, CubinKernel& kernel);

} // namespace cudamod::formats
