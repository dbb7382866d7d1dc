#pragma once

#include "launch/type.h"

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudamod::launch {

/// Where the driver wants a parameter, in bytes within the parameter block.
struct Extent {
    std::uint32_t offset, size;
};

/// One parameter as packing sees it. `slot`: where its bytes stand in the argument buffer; each has
/// a cell of at least 8 bytes of its own, so that scalars can be stored whole.
struct Parameter {
    Type type;
    std::uint32_t slot;
    std::uint32_t offset : 31;
    std::uint32_t takes_pointer : 1; // type.takes_pointer(), once

    Parameter(const Type& type_, std::uint32_t slot_, std::uint32_t offset_)
        : type(type_), slot(slot_), offset(offset_), takes_pointer(type_.takes_pointer()) {}
};
static_assert(sizeof(Parameter) == 32, "two to a cache line");

/// The parameters of a kernel, and how large a buffer their cells need.
struct Layout {
    std::vector<Parameter> parameters;
    std::uint32_t buffer_bytes = 0;
};

/// What cuKernelGetParamInfo says, or none with a driver older than 12.4. Needs a current context.
std::optional<std::vector<Extent>> extents_of(CUkernel kernel, const std::string& name);

/// Joins what the driver says with what a signature says; either may be missing, not both. Raises
/// std::invalid_argument when they contradict each other in count or size, naming the kernel.
Layout make_layout(const std::string& kernel, const std::optional<std::vector<Extent>>& extents,
                   const std::optional<std::vector<Type>>& types);

/// The types of a signature text such as "f32, ptr, ptr, u64". Raises std::invalid_argument for an
/// unknown name.
std::vector<Type> parse_signature(std::string_view text);

} // namespace cudamod::launch
