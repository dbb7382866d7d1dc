/// Errors of the loader and the form in which the driver's JIT log reports them.
#pragma once

#include "emulator/ptx/program.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace cudamod::emulator::ptx {

/// Thrown by lexer, parser and compiler; load() turns it into status and log.
class LoadError : public std::runtime_error {
  public:
    LoadError(int line, const std::string& reason, LoadStatus status = LoadStatus::InvalidPtx)
        : std::runtime_error(reason), line_(line), status_(status) {}

    int line() const { return line_; }
    LoadStatus status() const { return status_; }

  private:
    int line_;
    LoadStatus status_;
};

/// A name as messages show it.
inline std::string quoted(std::string_view text) {
    return "'" + std::string(text) + "'";
}

} // namespace cudamod::emulator::ptx
