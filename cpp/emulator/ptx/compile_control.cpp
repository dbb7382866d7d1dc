/// Branches, calls and barriers.
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/runtime.h"

namespace cudamod::emulator::ptx {

void FunctionCompiler::control(const Form& form, const syntax::Instruction& syntax) {
    Instruction result;
    if (form.is("call")) {
        call(syntax);
        return;
    }
    if (form.is("bra")) {
        const std::uint32_t label = label_index(syntax.operands[0]);
        result.handler = &branch;
        fixups_.push_back(
            {static_cast<std::uint32_t>(function_.instructions.size()), label, line_});
    } else if (form.is("brx")) {
        result.slots[0] = source(syntax.operands[0], Type::U32);
        const Symbol* symbol = syntax.operands[1].kind == Operand::Kind::Name
                                   ? find(syntax.operands[1].name)
                                   : nullptr;
        if (symbol == nullptr || symbol->kind != Symbol::Kind::Targets)
            fail("brx.idx needs a label of .branchtargets");
        std::vector<std::uint32_t> labels;
        for (const std::string_view name : target_lists_[symbol->index]) {
            Operand target;
            target.name = name;
            labels.push_back(label_index(target));
        }
        result.handler = &branch_indexed;
        result.extra = static_cast<std::uint32_t>(context_.code.branch_tables.size());
        context_.code.branch_tables.emplace_back();
        table_fixups_.emplace_back(result.extra, std::move(labels));
    } else if (form.is("ret")) {
        result.handler = &return_from;
    } else if (form.is("exit")) {
        result.handler = &exit_thread;
    } else if (form.is("trap")) {
        result.handler = &trap;
    } else if (form.is("brkpt")) {
        result.handler = &breakpoint;
    } else if (form.is("setmaxnreg")) {
        const std::int64_t count = constant(syntax.operands[0]);
        if (count < 24 || count > 256 || count % 8 != 0)
            fail("setmaxnreg wants a multiple of 8 from 24 to 256, not " + std::to_string(count));
        result.handler = &nothing;
    } else {
        source(syntax.operands[0], Type::U32);
        result.handler = &sleep;
    }
    emit(result);
}

void FunctionCompiler::barrier(const Form& form, const syntax::Instruction& syntax) {
    Instruction result;
    result.handler = select_barrier(form);
    std::size_t next = 0, end = syntax.operands.size();
    Result produced;
    if (form.has("red")) {
        result.extra = form.has("and") ? 1 : form.has("or") ? 2 : 0;
        if (result.extra == 0) {
            produced = destination(syntax.operands[next++], Type::U32);
            result.slots[0] = produced.slot;
        } else {
            result.slots[0] = predicate_destination(syntax.operands[next++]);
        }
        result.slots[3] = predicate_source(syntax.operands[--end]);
    }
    if (next < end) result.slots[1] = source(syntax.operands[next++], Type::U32);
    if (next < end) result.slots[2] = source(syntax.operands[next++], Type::U32);
    emit(result);
}

std::vector<Transfer> FunctionCompiler::transfers(const Operand* list,
                                                  const std::vector<syntax::Declaration>& formal,
                                                  bool results) {
    const std::size_t given = list == nullptr ? 0 : list->elements.size();
    if (given != formal.size()) {
        fail(std::string("Call has wrong number of ") + (results ? "results: " : "parameters: ") +
             std::to_string(given) + " where " + std::to_string(formal.size()) + " are declared");
    }
    std::vector<Transfer> out;
    for (std::size_t n = 0; n < given; ++n) {
        const Operand& operand = list->elements[n];
        const syntax::Declaration& declared = formal[n];
        Transfer transfer;
        transfer.size = declared.unsized ? 0 : static_cast<std::uint32_t>(size_of(declared));
        const Symbol* symbol = operand.kind == Operand::Kind::Name ? find(operand.name) : nullptr;
        if (symbol != nullptr && symbol->kind == Symbol::Kind::Param) {
            if (symbol->size != transfer.size) {
                fail("Size of '" + std::string(operand.name) + "' is " +
                     std::to_string(symbol->size) + " bytes, the function declares " +
                     std::to_string(transfer.size));
            }
            transfer.place = symbol->offset;
        } else if (declared.is_array || declared.vector != 1) {
            fail("Call needs a .param variable for an array");
        } else {
            transfer.in_register = true;
            transfer.place =
                results ? destination(operand, declared.type).slot : source(operand, declared.type);
        }
        out.push_back(transfer);
    }
    return out;
}

void FunctionCompiler::call(const syntax::Instruction& syntax) {
    std::size_t next = 0;
    const auto list = [&]() -> const Operand* {
        const bool there =
            next < syntax.operands.size() && syntax.operands[next].kind == Operand::Kind::List;
        return there ? &syntax.operands[next++] : nullptr;
    };
    const Operand* results = list();
    if (next == syntax.operands.size() || syntax.operands[next].kind != Operand::Kind::Name)
        fail("Call lacks a function");
    const Operand& target = syntax.operands[next++];
    const Operand* arguments = list();
    const Symbol* symbol = find(target.name);
    if (symbol == nullptr) fail("Unknown symbol '" + std::string(target.name) + "' in a call");

    Instruction result;
    CallSite site;
    if (symbol->kind == Symbol::Kind::Function) {
        if (next != syntax.operands.size()) fail("A direct call has no prototype");
        const Signature& signature = context_.signatures[symbol->index];
        if (signature.is_entry) fail("Call of kernel '" + std::string(target.name) + "'");
        if (!signature.has_body && signature.builtin == Builtin::None) {
            fail("Unresolved extern function '" + std::string(target.name) + "'");
        }
        site.function = symbol->index;
        site.builtin = signature.builtin;
        site.arguments = transfers(arguments, signature.parameters, false);
        site.results = transfers(results, signature.results, true);
        result.handler = site.builtin == Builtin::None ? &call_direct : &call_builtin;
        function_.calls.push_back(symbol->index);
    } else {
        result.slots[0] = source(target, Type::U64);
        const bool named =
            next + 1 == syntax.operands.size() && syntax.operands[next].kind == Operand::Kind::Name;
        const Symbol* prototype = named ? find(syntax.operands[next].name) : nullptr;
        const bool targets = prototype != nullptr && prototype->kind == Symbol::Kind::Targets;
        if (targets) {
            const auto& names = target_lists_[prototype->index];
            const Symbol* first = find(names[0]);
            if (first == nullptr || first->kind != Symbol::Kind::Function)
                fail("'" + std::string(names[0]) + "' is no function");
            const Signature& signature = context_.signatures[first->index];
            site.arguments = transfers(arguments, signature.parameters, false);
            site.results = transfers(results, signature.results, true);
        } else {
            if (prototype == nullptr || prototype->kind != Symbol::Kind::Prototype)
                fail("An indirect call needs a prototype");
            site.arguments = transfers(arguments, prototype_parameters_[prototype->index], false);
            site.results = transfers(results, prototype_results_[prototype->index], true);
        }
        result.handler = &call_indirect;
        function_.indirect_calls = true;
    }
    result.extra = static_cast<std::uint32_t>(context_.code.calls.size());
    context_.code.calls.push_back(std::move(site));
    emit(result);
}

} // namespace cudamod::emulator::ptx
