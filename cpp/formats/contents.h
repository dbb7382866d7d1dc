#pragma once

#include "formats/fatbin.h"
#include "formats/image.h"

#include <optional>
#include <string>
#include <vector>

namespace cudamod::formats {

/// One piece of code for one architecture, wherever in a file it lies.
struct CodePart {
    ImageKind kind = ImageKind::Unknown; ///< Ptx, Cubin, LtoIr; Unknown for anything else
    int sm = 0;                          ///< 0: it does not say
    char suffix = '\0';                  ///< 'a', 'f' or '\0'
    Compression compression = Compression::None;
    bool relocatable = false;                        ///< to be linked before it can be loaded
    std::string member;                              ///< of the archive, or empty
    std::size_t size = 0;                            ///< bytes as stored
    std::optional<std::vector<std::string>> kernels; ///< nothing when they can't be read
    std::string reason;                              ///< why, then
};

/// Every piece of code in an image: PTX, a cubin or LTO-IR itself, the entries of a fatbin, those
/// of the fatbins embedded in a host object or executable, and all of these in an archive's
/// members. Members of an archive without device code count for nothing. Fails for what none of
/// these is and for damaged files.
Result<std::vector<CodePart>> read_contents(Bytes image);

struct EmbeddedFatbin {
    std::string member; ///< of the archive, or empty
    Bytes bytes;
};

/// The fatbins in an image, in file order: the image itself, those that a host object or executable
/// embeds, and those of an archive's members. Fails for what none of these is.
Result<std::vector<EmbeddedFatbin>> find_fatbins(Bytes image);

} // namespace cudamod::formats
