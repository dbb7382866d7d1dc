/// The environment variables: each name is written here, and only here.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace cudamod::driver {

struct Variable {
    const char* name;
    const char* values;
    const char* meaning;
};

inline constexpr Variable kDriverVariable{
    "CUDAMOD_DRIVER", "auto, emulated, or a path",
    "the driver to open: the installed one, the emulated one, or the library at a path"};

inline constexpr Variable kGilVariable{
    "CUDAMOD_GIL", "release, auto or hold",
    "whether launches let the interpreter lock go around the driver call, unless a launcher says"};

inline constexpr Variable kLaunchBlockingVariable{
    "CUDAMOD_LAUNCH_BLOCKING", "0 or 1",
    "each launch waits until its kernel has run, so that a fault is raised where it belongs"};

inline constexpr Variable kLaunchLogVariable{
    "CUDAMOD_LAUNCH_LOG", "a number",
    "how many of a device's last launches are kept, to be told with the fault of a kernel"};

inline constexpr Variable kUnloadVariable{"CUDAMOD_UNLOAD", "deferred, now or never",
                                          "when a library whose last handle is gone is unloaded: "
                                          "at the next safe point, at once, or not at all"};

inline constexpr Variable kCacheDirVariable{
    "CUDAMOD_CACHE_DIR", "a path",
    "the folder of compiled programs and extracted headers, else cudamod in the user's cache"};

inline constexpr Variable kTraceVariable{
    "CUDAMOD_TRACE", "0 or 1", "print the creation and destruction of every handle on stderr"};

inline constexpr Variable kLeakCheckVariable{
    "CUDAMOD_LEAK_CHECK", "0 or 1",
    "at exit, print the handles that were never released on stderr, and where they were made"};

inline constexpr Variable kVariables[] = {
    kDriverVariable, kGilVariable,   kLaunchBlockingVariable, kLaunchLogVariable,
    kUnloadVariable, kTraceVariable, kLeakCheckVariable,      kCacheDirVariable};

/// The variable's value now; unset and empty are the same.
inline std::optional<std::string> read(const Variable& variable) {
    const char* const value = std::getenv(variable.name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

} // namespace cudamod::driver
