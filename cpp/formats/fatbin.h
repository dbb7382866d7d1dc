#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;
inline constexpr std::size_t kFatbinHeaderBytes = 16;

enum class FatbinKind { Ptx, Elf, LtoIr, Other };
enum class Compression { None, Lz4, Zstd };

struct FatbinEntry {
    FatbinKind kind;
    std::uint16_t raw_kind; ///< 1 PTX, 2 ELF, 8 LTO-IR
    int sm;
    char suffix;         ///< 'a', 'f' or '\0'
    std::uint16_t major; ///< of the PTX ISA for PTX, of the format else
    std::uint16_t minor;
    bool debug;
    Compression compression;
    std::string_view identifier; ///< source file, when the image was built with debug information
    Bytes payload; ///< as stored: compressed when compression says so, padding cut off where known
    std::uint64_t uncompressed_size; ///< 0 when stored uncompressed
};

/// The entries of one fatbin, in file order; views into the bytes, which must outlive it.
struct Fatbin {
    std::vector<FatbinEntry> entries;
};

Result<Fatbin> read_fatbin(Bytes image);

/// What the header says of the length, header included; reads the header alone.
Result<std::size_t> fatbin_size(Bytes image);

/// The entry's image, decompressed. PTX comes without trailing padding. LTO-IR inside a fatbin is
/// encoded and not readable; zstd needs a library (see formats/zstd.h): both fail with a reason
/// that says so.
Result<std::vector<std::byte>> extract(const FatbinEntry& entry);

/// The fatbin that a registered wrapper struct (magic 0x466243B1) points to. The pointer inside is
/// believed.
Result<const void*> unwrap_fatbin(const void* wrapper);

/// The fatbins embedded in a host object or executable (section .nv_fatbin or __nv_relfatbin), in
/// file order.
Result<std::vector<Bytes>> find_embedded_fatbins(Bytes object);

} // namespace cudamod::formats
