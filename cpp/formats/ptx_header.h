#pragma once

#include "formats/bytes.h"
#include "formats/result.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

enum class PtxClass {
    Bits,
    Unsigned,
    Signed,
    Float,
    Predicate,
    Opaque /* .texref .samplerref .surfref */
};

struct PtxParameter {
    std::string name;
    std::string type; ///< as written, without its dot: "u64", "b8", "f16x2"
    PtxClass type_class;
    std::uint32_t element_size; ///< bytes
    std::uint32_t alignment;
    bool is_array;
    std::uint64_t size;        ///< bytes of the whole parameter
    std::uint64_t offset;      ///< in the parameter block, by the alignment rules of PTX
    bool is_pointer = false;   ///< declared .ptr
    std::string pointer_space; ///< "global", "const", "local", "shared", or empty: generic
    std::uint32_t pointer_alignment = 0; ///< of what it points to; 0 when not given
};

struct PtxEntry {
    std::string name;
    std::vector<PtxParameter> parameters;
    std::uint64_t parameter_bytes = 0;
    std::array<std::uint32_t, 3>
        max_threads{}; ///< .maxntid; zeros when absent, 1 where a dimension isn't written
    std::array<std::uint32_t, 3> required_threads{}; ///< .reqntid
    std::array<std::uint32_t, 3> required_cluster{}; ///< .reqnctapercluster
    std::uint32_t min_blocks = 0;                    ///< .minnctapersm
    std::uint32_t max_registers = 0;                 ///< .maxnreg
    std::uint32_t max_cluster_rank = 0;              ///< .maxclusterrank
    bool explicit_cluster = false;
    bool blocks_are_clusters = false;
};

struct PtxHeader {
    int version_major = 0;
    int version_minor = 0;
    int sm = 0;
    char suffix = '\0';                      ///< 'a' or 'f'
    std::vector<std::string> target_options; ///< "debug", "texmode_independent", ...
    int address_size = 32;                   ///< PTX's default where .address_size is absent
    std::vector<PtxEntry> entries;

    const PtxEntry* find_entry(std::string_view name) const;
};

/// Reads the directives and the entries of a PTX text, up to its end or first NUL, without looking
/// into function bodies.
Result<PtxHeader> read_ptx_header(std::string_view text);

} // namespace cudamod::formats
