#include "formats/elf.h"
#include "formats/fatbin.h"

#include <algorithm>

namespace cudamod::formats {

Result<std::vector<Bytes>> find_embedded_fatbins(Bytes object) {
    auto elf = read_elf(object);
    if (!elf) return elf.failure();
    std::vector<Bytes> found;
    for (const auto& section : elf->sections) {
        if (section.name != ".nv_fatbin" && section.name != "__nv_relfatbin") continue;
        // Fatbins of several translation units follow each other, padded with zeros to multiples of
        // 8 or 16.
        Bytes rest = section.bytes;
        while (rest.size() >= kFatbinHeaderBytes) {
            if (*read<std::uint32_t>(rest, 0) != kFatbinMagic) {
                rest = rest.subspan(8);
                continue;
            }
            auto size = fatbin_size(rest);
            if (!size) return size.failure();
            if (*size > rest.size()) {
                return Failure{"fatbin: in section " + std::string(section.name) +
                               ", says it has " + std::to_string(*size) + " bytes, but only " +
                               std::to_string(rest.size()) + " are there"};
            }
            found.push_back(rest.first(*size));
            rest = rest.subspan(*size);
            const auto misaligned =
                static_cast<std::size_t>(rest.data() - section.bytes.data()) % 8;
            if (misaligned != 0) rest = rest.subspan(std::min(rest.size(), 8 - misaligned));
        }
    }
    return found;
}

} // namespace cudamod::formats
