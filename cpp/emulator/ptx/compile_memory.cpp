/// ld, st, atom, red, cvta and their relatives.
#include "emulator/ptx/address_space.h"
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/runtime.h"

#include <algorithm>

namespace cudamod::emulator::ptx {
namespace {

bool names_shared(const Form& form) {
    return form.has("shared") || form.has("shared::cta") || form.has("shared::cluster");
}
bool names_parameters(const Form& form) {
    return form.has("param") || form.has("param::entry") || form.has("param::func");
}

unsigned vector_of(const Form& form) {
    return form.has("v8") ? 8 : form.has("v4") ? 4 : form.has("v2") ? 2 : 1;
}

WindowOf window_named(const Form& form) {
    if (form.has("shared") || form.has("shared::cta")) return WindowOf::Shared;
    if (form.has("shared::cluster")) return WindowOf::SharedCluster;
    if (form.has("local")) return WindowOf::Local;
    if (form.has("const")) return WindowOf::Constant;
    return names_parameters(form) ? WindowOf::Param : WindowOf::Global;
}

} // namespace

/// The memory that a form without parameters names, checked against the variable in the address.
Where FunctionCompiler::where_of(const Form& form, const Address& address) const {
    using Kind = Symbol::Kind;
    const auto agree = [&](bool fits) {
        if (address.symbol != nullptr && !fits)
            fail("State space mismatch between instruction and address");
    };
    const Kind kind = address.symbol == nullptr ? Kind::Register : address.symbol->kind;
    if (names_shared(form)) return agree(kind == Kind::Shared), Where::Shared;
    if (form.has("local")) return agree(kind == Kind::Local || kind == Kind::Param), Where::Local;
    if (form.has("const"))
        return agree(kind == Kind::Variable && address.symbol->is_constant), Where::Global;
    if (form.has("global"))
        return agree(kind == Kind::Variable && !address.symbol->is_constant), Where::Global;
    return Where::Generic;
}

void FunctionCompiler::values(const Form& form, const Operand& operand, bool load,
                              Instruction& result, std::vector<Result>& results) {
    const unsigned vector = vector_of(form);
    std::vector<Operand> elements;
    const Symbol* symbol =
        operand.kind == Operand::Kind::Name && vector > 1 ? find(operand.name) : nullptr;
    if (operand.kind == Operand::Kind::Vector) {
        elements = operand.elements;
    } else if (symbol != nullptr && symbol->kind == Symbol::Kind::Register &&
               symbol->vector == vector && operand.element.empty()) {
        static constexpr std::string_view kElements[] = {".x", ".y", ".z", ".w"};
        for (unsigned n = 0; n < vector; ++n) {
            elements.push_back(operand);
            elements.back().element = kElements[n];
        }
    } else {
        elements.push_back(operand);
    }
    if (elements.size() != vector) {
        fail("Arguments mismatch for instruction: " + std::to_string(elements.size()) +
             " values where " + std::to_string(vector) + " are wanted");
    }
    for (unsigned n = 0; n < vector; ++n) {
        if (load) {
            results.push_back(destination(elements[n], form.type(), true));
            result.slots[n] = results.back().slot;
        } else {
            result.slots[n] = source(elements[n], form.type(), true);
        }
    }
}

bool FunctionCompiler::parameter_access(const Form& form, const Operand& value,
                                        const Operand& where) {
    const Operand* base = where.kind == Operand::Kind::Address && where.elements.size() == 1
                              ? &where.elements[0]
                              : nullptr;
    const Symbol* symbol =
        base != nullptr && base->kind == Operand::Kind::Name ? find(base->name) : nullptr;
    if (symbol == nullptr || symbol->kind != Symbol::Kind::EntryParam) return false;
    if (form.is("st")) fail("A kernel's parameters are read-only");
    const unsigned bytes = size_of(form.type()) * vector_of(form);
    const std::int64_t offset = symbol->offset + where.displacement;
    if (where.displacement < 0 ||
        where.displacement + bytes > static_cast<std::int64_t>(symbol->size)) {
        fail("Address of parameter '" + std::string(base->name) + "' is out of its " +
             std::to_string(symbol->size) + " bytes");
    }
    if (offset % bytes != 0)
        fail("Address of parameter '" + std::string(base->name) + "' is misaligned");
    Instruction result;
    std::vector<Result> results;
    values(form, value, true, result, results);
    result.handler = context_.set.load_parameter(size_of(form.type()), vector_of(form));
    result.immediate = offset;
    emit(result);
    for (const Result& produced : results)
        finish(produced);
    return true;
}

void FunctionCompiler::memory(const Form& form, const syntax::Instruction& syntax) {
    const bool load = !form.is("st");
    const Operand& value = syntax.operands[load ? 0 : 1];
    const Operand& where = syntax.operands[load ? 1 : 0];
    const unsigned bytes = size_of(form.type()), vector = vector_of(form);
    if (bytes * vector > 16) fail("Vectors of more than 16 bytes are not supported");
    if (syntax.operands.size() > 2) source(syntax.operands[2], Type::B64);
    if (names_parameters(form) && parameter_access(form, value, where)) return;
    Address address = this->address(where);
    Where memory = Where::Generic;
    if (names_parameters(form)) {
        const bool frame = address.symbol != nullptr && address.symbol->kind == Symbol::Kind::Param;
        if (address.symbol != nullptr && !frame)
            fail("State space mismatch between instruction and address");
        memory = frame || !is_entry_ ? Where::Local : Where::Generic;
        if (memory == Where::Generic)
            address.displacement += static_cast<std::int64_t>(kParameterWindow);
    } else {
        memory = where_of(form, address);
        if (memory == Where::Generic && address.symbol != nullptr) {
            // The generic address of the variable.
            switch (address.symbol->kind) {
            case Symbol::Kind::Shared: {
                std::int64_t unchanged = 0;
                address.base = variable_base(*address.symbol, unchanged, true);
                break;
            }
            case Symbol::Kind::Local:
            case Symbol::Kind::Param:
                address.displacement += static_cast<std::int64_t>(kLocalWindow);
                break;
            case Symbol::Kind::EntryParam:
                address.displacement += static_cast<std::int64_t>(kParameterWindow);
                break;
            default:
                break;
            }
        }
    }
    Instruction result;
    std::vector<Result> results;
    values(form, value, load, result, results);
    result.handler =
        load ? context_.set.load(bytes, vector, memory) : context_.set.store(bytes, vector, memory);
    set_address(result, address);
    const bool strong = form.has("volatile") || form.has("relaxed") || form.has("acquire") ||
                        form.has("release") || form.has("mmio");
    note_access(result, load ? Access::Kind::Load : Access::Kind::Store, memory, bytes * vector,
                vector, strong);
    emit(result);
    for (const Result& produced : results)
        finish(produced);
}

/// What checks have to know of it.
void FunctionCompiler::note_access(const Instruction& result, Access::Kind kind, Where where,
                                   unsigned bytes, unsigned vector, bool strong) {
    auto& accesses = context_.code.accesses;
    accesses.resize(result.cache + 1);
    accesses[result.cache] = {kind, where, static_cast<std::uint8_t>(bytes),
                              static_cast<std::uint8_t>(vector),
                              strong || kind == Access::Kind::Atomic};
}

void FunctionCompiler::atomic(const Form& form, const syntax::Instruction& syntax) {
    // Order and scope may stand in several places, but once.
    const auto is_scope = [](std::string_view m) {
        return m == "cta" || m == "cluster" || m == "gpu" || m == "sys";
    };
    const auto is_order = [](std::string_view m) {
        return m == "relaxed" || m == "acquire" || m == "release" || m == "acq_rel";
    };
    const auto& modifiers = form.modifiers;
    if (std::count_if(modifiers.begin(), modifiers.end(), is_scope) > 1)
        fail("Duplicate scope of '" + std::string(syntax.opcode) + "'");
    if (std::count_if(modifiers.begin(), modifiers.end(), is_order) > 1)
        fail("Duplicate order of '" + std::string(syntax.opcode) + "'");
    const bool red = form.is("red");
    const std::size_t first = red ? 0 : 1, last = first + (form.has("cas") ? 3 : 2),
                      hint = form.has("L2::cache_hint") ? 1 : 0;
    if (syntax.operands.size() != last + hint) {
        fail("Arguments mismatch for instruction '" + std::string(syntax.opcode) +
             "': " + std::to_string(syntax.operands.size()) + " operands");
    }
    if (hint != 0) source(syntax.operands[last], Type::B64);
    Address address = this->address(syntax.operands[first]);
    const Where memory = where_of(form, address);
    if (memory == Where::Generic && address.symbol != nullptr)
        fail("Variable in an address without a state space");
    const unsigned vector = vector_of(form);
    if (vector > 1) {
        if (memory == Where::Shared)
            fail("Illegal modifier combination for instruction '" + std::string(syntax.opcode) +
                 "': vectors are for global memory");
        vector_atomic(form, syntax, address, memory);
        return;
    }
    Instruction result;
    if (!red) result.slots[0] = destination(syntax.operands[0], form.type()).slot;
    for (std::size_t n = first + 1; n < last; ++n)
        result.slots[n - first] = source(syntax.operands[n], form.type());
    result.handler = select_atomic(form, memory);
    set_address(result, address);
    note_access(result, Access::Kind::Atomic, memory, size_of(form.type()));
    emit(result);
}

/// Each element is atomic, the vector is not.
void FunctionCompiler::vector_atomic(const Form& form, const syntax::Instruction& syntax,
                                     Address address, Where memory) {
    const bool red = form.is("red");
    const unsigned vector = vector_of(form);
    const Operand& value = syntax.operands[red ? 1 : 2];
    const auto check = [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::Vector && operand.elements.size() == vector) return;
        fail("Arguments mismatch for instruction '" + std::string(syntax.opcode) +
             "': " + std::to_string(vector) + " values in braces are wanted");
    };
    check(value);
    if (!red) check(syntax.operands[0]);
    std::vector<Slot> sources;
    for (const Operand& element : value.elements)
        sources.push_back(source(element, form.type()));
    // Old values may go to the registers of later operands, or of the address.
    std::vector<std::pair<Slot, Slot>> copies;
    for (unsigned n = 0; n < vector; ++n) {
        Instruction result;
        if (!red) {
            const Slot to = destination(syntax.operands[0].elements[n], form.type()).slot;
            if (to != kNoSlot) {
                result.slots[0] = new_temporary(size_of(form.type()));
                copies.emplace_back(to, result.slots[0]);
            }
        }
        result.slots[1] = sources[n];
        result.handler = select_atomic(form, memory);
        set_address(result, address);
        note_access(result, Access::Kind::Atomic, memory, size_of(form.type()));
        emit(result);
        address.displacement += size_of(form.type());
    }
    for (const auto& [to, from] : copies) {
        Instruction copy;
        copy.handler = context_.set.resize(size_of(form.type()), size_of(form.type()), false);
        copy.slots[0] = to;
        copy.slots[1] = from;
        emit(copy);
    }
}

void FunctionCompiler::special(const Form& form, const syntax::Instruction& syntax) {
    Instruction result;
    if (form.is("activemask")) {
        const Result destination = this->destination(syntax.operands[0], Type::B32);
        result.handler = &active_mask;
        result.slots[0] = destination.slot;
        emit(result);
        return;
    }
    if (form.is("isspacep")) {
        const Symbol* symbol = syntax.operands[1].kind == Operand::Kind::Name
                                   ? find(syntax.operands[1].name)
                                   : nullptr;
        const bool narrow = symbol != nullptr && symbol->kind == Symbol::Kind::Register &&
                            size_of(symbol->type) == 4;
        const Slot address = source(syntax.operands[1], narrow ? Type::U32 : Type::U64);
        result.slots[1] = resized(address, narrow ? 4 : 8, 8, false);
        result.slots[0] = predicate_destination(syntax.operands[0]);
        if (result.slots[0] == kNoSlot) fail("'_' can't be the destination of 'isspacep'");
        result.handler = &is_in_space;
        result.extra = static_cast<std::uint32_t>(window_named(form));
        emit(result);
        return;
    }
    const unsigned bytes = size_of(form.type());
    result.slots[1] = resized(source(syntax.operands[1], form.type()), bytes, 8, false);
    if (form.is("getctarank")) {
        result.slots[0] = destination(syntax.operands[0], Type::U32).slot;
        result.handler = &rank_of_address;
        emit(result);
        return;
    }
    Result destination = this->destination(syntax.operands[0], form.type());
    if (destination.slot == kNoSlot) fail("'_' can't be a destination here");
    if (bytes != 8) {
        destination.bytes = 8;
        destination.slot = new_temporary(8);
    }
    result.slots[0] = destination.slot;
    if (form.is("mapa")) {
        result.slots[2] = source(syntax.operands[2], Type::U32);
        result.handler = &map_to_rank;
        result.extra = form.has("shared::cluster") ? 0 : 1;
    } else {
        result.handler = form.has("to") ? &from_generic : &to_generic;
        result.extra = static_cast<std::uint32_t>(window_named(form));
        // Global and constant addresses are generic addresses.
        if (form.has("global") || form.has("const"))
            result.handler = context_.set.resize(8, 8, false);
    }
    emit(result);
    finish(destination);
}

} // namespace cudamod::emulator::ptx
