#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <vector>

namespace cudamod::formats {

/// Decodes one raw LZ4 block (no frame) to exactly size bytes. Fails for any other length and for a
/// malformed block. Memory grows with what is really decoded, so a false size can't exhaust it.
Result<std::vector<std::byte>> decompress_lz4(Bytes block, std::uint64_t size);

} // namespace cudamod::formats
