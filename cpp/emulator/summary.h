#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

namespace cudamod::emulator {

/// Text that the journal takes as it is.
struct Verbatim {
    const std::string& text;
};

/// One argument as the journal shows it: names quoted, addresses and handles in hexadecimal.
template <class Argument>
std::string summarize_one(const Argument& argument) {
    char text[32];
    if constexpr (std::is_same_v<Argument, Verbatim>) {
        return argument.text;
    } else if constexpr (std::is_same_v<Argument, const char*>) {
        return argument ? "'" + std::string(argument) + "'" : "NULL";
    } else if constexpr (std::is_pointer_v<Argument>) {
        if (!argument) return "NULL";
        std::snprintf(text, sizeof text, "0x%llx",
                      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(argument)));
    } else if constexpr (std::is_same_v<Argument, unsigned long long>) { // CUdeviceptr
        std::snprintf(text, sizeof text, "0x%llx", argument);
    } else if constexpr (std::is_floating_point_v<Argument>) {
        std::snprintf(text, sizeof text, "%g", static_cast<double>(argument));
    } else {
        return std::to_string(static_cast<long long>(argument));
    }
    return text;
}

template <class... Arguments>
std::string summarize(const Arguments&... arguments) {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + summarize_one(arguments)), ...);
    return all;
}

} // namespace cudamod::emulator
