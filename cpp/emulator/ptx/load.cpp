/// load(): text to Program.
#include "emulator/ptx/address_space.h"
#include "emulator/ptx/fault_text.h"
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/parser.h"

#include <algorithm>

namespace cudamod::emulator::ptx {
namespace {

constexpr std::uint64_t kMaxParameterBytes = 32764, kMaxParameterBytesOfOld = 4352,
                        kMaxConstantBytes = 64 * 1024, kMaxStaticSharedBytes = 48 * 1024;

Builtin builtin_named(std::string_view name) {
    if (name == "vprintf") return Builtin::Printf;
    if (name == "malloc") return Builtin::Malloc;
    if (name == "free") return Builtin::Free;
    return name == "__assertfail" ? Builtin::AssertFail : Builtin::None;
}

std::size_t builtin_parameters(Builtin builtin) {
    switch (builtin) {
    case Builtin::Printf:
        return 2;
    case Builtin::AssertFail:
        return 5;
    default:
        return 1;
    }
}

class Loader {
  public:
    Loader(Code& code, const Target& device) : code_(code), module_(parse(code.text, device)) {}

    void run() {
        code_.isa = module_.isa;
        code_.target = module_.target;
        code_.target_suffix = module_.target_suffix;
        declare_variables();
        declare_functions();
        for (const auto& [symbol, line] : variables_.mentioned())
            check_mentioned(symbol, line);
        ModuleContext context{code_,       constants_, symbols_,
                              signatures_, variables_, instruction_set()};
        for (const syntax::Function& function : module_.functions) {
            if (!function.has_body) continue;
            FunctionCode& code = code_.functions[symbols_.at(function.name).index];
            FunctionCompiler(context, code).run(function);
        }
        check_constants();
        for (const syntax::Function& function : module_.functions) {
            if (function.is_entry && function.has_body) add_entry(function);
        }
    }

  private:
    [[noreturn]] static void fail(int line, const std::string& reason) {
        throw LoadError(line, reason);
    }

    void declare_variables() {
        std::unordered_map<std::string_view, const syntax::Declaration*> chosen;
        for (const syntax::Declaration& declaration : module_.variables) {
            const auto [found, fresh] = chosen.try_emplace(declaration.name, &declaration);
            if (fresh) continue;
            if (!declaration.is_extern && !found->second->is_extern)
                fail(declaration.line,
                     "Duplicate definition of '" + std::string(declaration.name) + "'");
            if (!declaration.is_extern) found->second = &declaration;
        }
        for (const syntax::Declaration& declaration : module_.variables) {
            if (chosen[declaration.name] != &declaration) continue;
            if (declaration.is_extern && declaration.space != syntax::Space::Shared) {
                fail(declaration.line,
                     "Unresolved extern variable '" + std::string(declaration.name) + "'");
            }
            symbols_.emplace(declaration.name,
                             variables_.add(declaration, std::string(declaration.name)));
        }
    }

    void check_constants() const {
        std::uint64_t bytes = 0;
        for (const Variable& variable : code_.variables) {
            if (variable.space != VariableSpace::Constant) continue;
            bytes = (bytes + variable.alignment - 1) / variable.alignment * variable.alignment;
            bytes += variable.size;
            if (bytes > kMaxConstantBytes) {
                fail(0, "File uses too much global constant data: '" + variable.name +
                            "' ends behind the 65536 bytes that there are");
            }
        }
    }

    void declare_functions() {
        for (const syntax::Function& function : module_.functions) {
            Symbol symbol;
            symbol.kind = Symbol::Kind::Function;
            symbol.index = static_cast<std::uint32_t>(signatures_.size());
            const auto [found, fresh] = symbols_.try_emplace(function.name, symbol);
            if (!fresh) {
                redeclare(found->second, function);
                continue;
            }
            Signature signature{function.results, function.parameters, function.is_entry,
                                function.has_body, Builtin::None};
            if (!function.has_body) signature.builtin = builtin_of(function);
            signatures_.push_back(std::move(signature));
            FunctionCode code;
            code.name = function.name;
            code.is_entry = function.is_entry;
            code_.functions.push_back(std::move(code));
        }
        for (const syntax::Alias& alias : module_.aliases) {
            const auto target = symbols_.find(alias.target);
            if (target == symbols_.end() || target->second.kind != Symbol::Kind::Function) {
                fail(alias.line,
                     "Alias of '" + std::string(alias.target) + "', which is no function");
            }
            // The name itself was declared as a function without a body.
            symbols_.insert_or_assign(alias.name, Symbol(target->second));
        }
    }

    static Builtin builtin_of(const syntax::Function& function) {
        const Builtin builtin = builtin_named(function.name);
        if (builtin == Builtin::None) return builtin;
        const bool fits =
            function.parameters.size() == builtin_parameters(builtin) &&
            std::none_of(function.parameters.begin(), function.parameters.end(),
                         [](const syntax::Declaration& d) { return d.is_array || d.unsized; });
        if (!fits)
            fail(function.line, "Function '" + std::string(function.name) +
                                    "' is not declared as the driver provides it");
        return builtin;
    }

    void redeclare(const Symbol& symbol, const syntax::Function& function) {
        const std::string name(function.name);
        if (symbol.kind != Symbol::Kind::Function)
            fail(function.line, "Duplicate definition of '" + name + "'");
        Signature& signature = signatures_[symbol.index];
        if (signature.has_body && function.has_body)
            fail(function.line, "Duplicate definition of function '" + name + "'");
        const auto differs = [](const std::vector<syntax::Declaration>& a,
                                const std::vector<syntax::Declaration>& b) {
            return !std::equal(a.begin(), a.end(), b.begin(), b.end(),
                               [](const syntax::Declaration& x, const syntax::Declaration& y) {
                                   return size_of(x) == size_of(y);
                               });
        };
        if (signature.is_entry != function.is_entry ||
            differs(signature.parameters, function.parameters) ||
            differs(signature.results, function.results)) {
            fail(function.line,
                 "Declaration of function '" + name + "' differs from an earlier one");
        }
        if (!function.has_body) return;
        signature.has_body = true;
        signature.parameters = function.parameters;
        signature.results = function.results;
        signature.builtin = Builtin::None;
    }

    void check_mentioned(const std::string& symbol, int line) const {
        const auto found = symbols_.find(symbol);
        const bool fits =
            found != symbols_.end() && (found->second.kind == Symbol::Kind::Variable ||
                                        found->second.kind == Symbol::Kind::Function);
        if (!fits) fail(line, "Unknown symbol '" + symbol + "' in an initial value");
    }

    /// Marks the shared variables that a function and those it may call use.
    void reach(std::uint32_t index, std::vector<bool>& visited, std::vector<bool>& used) const {
        std::vector<std::uint32_t> open{index};
        while (!open.empty()) {
            const std::uint32_t at = open.back();
            open.pop_back();
            if (visited[at]) continue;
            visited[at] = true;
            const FunctionCode& function = code_.functions[at];
            for (const std::uint32_t variable : function.shared)
                used[variable] = true;
            open.insert(open.end(), function.calls.begin(), function.calls.end());
            for (std::uint32_t other = 0; function.indirect_calls && other < code_.functions.size();
                 ++other) {
                if (!code_.functions[other].is_entry) open.push_back(other);
            }
        }
    }

    void lay_out_shared(EntryCode& entry, Entry& facts) const {
        std::vector<bool> visited(code_.functions.size()), used(code_.shared.size());
        reach(entry.function, visited, used);
        entry.shared_offsets.assign(code_.shared.size(), ~0u);
        std::uint64_t offset = 0;
        std::uint32_t dynamic_alignment = 16;
        for (std::size_t n = 0; n < used.size(); ++n) {
            if (!used[n]) continue;
            const SharedVariable& variable = code_.shared[n];
            if (variable.dynamic) {
                dynamic_alignment = std::max(dynamic_alignment, variable.alignment);
                continue;
            }
            offset = (offset + variable.alignment - 1) / variable.alignment * variable.alignment;
            entry.shared_offsets[n] = static_cast<std::uint32_t>(offset);
            offset += variable.size;
        }
        if (offset > kMaxStaticSharedBytes) {
            fail(0, "Entry function '" + facts.name + "' uses too much shared data (" +
                        address_text(offset) + " bytes, " + address_text(kMaxStaticSharedBytes) +
                        " max)");
        }
        facts.static_shared_bytes = static_cast<std::uint32_t>(offset);
        entry.static_shared = static_cast<std::uint32_t>((offset + dynamic_alignment - 1) /
                                                         dynamic_alignment * dynamic_alignment);
    }

    void add_entry(const syntax::Function& function) {
        const std::uint32_t index = symbols_.at(function.name).index;
        const FunctionCode& code = code_.functions[index];
        Entry facts;
        facts.name = function.name;
        std::uint64_t offset = 0;
        for (const syntax::Declaration& declaration : function.parameters) {
            const std::uint32_t alignment = alignment_of(declaration);
            offset = (offset + alignment - 1) / alignment * alignment;
            facts.parameters.push_back({static_cast<std::uint32_t>(offset),
                                        static_cast<std::uint32_t>(size_of(declaration)),
                                        alignment});
            offset += size_of(declaration);
            if (offset > kMaxParameterBytes)
                fail(declaration.line,
                     "Parameters of kernel '" + facts.name + "' exceed 32764 bytes");
            if (offset > kMaxParameterBytesOfOld && code_.isa < 81) {
                fail(declaration.line, "Parameters of kernel '" + facts.name +
                                           "' exceed 4352 bytes, which requires PTX ISA .version "
                                           "8.1 or later");
            }
        }
        facts.parameter_bytes = static_cast<std::uint32_t>(offset);
        facts.local_bytes = code.local_variable_bytes;
        facts.registers = std::min(255u, std::max(8u, 8 + code.register_bytes / 128 / 4));
        facts.max_threads = function.max_threads;
        facts.required_threads = function.required_threads;
        facts.required_cluster = function.required_cluster;
        facts.explicit_cluster = function.explicit_cluster;
        facts.max_cluster_rank = function.max_cluster_rank;
        facts.min_blocks_per_sm = function.min_blocks_per_sm;
        facts.max_registers = function.max_registers;
        EntryCode entry;
        entry.function = index;
        lay_out_shared(entry, facts);
        code_.entries.push_back(std::move(facts));
        code_.entry_codes.push_back(std::move(entry));
    }

    Code& code_;
    syntax::Module module_;
    ConstantPool constants_{code_};
    VariableTable variables_{code_};
    std::unordered_map<std::string_view, Symbol> symbols_;
    std::vector<Signature> signatures_;
};

} // namespace

Program::Program(std::unique_ptr<const Code> code) : code_(std::move(code)) {}
Program::~Program() = default;
const std::vector<Entry>& Program::entries() const {
    return code_->entries;
}
const std::vector<Variable>& Program::variables() const {
    return code_->variables;
}
std::uint32_t Program::memory_instructions() const {
    return code_->memory_instructions;
}
std::string Program::instruction_text(std::uint32_t memory_instruction) const {
    for (const FunctionCode& function : code_->functions) {
        for (const Instruction& i : function.instructions) {
            if (i.cache != memory_instruction || i.cache == 0) continue;
            return "line " + std::to_string(code_->sources[i.source].line) + " '" +
                   ptx::instruction_text(*code_, i) + "'";
        }
    }
    return "an instruction";
}
int Program::target() const {
    return code_->target;
}
int Program::isa() const {
    return code_->isa;
}

std::optional<std::uint64_t> Program::function_address(std::string_view name) const {
    for (std::size_t n = 0; n < code_->functions.size(); ++n) {
        if (code_->functions[n].name == name) return kFunctionWindow + 16 * n;
    }
    return std::nullopt;
}

LoadResult load(std::string_view text, const Target& device) {
    LoadResult result;
    auto code = std::make_unique<Code>();
    code->text = text.substr(0, text.find('\0'));
    try {
        Loader(*code, device).run();
    } catch (const LoadError& error) {
        result.status = error.status();
        result.log = "ptxas application ptx input, line " + std::to_string(error.line()) +
                     "; error   : " + error.what() +
                     "\nptxas fatal   : Ptx assembly aborted due to errors\n";
        return result;
    }
    result.status = LoadStatus::Ok;
    result.program = std::make_shared<const Program>(std::move(code));
    return result;
}

} // namespace cudamod::emulator::ptx
