/// mbarrier, asynchronous and bulk copies, and what concerns caches only.
#include "emulator/ptx/address_space.h"
#include "emulator/ptx/bulk_copy.h"
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/memory_barrier.h"

#include <bit>

namespace cudamod::emulator::ptx {
namespace {

std::uint32_t reduction_of(const Form& form) {
    static constexpr std::string_view kNames[] = {"add", "min", "max", "inc",
                                                  "dec", "and", "or",  "xor"};
    for (std::uint32_t n = 0; n < std::size(kNames); ++n) {
        if (form.has(kNames[n])) return n;
    }
    return 0;
}

bool reduces(const Form& form) {
    return form.is("red") || form.has("reduce");
}

/// An opaque value; what cache a policy prefers changes nothing here.
constexpr std::uint64_t kCachePolicy = 0x1000000000000000;

} // namespace

Slot FunctionCompiler::address_value(const Address& address) {
    if (address.displacement == 0) return address.base;
    Instruction add;
    add.handler = context_.set.add_immediate;
    add.slots[0] = new_temporary(8);
    add.slots[1] = address.base;
    add.immediate = address.displacement;
    return emit(add).slots[0];
}

void FunctionCompiler::async(const Form& form, const syntax::Instruction& syntax) {
    if (!form.is("cp")) {
        store_async(form, syntax);
        return;
    }
    const Address to = address(syntax.operands[0]);
    const Address from = address(syntax.operands[1]);
    const std::int64_t bytes = constant(syntax.operands[2]);
    const bool fits = form.has("cg") ? bytes == 16 : bytes == 4 || bytes == 8 || bytes == 16;
    if (!fits) fail("cp.async can't copy " + std::to_string(bytes) + " bytes");
    Instruction result;
    result.handler = &copy_async;
    result.extra = static_cast<std::uint32_t>(bytes);
    result.slots[7] = address_value(from);
    std::size_t operands = syntax.operands.size();
    if (form.has("L2::cache_hint")) source(syntax.operands[--operands], Type::B64);
    if (operands > 3) result.slots[0] = bytes_to_read(syntax.operands[3], result.extra);
    set_address(result, to);
    emit(result);
}

/// A count, or a predicate that says to read nothing.
Slot FunctionCompiler::bytes_to_read(const Operand& operand, std::uint32_t bytes) {
    const Symbol* symbol = operand.kind == Operand::Kind::Name ? find(operand.name) : nullptr;
    const bool predicate =
        symbol != nullptr && symbol->kind == Symbol::Kind::Register && symbol->type == Type::Pred;
    if (!predicate) return source(operand, Type::U32);
    const Slot slot = new_temporary(4);
    choose(slot, predicate_source(operand), 0, bytes);
    return slot;
}

void FunctionCompiler::store_async(const Form& form, const syntax::Instruction& syntax) {
    bulk::Settings settings;
    settings.type = static_cast<std::uint32_t>(form.type());
    settings.reduces = reduces(form) ? 1 : 0;
    settings.reduction = reduction_of(form);
    Instruction result;
    std::vector<Result> none;
    values(form, syntax.operands[1], false, result, none);
    result.slots[4] = address_value(address(syntax.operands[2]));
    result.handler = &bulk::store_async;
    result.extra = std::bit_cast<std::uint32_t>(settings);
    set_address(result, address(syntax.operands[0]));
    emit(result);
}

void FunctionCompiler::memory_barrier(const Form& form, const syntax::Instruction& syntax) {
    Instruction result;
    result.handler = memory_barrier::select(form);
    result.extra = memory_barrier::settings(form);
    const auto& operands = syntax.operands;
    if (form.has("pending_count")) {
        result.slots[1] = source(operands[1], Type::B64);
        const Result count = destination(operands[0], Type::U32);
        if (count.slot == kNoSlot) fail("'_' can't be the destination of 'mbarrier'");
        result.slots[0] = count.slot;
        emit(result);
        return;
    }
    const bool wait = form.has("test_wait") || form.has("try_wait");
    const bool arrive = form.has("arrive") || form.has("arrive_drop");
    std::size_t next = wait || (arrive && !form.is("cp")) ? 1 : 0;
    const Address where = address(operands[next++]);
    if (where.symbol != nullptr && where.symbol->kind != Symbol::Kind::Shared)
        fail("State space mismatch between instruction and address");
    if (where.symbol != nullptr) result.extra &= ~1u; // a shared variable's name is its offset
    if (next < operands.size()) {
        const bool state = wait && !form.has("parity");
        result.slots[1] = source(operands[next++], state ? Type::B64 : Type::U32);
    }
    if (next < operands.size()) source(operands[next++], Type::U32); // how long try_wait may take
    if (wait) result.slots[0] = predicate_destination(operands[0]);
    if (arrive && !form.is("cp")) {
        result.slots[0] = destination(operands[0], Type::B64).slot;
        if (form.has("shared::cluster") && result.slots[0] != kNoSlot)
            fail("The destination of an arrival at another block's mbarrier must be '_'");
    }
    set_address(result, where);
    // To the checks a lock: who waits there knows what those knew who arrived.
    const bool writes = form.has("init") || form.has("inval");
    note_access(result, writes ? Access::Kind::Store : Access::Kind::Atomic,
                (result.extra & 1) != 0 ? Where::Generic : Where::Shared, 8);
    emit(result);
}

void FunctionCompiler::bulk(const Form& form, const syntax::Instruction& syntax) {
    const auto& operands = syntax.operands;
    bulk::Settings settings;
    const bool to_global = form.has("bulk_group"), from_shared = to_global || !form.has("global");
    settings.to = static_cast<std::uint32_t>(to_global ? Where::Global : Where::Shared);
    settings.from = static_cast<std::uint32_t>(from_shared ? Where::Shared : Where::Global);
    settings.multicast = form.has("multicast::cluster") ? 1 : 0;
    settings.reduces = reduces(form) ? 1 : 0;
    settings.reduction = reduction_of(form);
    settings.type = static_cast<std::uint32_t>(form.type());
    if (reduces(form) &&
        select_combine(static_cast<Reduction>(reduction_of(form)), form.type()) == nullptr)
        fail("Illegal modifier combination for instruction 'cp.reduce'");
    Instruction result;
    result.handler = &bulk::copy;
    result.extra = std::bit_cast<std::uint32_t>(settings);
    const auto operand = [&](const Operand& given, bool shared) {
        const Address where = address(given);
        const bool fits =
            where.symbol == nullptr ||
            where.symbol->kind == (shared ? Symbol::Kind::Shared : Symbol::Kind::Variable);
        if (!fits) fail("State space mismatch between instruction and address");
        return address_value(where);
    };
    result.slots[bulk::kTo] = operand(operands[0], !to_global);
    result.slots[bulk::kFrom] = operand(operands[1], from_shared);
    result.slots[bulk::kCount] = source(operands[2], Type::U32);
    std::size_t next = 3;
    if (!to_global) result.slots[bulk::kBarrier] = operand(operands[next++], true);
    if (settings.multicast != 0) result.slots[bulk::kBlocks] = source(operands[next++], Type::U16);
    if (next < operands.size()) source(operands[next], Type::B64);
    result.cache = context_.code.memory_instructions++;
    if (settings.reduces != 0) note_access(result, Access::Kind::Other, Where::Generic, 0, 1, true);
    emit(result);
}

/// `[map, {x, y}]`: the map's address; the coordinates go to their slots.
FunctionCompiler::Address FunctionCompiler::tensor_address(const Operand& operand, const Form& form,
                                                           Instruction& result) {
    unsigned rank = 0;
    for (const std::string_view modifier : form.modifiers) {
        if (modifier.size() == 2 && modifier[1] == 'd')
            rank = static_cast<unsigned>(modifier[0] - '0');
    }
    const bool shaped = operand.kind == Operand::Kind::Address && operand.elements.size() == 2 &&
                        operand.elements[1].kind == Operand::Kind::Vector &&
                        operand.elements[1].elements.size() == rank;
    if (!shaped) {
        fail("Arguments mismatch for instruction: a tensor map and " + std::to_string(rank) +
             " coordinates are wanted");
    }
    for (unsigned n = 0; n < rank; ++n)
        result.slots[bulk::kCoordinates + n] = source(operand.elements[1].elements[n], Type::S32);
    Operand map = operand;
    map.elements.pop_back();
    return address(map);
}

void FunctionCompiler::tensor(const Form& form, const syntax::Instruction& syntax) {
    const auto& operands = syntax.operands;
    const bool load = form.has("mbarrier::complete_tx::bytes"), prefetch = form.has("prefetch");
    bulk::Settings settings;
    settings.multicast = form.has("multicast::cluster") ? 1 : 0;
    settings.reduces = reduces(form) ? 1 : 0;
    settings.reduction = reduction_of(form);
    for (const std::string_view modifier : form.modifiers) {
        if (modifier.size() == 2 && modifier[1] == 'd')
            settings.rank = static_cast<std::uint32_t>(modifier[0] - '0');
    }
    Instruction result;
    result.handler = load ? &bulk::load_tensor : prefetch ? &nothing : &bulk::store_tensor;
    result.extra = std::bit_cast<std::uint32_t>(settings);
    Address map = tensor_address(operands[load ? 1 : 0], form, result);
    if (map.symbol != nullptr && map.symbol->kind == Symbol::Kind::EntryParam)
        map.displacement += static_cast<std::int64_t>(kParameterWindow);
    result.slots[bulk::kMap] = address_value(map);
    std::size_t next = load ? 2 : 1;
    if (!prefetch) {
        const Address box = address(operands[load ? 0 : next++]);
        result.slots[bulk::kShared] = address_value(box);
    }
    if (load) result.slots[bulk::kTensorBarrier] = address_value(address(operands[next++]));
    if (settings.multicast != 0)
        result.slots[bulk::kTensorBlocks] = source(operands[next++], Type::U16);
    if (next < operands.size()) source(operands[next], Type::B64);
    result.cache = context_.code.memory_instructions++;
    if (settings.reduces != 0) note_access(result, Access::Kind::Other, Where::Generic, 0, 1, true);
    emit(result);
}

void FunctionCompiler::policy(const Form& form, const syntax::Instruction& syntax) {
    for (std::size_t n = 1; n < syntax.operands.size(); ++n) {
        const Operand& operand = syntax.operands[n];
        if (operand.kind == Operand::Kind::Address) {
            address(operand);
        } else {
            source(operand, form.has("range") ? Type::U32
                            : form.has("cvt") ? Type::B64
                                              : Type::F32);
        }
    }
    Instruction result;
    result.handler = context_.set.resize(8, 8, false);
    result.slots[0] = destination(syntax.operands[0], Type::B64).slot;
    if (result.slots[0] == kNoSlot) fail("'_' can't be the destination of 'createpolicy'");
    result.slots[1] = context_.constants.value(8, kCachePolicy);
    emit(result);
}

void FunctionCompiler::without_effect(const Form& form, const syntax::Instruction& syntax) {
    std::string_view specs = form.row->operands;
    for (const Operand& operand : syntax.operands) {
        const std::string_view spec = specs.substr(0, std::min(specs.find(' '), specs.size()));
        specs.remove_prefix(std::min(spec.size() + 1, specs.size()));
        if (spec[0] == 'A') {
            address(operand);
        } else if (spec[0] == 'S') {
            source(operand, type_named(spec.substr(1)).value_or(Type::B32));
        } else {
            constant(operand);
        }
    }
    emit({.handler = &nothing});
}

} // namespace cudamod::emulator::ptx
