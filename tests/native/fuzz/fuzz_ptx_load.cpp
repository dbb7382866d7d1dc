/// The PTX engine's lexer, parser and compiler: any text loads, or is refused with a reason.
#include "emulator/ptx/program.h"

#include <cstddef>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cudamod::emulator::ptx;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const LoadResult result = load(text, Target{90, 'a', 90});
    if ((result.program == nullptr) == (result.status == LoadStatus::Ok)) __builtin_trap();
    if (result.program == nullptr && result.log.empty()) __builtin_trap();
    return 0;
}
