/// Operands to lane arrays: registers, immediates, special registers, addresses of variables.
#include "emulator/ptx/address_space.h"
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/special_registers.h"

#include <bit>

namespace cudamod::emulator::ptx {
namespace {

bool is_16_bit_float(Type type) {
    return type == Type::F16 || type == Type::BF16;
}

/// Whether a register of one type serves where another of the same size is wanted.
bool compatible(Type declared, Type wanted) {
    if (declared == wanted || is_bits(declared) || is_bits(wanted)) return true;
    if (is_integer(declared) && is_integer(wanted)) return true;
    // Packed and 16-bit floating types live in registers of bits, or of integers in older code.
    if (is_packed(wanted) || wanted == Type::TF32 || is_16_bit_float(wanted))
        return is_integer(declared) || is_16_bit_float(declared);
    return false;
}

unsigned element_of(std::string_view element) {
    static constexpr std::string_view kElements[] = {".x", ".y", ".z", ".w",
                                                     ".r", ".g", ".b", ".a"};
    for (unsigned n = 0; n < 8; ++n) {
        if (kElements[n] == element) return n % 4;
    }
    return 4;
}

} // namespace

Slot FunctionCompiler::register_slot(const Operand& operand, const Symbol& symbol) const {
    if (operand.displacement != 0)
        fail("Unexpected constant added to register " + quoted(operand.name));
    if (operand.element.empty()) {
        if (symbol.vector != 1)
            fail("Vector register " + quoted(operand.name) + " is used as a scalar");
        return symbol.slots[0];
    }
    const unsigned element = element_of(operand.element);
    if (element >= symbol.vector || symbol.vector == 1) {
        fail("Register " + quoted(operand.name) + " has no element " + quoted(operand.element));
    }
    return symbol.slots[element];
}

void FunctionCompiler::check_type(const Operand& operand, Type declared, Type wanted,
                                  bool relaxed) const {
    const bool size_fits =
        relaxed ? size_of(declared) >= size_of(wanted) : size_of(declared) == size_of(wanted);
    const bool wider_float = is_float(declared) && size_of(declared) != size_of(wanted);
    if (size_fits && declared != Type::Pred && !wider_float && compatible(declared, wanted)) return;
    fail("Arguments mismatch for instruction: register " + quoted(operand.name) + " is ." +
         std::string(name_of(declared)) + ", the instruction wants ." +
         std::string(name_of(wanted)));
}

Slot FunctionCompiler::resized(Slot slot, unsigned from, unsigned to, bool sign) {
    if (from == to) return slot;
    Instruction instruction;
    instruction.handler = context_.set.resize(to, from, sign);
    instruction.slots[0] = new_temporary(to);
    instruction.slots[1] = slot;
    return emit(instruction).slots[0];
}

Slot FunctionCompiler::literal(const Operand& operand, Type type) {
    const unsigned bytes = size_of(type);
    const bool single = operand.kind == Operand::Kind::Single;
    if (operand.kind == Operand::Kind::Integer) {
        if (is_float(type))
            fail("Arguments mismatch for instruction: an integer constant where a floating-point "
                 "one is wanted");
        return context_.constants.value(bytes, operand.integer);
    }
    const double value =
        single
            ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.integer)))
            : std::bit_cast<double>(operand.integer);
    if (type == Type::F64) return context_.constants.value(8, std::bit_cast<std::uint64_t>(value));
    if (type == Type::F32) {
        const std::uint64_t exact =
            single ? operand.integer : std::bit_cast<std::uint32_t>(static_cast<float>(value));
        return context_.constants.value(4, exact);
    }
    if (is_bits(type) && bytes == (single ? 4u : 8u))
        return context_.constants.value(bytes, operand.integer);
    fail("Arguments mismatch for instruction: a floating-point constant where ." +
         std::string(name_of(type)) + " is wanted");
}

Slot FunctionCompiler::variable_base(const Symbol& symbol, std::int64_t& displacement,
                                     bool generic) {
    Patch patch;
    patch.index = symbol.index;
    patch.generic = generic;
    switch (symbol.kind) {
    case Symbol::Kind::Variable:
        return context_.constants.patched(patch);
    case Symbol::Kind::Shared: {
        const bool dynamic = context_.code.shared[symbol.index].dynamic;
        patch.kind = dynamic ? Patch::Kind::DynamicShared : Patch::Kind::Shared;
        if (dynamic) patch.index = 0;
        function_.shared.push_back(symbol.index);
        return context_.constants.patched(patch);
    }
    case Symbol::Kind::Local:
    case Symbol::Kind::Param:
        displacement += symbol.offset;
        return frame_base();
    case Symbol::Kind::EntryParam:
        displacement += symbol.offset;
        return context_.constants.value(8, 0);
    default:
        return kNoSlot;
    }
}

/// The address of a variable or function as a value.
Slot FunctionCompiler::symbol_value(const Operand& operand, const Symbol& symbol, Type type) {
    const unsigned bytes = size_of(type);
    if (bytes < 4 || is_float(type))
        fail("The address of " + quoted(operand.name) + " does not fit ." +
             std::string(name_of(type)));
    Slot slot = kNoSlot;
    std::int64_t displacement = operand.displacement;
    if (symbol.kind == Symbol::Kind::Function) {
        slot = context_.constants.value(8, kFunctionWindow + 16 * std::uint64_t{symbol.index} +
                                               static_cast<std::uint64_t>(displacement));
        return resized(slot, 8, bytes, false);
    }
    const Slot base = variable_base(symbol, displacement, false);
    if (base == kNoSlot) fail("Operand " + quoted(operand.name) + " is no value");
    slot = base;
    if (displacement != 0) {
        Instruction instruction;
        instruction.handler = context_.set.add_immediate;
        instruction.slots[0] = new_temporary(8);
        instruction.slots[1] = base;
        instruction.immediate = displacement;
        slot = emit(instruction).slots[0];
    }
    return resized(slot, 8, bytes, false);
}

Slot FunctionCompiler::source(const Operand& operand, Type type, bool relaxed) {
    switch (operand.kind) {
    case Operand::Kind::Integer:
    case Operand::Kind::Single:
    case Operand::Kind::Double:
        return literal(operand, type);
    case Operand::Kind::Name:
        break;
    default:
        fail("Arguments mismatch for instruction: this operand must be a register or a constant");
    }
    if (operand.negated) fail("'!' is for predicates only");
    if (Symbol* symbol = find(operand.name)) {
        if (symbol->kind != Symbol::Kind::Register) return symbol_value(operand, *symbol, type);
        check_type(operand, symbol->type, type, relaxed);
        return resized(register_slot(operand, *symbol), size_of(symbol->type), size_of(type),
                       false);
    }
    if (const auto special = special_register(operand.name, operand.element)) {
        if (special->type == Type::Pred)
            fail("Special register " + quoted(operand.name) + " is a predicate");
        check_type(operand, special->type, type, true);
        Instruction instruction;
        instruction.handler = &read_special;
        instruction.slots[0] = new_register(special->type);
        instruction.extra = special->id;
        const Slot slot = emit(instruction).slots[0];
        return resized(slot, size_of(special->type), size_of(type), false);
    }
    fail("Unknown symbol " + quoted(operand.name) +
         (operand.element.empty() ? "" : " with element " + quoted(operand.element)));
}

Slot FunctionCompiler::predicate_source(const Operand& operand) {
    if (operand.kind == Operand::Kind::Integer)
        return context_.constants.predicate(operand.integer != 0);
    if (operand.kind != Operand::Kind::Name)
        fail("Arguments mismatch for instruction: a predicate is wanted");
    Slot slot = kNoSlot;
    if (const Symbol* symbol = find(operand.name)) {
        if (symbol->kind != Symbol::Kind::Register || symbol->type != Type::Pred) {
            fail("Arguments mismatch for instruction: " + quoted(operand.name) +
                 " is not a predicate");
        }
        slot = register_slot(operand, *symbol);
    } else if (const auto special = special_register(operand.name, operand.element);
               special && special->type == Type::Pred) {
        Instruction instruction;
        instruction.handler = &read_special;
        instruction.slots[0] = new_register(Type::Pred);
        instruction.extra = special->id;
        slot = emit(instruction).slots[0];
    } else {
        fail("Unknown symbol " + quoted(operand.name));
    }
    if (!operand.negated) return slot;
    Form form;
    static constexpr FormRow kNot{"not", "pred", "Dp Sp", Family::Logic};
    form.row = &kNot;
    form.types[0] = Type::Pred;
    Instruction instruction;
    instruction.handler = context_.set.arithmetic(form);
    instruction.slots[0] = new_register(Type::Pred);
    instruction.slots[1] = slot;
    return emit(instruction).slots[0];
}

Slot FunctionCompiler::predicate_destination(const Operand& operand) {
    if (operand.kind == Operand::Kind::Sink) return kNoSlot;
    const Symbol* symbol = operand.kind == Operand::Kind::Name ? find(operand.name) : nullptr;
    if (symbol == nullptr || symbol->kind != Symbol::Kind::Register || symbol->type != Type::Pred ||
        operand.negated) {
        fail("Arguments mismatch for instruction: the destination must be a predicate register");
    }
    return register_slot(operand, *symbol);
}

FunctionCompiler::Result FunctionCompiler::destination(const Operand& operand, Type type,
                                                       bool relaxed) {
    Result result;
    if (operand.kind == Operand::Kind::Sink) return result;
    const Symbol* symbol = operand.kind == Operand::Kind::Name ? find(operand.name) : nullptr;
    if (symbol == nullptr && operand.kind == Operand::Kind::Name)
        fail("Unknown symbol " + quoted(operand.name));
    if (symbol == nullptr || symbol->kind != Symbol::Kind::Register || operand.negated) {
        fail("Arguments mismatch for instruction: the destination must be a register");
    }
    check_type(operand, symbol->type, type, relaxed);
    result.slot = result.final_slot = register_slot(operand, *symbol);
    result.bytes = size_of(type);
    result.final_bytes = size_of(symbol->type);
    result.sign = is_signed(type);
    if (result.bytes != result.final_bytes) result.slot = new_temporary(result.bytes);
    return result;
}

void FunctionCompiler::finish(const Result& result) {
    if (result.slot == result.final_slot) return;
    Instruction instruction;
    instruction.handler = context_.set.resize(result.final_bytes, result.bytes, result.sign);
    instruction.slots[0] = result.final_slot;
    instruction.slots[1] = result.slot;
    emit(instruction);
}

FunctionCompiler::Address FunctionCompiler::address(const Operand& operand) {
    if (operand.kind != Operand::Kind::Address || operand.elements.size() != 1) {
        fail("Arguments mismatch for instruction: an address in brackets is wanted");
    }
    const Operand& base = operand.elements[0];
    Address result;
    result.displacement = operand.displacement;
    if (base.kind == Operand::Kind::Integer) {
        result.base = context_.constants.value(8, base.integer);
        return result;
    }
    const Symbol* symbol = base.kind == Operand::Kind::Name ? find(base.name) : nullptr;
    if (symbol == nullptr) fail("Unknown symbol " + quoted(base.name) + " in an address");
    if (symbol->kind == Symbol::Kind::Register) {
        const unsigned bytes = size_of(symbol->type);
        if ((bytes != 4 && bytes != 8) || is_float(symbol->type)) {
            fail("Register " + quoted(base.name) + " of type ." +
                 std::string(name_of(symbol->type)) + " can't hold an address");
        }
        result.base = resized(register_slot(base, *symbol), bytes, 8, false);
        return result;
    }
    result.symbol = symbol;
    result.base = variable_base(*symbol, result.displacement, false);
    if (result.base == kNoSlot) fail(quoted(base.name) + " is no variable");
    return result;
}

std::int64_t FunctionCompiler::constant(const Operand& operand) const {
    if (operand.kind != Operand::Kind::Integer)
        fail("Arguments mismatch for instruction: an integer constant is wanted");
    return static_cast<std::int64_t>(operand.integer);
}

std::uint32_t FunctionCompiler::label_index(const Operand& operand) {
    const Symbol* symbol = operand.kind == Operand::Kind::Name ? find(operand.name) : nullptr;
    if (symbol == nullptr || symbol->kind != Symbol::Kind::Label) {
        fail("Label expected as the target of a branch" +
             (operand.name.empty() ? "" : ", got " + quoted(operand.name)));
    }
    return symbol->index;
}

void FunctionCompiler::set_address(Instruction& instruction, const Address& address) {
    instruction.slots[kAddressSlot] = address.base;
    instruction.immediate = address.displacement;
    instruction.cache = context_.code.memory_instructions++;
}

} // namespace cudamod::emulator::ptx
