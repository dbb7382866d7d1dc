/// A status becomes an exception here, and only here.
#pragma once

#include <concepts>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <cuda.h>

namespace cudamod::driver {

/// A driver call that failed.
class DriverError : public std::exception {
  public:
    /// `compiler_log`: what the driver's compiler wrote about the image; it precedes the driver's
    /// own messages.
    DriverError(CUresult status, std::string call, std::string subject,
                std::string compiler_log = {});

    /// Something that a driver of CUDA `needed_` has, and this one of `found_` has not.
    DriverError(std::string what, int needed_, int found_);

    const char* what() const noexcept override { return message_.c_str(); }

    CUresult status;
    std::string name;    ///< "CUDA_ERROR_INVALID_VALUE"
    std::string call;    ///< "cuLaunchKernelEx"
    std::string subject; ///< the object and value concerned, or empty
    std::string detail;  ///< what the error means in general
    std::string
        log; ///< what the driver and its compiler said about this failure, one message per line
    int needed = 0; ///< a function that the driver lacks: the CUDA version that has it
    int found = 0;  ///< the driver's CUDA version, with `needed`

  private:
    std::string message_;
};

/// "CUDA_ERROR_INVALID_VALUE"; for codes newer than the header, what the open driver says.
std::string status_name(CUresult status);

/// Throws DriverError; or DriverNotFound, when the call failed because no driver could be opened.
[[noreturn]] void raise(CUresult status, const char* call, std::string subject = {},
                        std::string compiler_log = {});

namespace detail {

template <class Subject>
[[noreturn, gnu::cold, gnu::noinline]] void raise_about(CUresult status, const char* call,
                                                        Subject&& subject) {
    if constexpr (std::invocable<Subject>)
        raise(status, call, std::string(std::forward<Subject>(subject)()));
    else
        raise(status, call, std::string(std::string_view(subject)));
}

} // namespace detail

/// Throws unless `status` is CUDA_SUCCESS: `check(driver::table.cuInit(0), "cuInit")`.
inline void check(CUresult status, const char* call) {
    if (status != CUDA_SUCCESS) [[unlikely]]
        raise(status, call);
}

/// The same, naming the object: a string, or a callable that makes one only on failure.
template <class Subject>
inline void check(CUresult status, const char* call, Subject&& subject) {
    if (status != CUDA_SUCCESS) [[unlikely]]
        detail::raise_about(status, call, std::forward<Subject>(subject));
}

/// A function that the driver lacks, as its table slot found out.
struct Missing {
    const char* function;
    int needed;
    int found;
};

/// Notes for raise() why a table slot answers CUDA_ERROR_NOT_FOUND on this thread.
void note_missing(const Missing& missing) noexcept;

/// Throws the error of something else that the driver is too old for: "launch attribute 'x'".
[[noreturn]] void raise_too_old(std::string what, int needed);

/// Notes for raise() why a table slot answers CUDA_ERROR_NOT_INITIALIZED on this thread: no driver
/// could be opened. Another attempt may end differently.
void note_unopened(std::exception_ptr reason) noexcept;

/// Throws the error of a function that the driver lacks.
[[noreturn]] void raise_missing(const Missing& missing);

} // namespace cudamod::driver
