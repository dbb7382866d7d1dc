#include "formats/cubin.h"
#include "formats/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    (void)image_size(bytes);
    auto cubin = read_cubin(bytes);
    if (!cubin && cubin.reason().empty()) __builtin_trap();
    return 0;
}
