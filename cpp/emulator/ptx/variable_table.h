/// Variables of global, constant and shared space, their initial values and relocations.
#pragma once

#include "emulator/ptx/code.h"
#include "emulator/ptx/symbols.h"

#include <string>
#include <utility>

namespace cudamod::emulator::ptx {

/// Bytes of a declared variable or parameter, and its alignment.
std::uint64_t size_of(const syntax::Declaration& declaration);
std::uint32_t alignment_of(const syntax::Declaration& declaration);

class VariableTable {
  public:
    explicit VariableTable(Code& code) : code_(code) {}

    /// Throws LoadError.
    Symbol add(const syntax::Declaration& declaration, const std::string& name);

    /// The symbols that initial values name, with their lines; to be checked when all are declared.
    const std::vector<std::pair<std::string, int>>& mentioned() const { return mentioned_; }

  private:
    void initialize(Variable& variable, const syntax::Declaration& declaration);
    std::size_t relocate(Variable& variable, const syntax::Declaration& declaration,
                         std::size_t element);

    Code& code_;
    std::vector<std::pair<std::string, int>> mentioned_;
};

} // namespace cudamod::emulator::ptx
