#include "emulator/ptx/form.h"

#include "emulator/ptx/diagnostics.h"
#include "emulator/ptx/forms.h"

#include <map>
#include <string>

namespace cudamod::emulator::ptx {
namespace {

struct ModifierSlot {
    std::vector<std::string_view> alternatives;
    bool optional = false;
};

std::vector<ModifierSlot> split_slots(std::string_view pattern) {
    std::vector<ModifierSlot> slots;
    std::size_t at = 0;
    while (at < pattern.size()) {
        std::size_t end = std::min(pattern.find(' ', at), pattern.size());
        std::string_view word = pattern.substr(at, end - at);
        at = end + 1;
        ModifierSlot slot;
        if (word.back() == '?') {
            slot.optional = true;
            word.remove_suffix(1);
        }
        while (!word.empty()) {
            const std::size_t bar = std::min(word.find('|'), word.size());
            slot.alternatives.push_back(word.substr(0, bar));
            word.remove_prefix(std::min(bar + 1, word.size()));
        }
        slots.push_back(std::move(slot));
    }
    return slots;
}

struct IndexedRow {
    const FormRow* row;
    std::vector<ModifierSlot> slots;
    std::size_t least_operands = 0, most_operands = 0;
};

void count_operands(IndexedRow& row) {
    bool in_word = false;
    char last = ' ';
    for (const char c : row.row->operands) {
        if (c == ' ') {
            row.least_operands += last != '?';
            in_word = false;
        } else if (!in_word) {
            in_word = true;
            ++row.most_operands;
        }
        last = c;
    }
    row.least_operands += in_word && last != '?';
    if (row.row->operands == "F") row.most_operands = 4;
}

const std::multimap<std::string_view, IndexedRow>& index() {
    static const auto* const map = [] {
        auto* result = new std::multimap<std::string_view, IndexedRow>;
        for (const FormRow& row : all_forms()) {
            IndexedRow indexed{&row, split_slots(row.modifiers)};
            count_operands(indexed);
            result->emplace(row.opcode, std::move(indexed));
        }
        return result;
    }();
    return *map;
}

/// What PTX has and the engine does not execute.
constexpr std::string_view kNotExecuted[] = {"wgmma",
                                             "tcgen05",
                                             "tex",
                                             "tld4",
                                             "txq",
                                             "suld",
                                             "sust",
                                             "sured",
                                             "suq",
                                             "istypep",
                                             "multimem",
                                             "tensormap",
                                             "clusterlaunchcontrol"};

/// How many modifiers fit in order; -1 when all of them do and nothing is missing.
int matched(const std::vector<ModifierSlot>& slots,
            const std::vector<std::string_view>& modifiers) {
    std::size_t next = 0;
    for (const ModifierSlot& slot : slots) {
        bool fits = false;
        if (next < modifiers.size()) {
            for (const std::string_view alternative : slot.alternatives)
                fits |= alternative == modifiers[next];
        }
        if (fits) {
            ++next;
        } else if (!slot.optional) {
            return static_cast<int>(next);
        }
    }
    return next == modifiers.size() ? -1 : static_cast<int>(next);
}

} // namespace

const std::vector<FormRow>& all_forms() {
    static const auto* const rows = [] {
        auto* result = new std::vector<FormRow>;
        add_arithmetic_forms(*result);
        add_logic_forms(*result);
        add_data_forms(*result);
        add_control_forms(*result);
        add_async_forms(*result);
        add_matrix_forms(*result);
        return result;
    }();
    return *rows;
}

Form match_form(std::string_view opcode, const std::vector<std::string_view>& modifiers,
                std::size_t operands, int line) {
    const auto [first, last] = index().equal_range(opcode);
    if (first == last) {
        for (const std::string_view known : kNotExecuted) {
            if (opcode == known) {
                throw LoadError(line, "Instruction '" + std::string(opcode) +
                                          "' is not supported by the emulated driver");
            }
        }
        throw LoadError(line,
                        "Not a name of any known instruction, or one that is not supported: '" +
                            std::string(opcode) + "'");
    }
    int best = 0;
    bool wrong_count = false;
    for (auto it = first; it != last; ++it) {
        const int count = matched(it->second.slots, modifiers);
        if (count >= 0) {
            best = std::max(best, count);
            continue;
        }
        if (operands < it->second.least_operands || operands > it->second.most_operands) {
            wrong_count = true;
            continue;
        }
        Form form;
        form.row = it->second.row;
        form.modifiers = modifiers;
        for (const std::string_view modifier : modifiers) {
            const auto type = type_named(modifier);
            if (type && form.type_count < form.types.size()) form.types[form.type_count++] = *type;
        }
        return form;
    }
    std::string written(opcode);
    for (const std::string_view modifier : modifiers)
        written += "." + std::string(modifier);
    if (wrong_count) {
        throw LoadError(line, "Arguments mismatch for instruction '" + written +
                                  "': " + std::to_string(operands) + " operands");
    }
    if (best < static_cast<int>(modifiers.size())) {
        throw LoadError(line, "Unknown or unsupported modifier '." +
                                  std::string(modifiers[static_cast<std::size_t>(best)]) +
                                  "' for instruction '" + written + "'");
    }
    throw LoadError(line, "Instruction '" + written + "' lacks a modifier or a type");
}

} // namespace cudamod::emulator::ptx
