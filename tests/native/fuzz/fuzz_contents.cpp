#include "formats/archive.h"
#include "formats/contents.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    auto members = read_archive(bytes);
    if (!members && members.reason().empty()) __builtin_trap();
    auto parts = read_contents(bytes);
    if (!parts) {
        if (parts.reason().empty()) __builtin_trap();
        return 0;
    }
    for (const CodePart& part : *parts)
        if (!part.kernels && part.reason.empty()) __builtin_trap();
    return 0;
}
