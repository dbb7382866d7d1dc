#include "formats/image.h"
#include "formats/ptx_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    (void)sniff(bytes);
    auto header = read_ptx_header(as_text(bytes));
    if (!header && header.reason().empty()) __builtin_trap();
    return 0;
}
