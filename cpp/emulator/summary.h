#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cudamod::emulator {

/// One argument of a call as the journal shows it: text quoted, addresses and handles in
/// hexadecimal.
class Argument {
  public:
    enum class Kind { address, integer, real, text, verbatim };

    Argument() = default;

    template <class T>
        requires(!std::is_same_v<T, Argument>)
    explicit Argument(const T& value) {
        if constexpr (std::is_same_v<T, const char*>) {
            kind_ = Kind::text;
            text_ = value;
        } else if constexpr (std::is_pointer_v<T>) {
            kind_ = Kind::address;
            number_ = reinterpret_cast<std::uintptr_t>(value);
        } else if constexpr (std::is_same_v<T, unsigned long long>) { // CUdeviceptr
            kind_ = Kind::address;
            number_ = value;
        } else if constexpr (std::is_floating_point_v<T>) {
            kind_ = Kind::real;
            real_ = value;
        } else {
            kind_ = Kind::integer;
            number_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
        }
    }

    /// Text that the journal takes as it is.
    static Argument verbatim(const char* text) {
        Argument argument(text);
        argument.kind_ = Kind::verbatim;
        return argument;
    }

    std::string summary() const;

  private:
    Kind kind_ = Kind::address;
    union {
        std::uint64_t number_ = 0;
        double real_;
        const char* text_;
    };
};

/// "0x7f0000000000, 12, 'name'"
std::string summarize(const Argument* arguments, std::size_t count);

} // namespace cudamod::emulator
