#include "formats/definitions.h"
#include "formats/link_input.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    for (const char* kind : {"cubin", "library", "fatbin", "nvvm"})
        (void)damage_of(kind, bytes);
    for (const char* kind : {"ptx", "cubin", "object", "library", "fatbin"})
        (void)definitions_of(kind, bytes, 90);
    if (!damage_of("ptx", bytes).empty()) __builtin_trap();
    return 0;
}
