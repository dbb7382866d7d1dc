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
    return form.has("v4") ? 4 : form.has("v2") ? 2 : 1;
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
    note_access(result, form, load ? Access::Kind::Load : Access::Kind::Store, memory);
    emit(result);
    for (const Result& produced : results)
        finish(produced);
}

/// What checks have to know of it.
void FunctionCompiler::note_access(const Instruction& result, const Form& form, Access::Kind kind,
                                   Where where) {
    auto& accesses = context_.code.accesses;
    accesses.resize(result.cache + 1);
    const bool strong = kind == Access::Kind::Atomic || form.has("volatile") ||
                        form.has("relaxed") || form.has("acquire") || form.has("release") ||
                        form.has("mmio");
    const unsigned vector = kind == Access::Kind::Atomic ? 1 : vector_of(form);
    accesses[result.cache] = {kind, where, static_cast<std::uint8_t>(size_of(form.type()) * vector),
                              strong};
}

void FunctionCompiler::atomic(const Form& form, const syntax::Instruction& syntax) {
    // The scope may stand before or behind the space, but once.
    const auto is_scope = [](std::string_view m) {
        return m == "cta" || m == "cluster" || m == "gpu" || m == "sys";
    };
    if (std::count_if(form.modifiers.begin(), form.modifiers.end(), is_scope) > 1)
        fail("Duplicate scope of '" + std::string(syntax.opcode) + "'");
    const bool red = form.is("red");
    std::size_t next = red ? 0 : 1;
    Instruction result;
    Result old;
    if (!red) {
        old = destination(syntax.operands[0], form.type());
        result.slots[0] = old.slot;
    }
    const Address address = this->address(syntax.operands[next++]);
    const Where memory = where_of(form, address);
    if (memory == Where::Generic && address.symbol != nullptr)
        fail("Variable in an address without a state space");
    for (unsigned slot = 1; next < syntax.operands.size(); ++next, ++slot) {
        result.slots[slot] = source(syntax.operands[next], form.type());
    }
    result.handler = select_atomic(form, memory);
    set_address(result, address);
    note_access(result, form, Access::Kind::Atomic, memory);
    emit(result);
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

void FunctionCompiler::async(const Form& form, const syntax::Instruction& syntax) {
    const Address to = address(syntax.operands[0]);
    const Address from = address(syntax.operands[1]);
    const std::int64_t bytes = constant(syntax.operands[2]);
    const bool fits = form.has("cg") ? bytes == 16 : bytes == 4 || bytes == 8 || bytes == 16;
    if (!fits) fail("cp.async can't copy " + std::to_string(bytes) + " bytes");
    Instruction result;
    result.handler = &copy_async;
    result.extra = static_cast<std::uint32_t>(bytes);
    result.slots[7] = from.base;
    if (from.displacement != 0) {
        Instruction add;
        add.handler = context_.set.add_immediate;
        add.slots[0] = result.slots[7] = new_temporary(8);
        add.slots[1] = from.base;
        add.immediate = from.displacement;
        emit(add);
    }
    if (syntax.operands.size() > 3) result.slots[0] = source(syntax.operands[3], Type::U32);
    set_address(result, to);
    emit(result);
}

} // namespace cudamod::emulator::ptx
