#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <vector>

namespace cudamod::formats {

/// Decodes one zstd frame to exactly size bytes. Where no zstd library was compiled in, takes
/// libzstd from the system at the first call; without either, the reason says how to do without.
Result<std::vector<std::byte>> decompress_zstd(Bytes frame, std::uint64_t size);

} // namespace cudamod::formats
