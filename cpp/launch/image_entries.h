#pragma once

#include "formats/fatbin.h"
#include "formats/ptx_header.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace cudamod::launch {

/// What the PTX of an image says of its kernels' parameters: that of a PTX image, or of a fatbin's
/// first PTX, which is decompressed and read when it is first asked for. Safe for any thread.
class ImageEntries {
  public:
    /// Keeps nothing of the bytes but what it needs later.
    explicit ImageEntries(formats::Bytes image);

    /// The entry of a name; null where the image has no PTX, or none that can be read.
    const formats::PtxEntry* find(std::string_view kernel) const;

  private:
    mutable std::once_flag read_;
    mutable std::optional<formats::PtxHeader> header_;
    mutable std::optional<formats::FatbinEntry> packed_; ///< its payload lies in `payload_`
    mutable std::vector<std::byte> payload_;
};

} // namespace cudamod::launch
