#include "launch/layout.h"

#include "driver/library.h"
#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"

#include <algorithm>
#include <stdexcept>

namespace cudamod::launch {

namespace {

constexpr std::uint32_t kCell = 8;

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

} // namespace

std::optional<std::vector<Extent>> extents_of(CUkernel kernel, const std::string& name) {
    if (!driver::has("cuKernelGetParamInfo")) return std::nullopt;
    std::vector<Extent> extents;
    for (;;) {
        std::size_t offset = 0, size = 0;
        CUresult status =
            driver::table.cuKernelGetParamInfo(kernel, extents.size(), &offset, &size);
        // The driver has no count before 13.1: the first index beyond the last answers
        // INVALID_VALUE.
        if (status == CUDA_ERROR_INVALID_VALUE) break;
        driver::check(status, "cuKernelGetParamInfo", [&] { return "kernel '" + name + "'"; });
        extents.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
    }
    driver::take_log(CUDA_ERROR_INVALID_VALUE);
    return extents;
}

Layout make_layout(const std::string& kernel, const std::optional<std::vector<Extent>>& extents,
                   const std::optional<std::vector<Type>>& types) {
    if (extents && types && extents->size() != types->size())
        throw std::invalid_argument(
            "kernel '" + kernel + "' takes " + std::to_string(extents->size()) +
            " parameters, but the signature has " + std::to_string(types->size()));
    Layout layout;
    std::uint32_t offset = 0;
    std::size_t count = extents ? extents->size() : types->size();
    for (std::size_t i = 0; i < count; ++i) {
        Type type = types ? (*types)[i] : unknown_of_size((*extents)[i].size);
        if (extents) {
            std::uint32_t size = (*extents)[i].size;
            if (type.size == 0) type = unknown_of_size(size);
            if (type.size != size)
                throw std::invalid_argument("kernel '" + kernel + "': parameter " +
                                            std::to_string(i) + " has " + std::to_string(size) +
                                            " bytes, but the signature says " + name_of(type) +
                                            " (" + std::to_string(type.size) + " bytes)");
            offset = (*extents)[i].offset;
        } else {
            std::uint32_t alignment = std::min<std::uint32_t>(type.size & -type.size, 16);
            offset = (offset + alignment - 1) / alignment * alignment;
        }
        layout.parameters.emplace_back(type, layout.buffer_bytes, offset);
        offset += type.size;
        layout.buffer_bytes += std::max(kCell, (type.size + kCell - 1) / kCell * kCell);
    }
    return layout;
}

std::vector<Type> parse_signature(std::string_view text) {
    std::vector<Type> types;
    if (trim(text).empty()) return types;
    for (std::size_t index = 0;; ++index) {
        std::size_t comma = text.find(',');
        std::string_view name = trim(text.substr(0, comma));
        std::optional<Type> type = type_of_name(name);
        if (!type)
            throw std::invalid_argument(
                "signature: parameter " + std::to_string(index) + " has the unknown type '" +
                std::string(name) +
                "' (known: i8..i64, u8..u64, b8..b64, f16, bf16, f32, f64, bool, c64, c128, ptr, "
                "bytes[N])");
        types.push_back(*type);
        if (comma == std::string_view::npos) return types;
        text.remove_prefix(comma + 1);
    }
}

} // namespace cudamod::launch
