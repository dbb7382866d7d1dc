#include "formats/bytes.h"
#include "formats/mangled_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::formats;
    auto text = as_text(Bytes(reinterpret_cast<const std::byte*>(data), size));
    auto name = read_mangled_name(text);
    if (name && name->demangled.empty()) __builtin_trap();
    return 0;
}
