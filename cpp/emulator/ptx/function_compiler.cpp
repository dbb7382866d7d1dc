#include "emulator/ptx/function_compiler.h"

#include "emulator/ptx/runtime.h"

#include <algorithm>

namespace cudamod::emulator::ptx {
namespace {

/// How setp combines its comparison with a further predicate.
std::int64_t combination(const Form& form) {
    return form.has("and") ? 1 : form.has("or") ? 2 : form.has("xor") ? 3 : 0;
}

constexpr std::uint32_t kMaxRegisterBytes = 64u << 20;

std::uint32_t aligned(std::uint32_t value, std::uint32_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

} // namespace

void FunctionCompiler::run(const syntax::Function& syntax) {
    line_ = syntax.line;
    is_entry_ = syntax.is_entry;
    scopes_.emplace_back();
    parameters(syntax);
    block(syntax.body);
    guard_ = kNoSlot;
    emit({.handler = &return_from});
    resolve_branches();
    function_.local_bytes = aligned(function_.local_bytes, 16);
}

void FunctionCompiler::parameters(const syntax::Function& syntax) {
    std::uint32_t offset = 0;
    const auto formal = [&](const syntax::Declaration& declaration,
                            std::vector<Transfer>& transfers) {
        line_ = declaration.line;
        const std::string name(declaration.name);
        if (declaration.unsized) fail("parameter '" + name + "' needs a size");
        if (is_entry_ && declaration.space == syntax::Space::Register)
            fail("parameter '" + name + "' of a kernel must be in .param");
        Symbol symbol;
        symbol.type = declaration.type;
        symbol.size = size_of(declaration);
        Transfer transfer;
        transfer.size = static_cast<std::uint32_t>(symbol.size);
        if (declaration.space == syntax::Space::Register) {
            symbol.kind = Symbol::Kind::Register;
            symbol.slots[0] = new_register(declaration.type);
            transfer.place = symbol.slots[0];
            transfer.in_register = true;
            if (declaration.type == Type::Pred) fail("a predicate can't be a parameter");
        } else if (is_entry_) {
            symbol.kind = Symbol::Kind::EntryParam;
            offset = aligned(offset, alignment_of(declaration));
            symbol.offset = offset;
            offset += static_cast<std::uint32_t>(symbol.size);
        } else {
            symbol.kind = Symbol::Kind::Param;
            function_.local_bytes = aligned(function_.local_bytes, alignment_of(declaration));
            symbol.offset = function_.local_bytes;
            transfer.place = symbol.offset;
            function_.local_bytes += static_cast<std::uint32_t>(symbol.size);
        }
        transfers.push_back(transfer);
        add_symbol(declaration.name, symbol);
    };
    for (const syntax::Declaration& declaration : syntax.results)
        formal(declaration, function_.results);
    for (const syntax::Declaration& declaration : syntax.parameters)
        formal(declaration, function_.parameters);
}

Symbol& FunctionCompiler::add_symbol(std::string_view name, Symbol symbol) {
    const auto [found, fresh] = scopes_.back().symbols.try_emplace(name, symbol);
    if (!fresh) fail("Duplicate definition of '" + std::string(name) + "'");
    return found->second;
}

Slot FunctionCompiler::new_register(Type type) {
    if (type == Type::Pred) {
        if (predicate_block_ == kNoSlot || predicates_ == 16) {
            predicate_block_ = new_temporary(2);
            predicates_ = 0;
        }
        return predicate_block_ + 4 * predicates_++;
    }
    const std::uint32_t bytes = aligned(size_of(type) * kLanes, 64);
    const Slot slot = function_.register_bytes;
    if (slot > kMaxRegisterBytes - bytes)
        fail("function '" + function_.name + "' uses too many registers");
    function_.register_bytes += bytes;
    return slot;
}

Slot FunctionCompiler::frame_base() {
    if (function_.frame_base == kNoSlot) function_.frame_base = new_register(Type::B64);
    return function_.frame_base;
}

void FunctionCompiler::declare_labels(const syntax::Block& block) {
    for (const syntax::Statement& statement : block.statements) {
        line_ = statement.line;
        if (const auto* label = std::get_if<syntax::Label>(&statement.content)) {
            Symbol symbol;
            symbol.kind = Symbol::Kind::Label;
            symbol.index = static_cast<std::uint32_t>(labels_.size());
            labels_.push_back(~0u);
            add_symbol(label->name, symbol);
        } else if (const auto* targets = std::get_if<syntax::Targets>(&statement.content)) {
            Symbol symbol;
            symbol.kind = Symbol::Kind::Targets;
            symbol.index = static_cast<std::uint32_t>(target_lists_.size());
            target_lists_.push_back(targets->names);
            add_symbol(targets->label, symbol);
        } else if (const auto* prototype = std::get_if<syntax::Prototype>(&statement.content)) {
            Symbol symbol;
            symbol.kind = Symbol::Kind::Prototype;
            symbol.index = static_cast<std::uint32_t>(prototype_results_.size());
            prototype_results_.push_back(prototype->results);
            prototype_parameters_.push_back(prototype->parameters);
            add_symbol(prototype->label, symbol);
        }
    }
}

void FunctionCompiler::block(const syntax::Block& block) {
    if (scopes_.size() > 1 || !block.statements.empty()) scopes_.emplace_back();
    declare_labels(block);
    for (const syntax::Statement& statement : block.statements) {
        line_ = statement.line;
        if (const auto* declarations =
                std::get_if<std::vector<syntax::Declaration>>(&statement.content)) {
            for (const syntax::Declaration& declaration : *declarations)
                declare(declaration);
        } else if (const auto* inner = std::get_if<syntax::Block>(&statement.content)) {
            this->block(*inner);
        } else if (const auto* label = std::get_if<syntax::Label>(&statement.content)) {
            labels_[find(label->name)->index] =
                static_cast<std::uint32_t>(function_.instructions.size());
        } else if (const auto* parsed = std::get_if<syntax::Instruction>(&statement.content)) {
            SourceLine source;
            source.line = statement.line;
            source.begin =
                static_cast<std::uint32_t>(statement.text.data() - context_.code.text.data());
            source.length = static_cast<std::uint32_t>(statement.text.size());
            source_ = static_cast<std::uint32_t>(context_.code.sources.size());
            context_.code.sources.push_back(source);
            instruction(*parsed);
        }
    }
    if (scopes_.size() > 1) scopes_.pop_back();
}

void FunctionCompiler::declare(const syntax::Declaration& declaration) {
    line_ = declaration.line;
    if (declaration.space == syntax::Space::Register) {
        if (declaration.has_initial || declaration.is_array)
            fail("a register can't be an array or have an initializer");
        if (declaration.vector > 4) fail("a vector register has 2 or 4 elements");
        if (declaration.count != 0 || declaration.unsized) {
            const RegisterRange range{declaration.type, declaration.vector, declaration.count};
            if (!scopes_.back().ranges.try_emplace(declaration.name, range).second) {
                fail("Duplicate definition of '" + std::string(declaration.name) + "'");
            }
            return;
        }
        Symbol symbol;
        symbol.type = declaration.type;
        symbol.vector = declaration.vector;
        for (unsigned n = 0; n < declaration.vector; ++n)
            symbol.slots[n] = new_register(declaration.type);
        add_symbol(declaration.name, symbol);
        return;
    }
    const bool local = declaration.space == syntax::Space::Local,
               param = declaration.space == syntax::Space::Param;
    if (!local && !param) {
        const std::string name = function_.name + "::" + std::string(declaration.name);
        add_symbol(declaration.name, context_.variables.add(declaration, name));
        return;
    }
    if (declaration.has_initial)
        fail("a variable in local or parameter space can't have an initializer");
    if (declaration.unsized) fail("variable '" + std::string(declaration.name) + "' needs a size");
    const std::uint64_t size = size_of(declaration);
    if (size > kMaxLocalBytes || function_.local_bytes + size > kMaxLocalBytes) {
        fail("function '" + function_.name + "' uses too much local memory");
    }
    Symbol symbol;
    symbol.kind = local ? Symbol::Kind::Local : Symbol::Kind::Param;
    symbol.type = declaration.type;
    symbol.size = size;
    function_.local_bytes = aligned(function_.local_bytes, alignment_of(declaration));
    symbol.offset = function_.local_bytes;
    function_.local_bytes += static_cast<std::uint32_t>(size);
    if (local)
        function_.local_variable_bytes =
            aligned(function_.local_variable_bytes, alignment_of(declaration)) +
            static_cast<std::uint32_t>(size);
    add_symbol(declaration.name, symbol);
}

Symbol* FunctionCompiler::find_range(Scope& scope, std::string_view name) {
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        --digits;
    // %r10 may belong to `%r<20>` as well as to `%r1<5>`.
    for (; digits < name.size(); ++digits) {
        const auto range = scope.ranges.find(name.substr(0, digits));
        const std::string_view number = name.substr(digits);
        if (range == scope.ranges.end() || number.size() > 8 ||
            (number.size() > 1 && number[0] == '0'))
            continue;
        std::uint32_t index = 0;
        for (const char c : number)
            index = index * 10 + static_cast<std::uint32_t>(c - '0');
        if (index >= range->second.count) continue;
        Symbol symbol;
        symbol.type = range->second.type;
        symbol.vector = range->second.vector;
        for (unsigned n = 0; n < symbol.vector; ++n)
            symbol.slots[n] = new_register(symbol.type);
        return &scope.symbols.emplace(name, symbol).first->second;
    }
    return nullptr;
}

Symbol* FunctionCompiler::find(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        const auto found = scope->symbols.find(name);
        if (found != scope->symbols.end()) return &found->second;
        if (Symbol* symbol = find_range(*scope, name)) return symbol;
    }
    const auto found = context_.symbols.find(name);
    return found == context_.symbols.end() ? nullptr : &found->second;
}

Instruction& FunctionCompiler::emit(Instruction instruction) {
    instruction.guard = guard_;
    instruction.guard_xor = guard_xor_;
    instruction.source = source_;
    function_.instructions.push_back(instruction);
    return function_.instructions.back();
}

void FunctionCompiler::resolve_branches() {
    for (const Fixup& fixup : fixups_) {
        function_.instructions[fixup.instruction].immediate =
            static_cast<std::int64_t>(labels_[fixup.label]) -
            static_cast<std::int64_t>(fixup.instruction);
    }
    for (const auto& [table, labels] : table_fixups_) {
        for (const std::uint32_t label : labels)
            context_.code.branch_tables[table].push_back(labels_[label]);
    }
}

/// set is a setp into a predicate of its own and a choice between two constants.
void FunctionCompiler::set(const Form& form, const syntax::Instruction& syntax) {
    Form compare = form;
    static constexpr FormRow kSetp{"setp", "", "", Family::Compare};
    compare.row = &kSetp;
    compare.types[0] = form.types[1];
    Instruction first;
    first.handler = context_.set.arithmetic(compare);
    if (first.handler == nullptr) fail("Illegal modifier combination for instruction 'set'");
    first.immediate = combination(form);
    first.slots[2] = source(syntax.operands[1], form.types[1]);
    first.slots[3] = source(syntax.operands[2], form.types[1]);
    if (syntax.operands.size() > 3) first.slots[4] = predicate_source(syntax.operands[3]);
    first.slots[0] = new_register(Type::Pred);
    emit(first);

    const Slot to = destination(syntax.operands[0], form.type()).slot;
    if (to == kNoSlot) fail("'_' can't be the destination of 'set'");
    choose(to, first.slots[0], form.type() == Type::F32 ? 0x3f800000 : 0xffffffff, 0);
}

void FunctionCompiler::choose(Slot to, Slot predicate, std::uint32_t yes, std::uint32_t no) {
    Form choice;
    static constexpr FormRow kSelp{"selp", "", "", Family::Compare};
    choice.row = &kSelp;
    choice.types[0] = Type::B32;
    Instruction result;
    result.handler = context_.set.arithmetic(choice);
    result.slots[0] = to;
    result.slots[1] = context_.constants.value(4, yes);
    result.slots[2] = context_.constants.value(4, no);
    result.slots[3] = predicate;
    emit(result);
}

void FunctionCompiler::instruction(const syntax::Instruction& syntax) {
    guard_ = kNoSlot;
    guard_xor_ = 0;
    if (!syntax.guard.empty()) {
        Operand guard;
        guard.name = syntax.guard;
        guard_ = predicate_source(guard);
        guard_xor_ = syntax.guard_negated ? ~0u : 0u;
    }
    const Form form = match_form(syntax.opcode, syntax.modifiers, syntax.operands.size(), line_);
    if (context_.code.target < form.row->min_target) {
        fail("Feature '" + std::string(syntax.opcode) + "' requires .target sm_" +
             std::to_string(form.row->min_target) + " or higher");
    }
    if (form.row->specific && context_.code.target_suffix == 0) {
        fail("Feature '" + std::string(syntax.opcode) + "' requires .target sm_" +
             std::to_string(form.row->min_target) + "a");
    }
    if (context_.code.isa < form.row->min_isa) {
        fail("Feature '" + std::string(syntax.opcode) + "' requires PTX ISA .version " +
             std::to_string(form.row->min_isa / 10) + "." + std::to_string(form.row->min_isa % 10) +
             " or later");
    }
    switch (form.row->family) {
    case Family::Move:
        move(form, syntax);
        return;
    case Family::Memory:
        memory(form, syntax);
        return;
    case Family::Atomic:
        atomic(form, syntax);
        return;
    case Family::Special:
        special(form, syntax);
        return;
    case Family::Control:
        control(form, syntax);
        return;
    case Family::Barrier:
        barrier(form, syntax);
        return;
    case Family::Async:
        async(form, syntax);
        return;
    case Family::Matrix:
        matrix(form, syntax);
        return;
    case Family::MemoryBarrier:
        memory_barrier(form, syntax);
        return;
    case Family::Bulk:
        bulk(form, syntax);
        return;
    case Family::Tensor:
        tensor(form, syntax);
        return;
    case Family::Policy:
        policy(form, syntax);
        return;
    case Family::Pair:
        pair(form, syntax);
        return;
    case Family::Nothing:
        without_effect(form, syntax);
        return;
    case Family::Compare:
        if (!form.is("set")) break;
        set(form, syntax);
        return;
    case Family::Warp:
        plain(form, syntax, {.extra = warp_settings(form)}, select_warp(form));
        return;
    default:
        break;
    }
    Instruction result;
    result.extra = context_.set.settings(form);
    result.immediate = combination(form);
    plain(form, syntax, result, context_.set.arithmetic(form));
}

} // namespace cudamod::emulator::ptx
