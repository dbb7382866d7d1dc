#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

namespace cudamod::formats {

/// What the first bytes of a code object say that it is.
enum class ImageKind {
    Unknown,
    Ptx,           ///< text whose first directive is .version
    Cubin,         ///< ELF for e_machine 190
    Fatbin,        ///< magic 0xBA55ED50
    FatbinWrapper, ///< the struct that cudart registers: magic 0x466243B1 and a pointer to a fatbin
    LtoIr,         ///< NVVM container, magic 0x7F4E43ED
    Object,        ///< ELF of a host; may embed a fatbin
    Archive,       ///< ar archive
};

/// The name of a kind as it appears in messages: "cubin", "PTX", ...
const char* name(ImageKind kind);

ImageKind sniff(Bytes image);

/// How many bytes the image itself says that it has: a cubin through its ELF tables, a fatbin
/// through its header, an LTO-IR container not at all, PTX up to (without) its NUL or the end of
/// the bytes. Fails when that is more than there is.
Result<std::size_t> image_size(Bytes image);

/// The same for an image whose length nobody told (cuLibraryLoadData): what the headers say is
/// believed, memory beyond them isn't touched. For text, reads up to its NUL. Fails for an image of
/// no known kind, or larger than limit.
Result<std::size_t> unbounded_image_size(const void* image,
                                         std::size_t limit = std::size_t{1} << 32);

} // namespace cudamod::formats
