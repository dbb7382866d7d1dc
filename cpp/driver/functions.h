/// What is known of each driver function without opening a driver.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace cudamod::driver {

struct Function {
    const char* name;         ///< as CUDA's documentation writes it: "cuMemAlloc"
    const char* exported;     ///< what the header's macros make of it: "cuMemAlloc_v2"
    const char* looked_up_as; ///< the name for cuGetProcAddress
    const char* parameters;   ///< names, separated by commas
    const char* outputs;      ///< positions of the output parameters, separated by commas
    /// CUDA versions (13000 for 13.0), newest first, whose function pointer type is exactly the
    /// header's; 0 for those that are another type.
    std::array<int, 8> versions;

    /// The oldest driver that has the function with this signature.
    constexpr int needed() const {
        int oldest = 0;
        for (int version : versions)
            if (version != 0) oldest = version;
        return oldest;
    }
};

/// Every selected function, in the order of the table's slots.
std::span<const Function> functions();

/// The slot of the function that CUDA's documentation calls `name`.
std::optional<std::size_t> find_function(std::string_view name);

} // namespace cudamod::driver
