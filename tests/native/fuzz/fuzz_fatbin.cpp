#include "formats/fatbin.h"
#include "formats/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    (void)image_size(bytes);
    (void)find_embedded_fatbins(bytes);
    auto fatbin = read_fatbin(bytes);
    if (!fatbin) {
        if (fatbin.reason().empty()) __builtin_trap();
        return 0;
    }
    for (const auto& entry : fatbin->entries) {
        auto image = extract(entry);
        if (!image && image.reason().empty()) __builtin_trap();
    }
    return 0;
}
