#pragma once

#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

/// Checks for native tests: each prints what differed and counts; main returns check::failures().
namespace check {

inline int& failures() {
    static int count = 0;
    return count;
}

template <class T>
std::string show(const T& value) {
    if constexpr (std::is_enum_v<T>) {
        return std::to_string(static_cast<long long>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, unsigned char>) {
        return std::to_string(static_cast<int>(value));
    } else {
        std::ostringstream out;
        out << value;
        return out.str();
    }
}

inline void report(const char* file, int line, const std::string& what) {
    std::cerr << file << ":" << line << ": " << what << "\n";
    ++failures();
}

template <class A, class B>
void equal(const A& found, const B& expected, const char* text, const char* file, int line) {
    if (found == expected) return;
    report(file, line, std::string(text) + " is " + show(found) + ", not " + show(expected));
}

/// The bytes of a test's input file; a missing one is a failure of the test.
inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) report(path.c_str(), 0, "can't be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace check

#define CHECK(condition)                                                                           \
    ((condition) ? void() : check::report(__FILE__, __LINE__, #condition " is false"))
#define CHECK_EQ(found, expected) check::equal((found), (expected), #found, __FILE__, __LINE__)
/// Also prints the reason of a formats::Result that has no value.
#define CHECK_OK(result)                                                                           \
    ((result) ? void() : check::report(__FILE__, __LINE__, #result ": " + (result).reason()))
/// The result is a failure whose reason contains the text.
#define CHECK_FAILS(result, text)                                                                  \
    (!(result) && (result).reason().find(text) != std::string::npos                                \
         ? void()                                                                                  \
         : check::report(__FILE__, __LINE__,                                                       \
                         #result ": no failure about '" text "' but '" + (result).reason() + "'"))
