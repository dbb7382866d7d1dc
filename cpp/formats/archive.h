#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <string>
#include <vector>

namespace cudamod::formats {

struct ArchiveMember {
    std::string name; ///< without path
    Bytes bytes;
};

/// The members of an ar archive (GNU's and BSD's long names) but for its symbol tables, in file
/// order; views into the bytes, which must outlive them. A thin archive, whose members are files of
/// their own, fails.
Result<std::vector<ArchiveMember>> read_archive(Bytes archive);

} // namespace cudamod::formats
