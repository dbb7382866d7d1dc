/// Instructions whose operands follow the table, and mov.
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/special_registers.h"

namespace cudamod::emulator::ptx {
namespace {

/// The type that an operand's code in the table stands for.
Type coded_type(std::string_view code, const Form& form) {
    if (code == "0") return form.types[0];
    if (code == "1") return form.types[1];
    if (code == "2") return form.types[2];
    if (code == "w") return widened(form.types[0]);
    if (code == "p") return Type::Pred;
    return type_named(code).value_or(Type::None);
}

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> result;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        result.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result;
}

} // namespace

void FunctionCompiler::plain(const Form& form, const syntax::Instruction& syntax,
                             Instruction result, Handler handler) {
    if (handler == nullptr)
        fail("Illegal modifier combination for instruction '" + std::string(syntax.opcode) + "'");
    result.handler = handler;
    const bool relaxed = form.row->family == Family::Convert;
    std::vector<Result> results;
    std::size_t operand = 0;
    unsigned slot = 0;
    const auto keep = [&](const Result& produced) {
        results.push_back(produced);
        result.slots[slot++] = produced.slot;
    };
    for (std::string_view spec : words(form.row->operands)) {
        if (spec.back() == '?') {
            if (operand == syntax.operands.size()) continue;
            spec.remove_suffix(1);
        }
        const Operand& given = syntax.operands[operand++];
        const bool pair = given.kind == Operand::Kind::Pair;
        const Type type = coded_type(spec.substr(1), form);
        switch (spec[0]) {
        case 'D':
            if (type == Type::Pred) {
                result.slots[slot++] = predicate_destination(given);
            } else {
                keep(destination(given, type, relaxed));
            }
            break;
        case 'S':
            result.slots[slot] =
                type == Type::Pred ? predicate_source(given) : source(given, type, relaxed);
            ++slot;
            break;
        case 'Q':
            result.slots[slot++] = predicate_destination(pair ? given.elements[0] : given);
            result.slots[slot++] = pair ? predicate_destination(given.elements[1]) : kNoSlot;
            break;
        case 'R':
            keep(destination(pair ? given.elements[0] : given, type));
            result.slots[slot++] = pair ? predicate_destination(given.elements[1]) : kNoSlot;
            break;
        default:
            result.immediate = constant(given);
            break;
        }
    }
    if (!results.empty() && results[0].slot == kNoSlot && result.slots[1] == kNoSlot) {
        fail("'_' can't be the destination of '" + std::string(syntax.opcode) + "'");
    }
    const bool wants_destination = form.row->operands[0] == 'D';
    if (wants_destination && result.slots[0] == kNoSlot)
        fail("'_' can't be the destination of '" + std::string(syntax.opcode) + "'");
    emit(result);
    for (const Result& produced : results)
        finish(produced);
}

void FunctionCompiler::move(const Form& form, const syntax::Instruction& syntax) {
    const Operand& to = syntax.operands[0];
    const Operand& from = syntax.operands[1];
    const Type type = form.type();
    if (to.kind == Operand::Kind::Vector || from.kind == Operand::Kind::Vector) {
        move_vector(form, syntax);
        return;
    }
    if (type == Type::B128) fail("mov.b128 without a vector operand is not supported");
    Instruction result;
    if (type == Type::Pred) {
        // p | p
        static constexpr FormRow kOr{"or", "pred", "Dp Sp Sp", Family::Logic};
        Form copy;
        copy.row = &kOr;
        copy.types[0] = Type::Pred;
        result.handler = context_.set.arithmetic(copy);
        result.slots[1] = result.slots[2] = predicate_source(from);
        result.slots[0] = predicate_destination(to);
        if (result.slots[0] == kNoSlot) fail("'_' can't be the destination of 'mov'");
        emit(result);
        return;
    }
    const Result destination = this->destination(to, type);
    if (destination.slot == kNoSlot) fail("'_' can't be the destination of 'mov'");
    result.slots[0] = destination.slot;
    const auto special = from.kind == Operand::Kind::Name && find(from.name) == nullptr
                             ? special_register(from.name, from.element)
                             : std::nullopt;
    if (special && size_of(special->type) == size_of(type)) {
        check_type(from, special->type, type, false);
        result.handler = &read_special;
        result.extra = special->id;
    } else {
        result.slots[1] = source(from, type);
        result.handler = context_.set.resize(size_of(type), size_of(type), false);
    }
    emit(result);
}

/// Packs several registers into one, or the other way round.
void FunctionCompiler::move_vector(const Form& form, const syntax::Instruction& syntax) {
    const bool pack = syntax.operands[1].kind == Operand::Kind::Vector;
    const Operand& vector = syntax.operands[pack ? 1 : 0];
    const Operand& scalar = syntax.operands[pack ? 0 : 1];
    const std::size_t count = vector.elements.size();
    const unsigned bytes = size_of(form.type());
    if (!is_bits(form.type()) || (count != 2 && count != 4) || bytes / count == 0 || bytes > 8 ||
        scalar.kind == Operand::Kind::Vector) {
        fail("Arguments mismatch for instruction 'mov': " + std::to_string(count) +
             " elements in ." + std::string(name_of(form.type())));
    }
    const auto part = static_cast<unsigned>(bytes / count);
    Instruction result;
    result.handler = pack ? pack_elements(part, static_cast<unsigned>(count))
                          : unpack_elements(part, static_cast<unsigned>(count));
    if (pack) {
        for (std::size_t n = 0; n < count; ++n)
            result.slots[n + 1] = source(vector.elements[n], bits_of_size(part));
        const Result destination = this->destination(scalar, form.type());
        if (destination.slot == kNoSlot) fail("'_' can't be the destination of 'mov'");
        result.slots[0] = destination.slot;
    } else {
        result.slots[0] = source(scalar, form.type());
        for (std::size_t n = 0; n < count; ++n)
            result.slots[n + 1] = destination(vector.elements[n], bits_of_size(part)).slot;
    }
    emit(result);
}

/// f32x2: the operation on both halves of 64-bit registers.
void FunctionCompiler::pair(const Form& form, const syntax::Instruction& syntax) {
    Form half = form;
    half.types[0] = Type::F32;
    static constexpr FormRow kRows[] = {{"add", "", "", Family::Float},
                                        {"sub", "", "", Family::Float},
                                        {"mul", "", "", Family::Float},
                                        {"fma", "", "", Family::Float}};
    for (const FormRow& row : kRows) {
        if (form.is(row.opcode)) half.row = &row;
    }
    const std::size_t operands = syntax.operands.size();
    Instruction halves[2];
    for (std::size_t n = 1; n < operands; ++n) {
        Instruction unpack;
        unpack.handler = unpack_elements(4, 2);
        unpack.slots[0] = source(syntax.operands[n], Type::B64);
        for (unsigned h = 0; h < 2; ++h)
            unpack.slots[h + 1] = halves[h].slots[n] = new_temporary(4);
        emit(unpack);
    }
    Instruction pack;
    pack.handler = pack_elements(4, 2);
    for (unsigned h = 0; h < 2; ++h) {
        halves[h].handler = context_.set.arithmetic(half);
        halves[h].slots[0] = pack.slots[h + 1] = new_temporary(4);
        emit(halves[h]);
    }
    pack.slots[0] = destination(syntax.operands[0], Type::B64).slot;
    if (pack.slots[0] == kNoSlot)
        fail("'_' can't be the destination of '" + std::string(syntax.opcode) + "'");
    emit(pack);
}

} // namespace cudamod::emulator::ptx
