#include "emulator/ptx/parser.h"

#include "emulator/ptx/declaration_parser.h"
#include "emulator/ptx/operand_parser.h"
#include "emulator/ptx/target.h"
#include "emulator/ptx/token_stream.h"

// In the namespace of what it makes: several of its names mean something else to the engine.
namespace cudamod::emulator::ptx::syntax {
namespace {

constexpr int kMaxNesting = 200;

class Parser {
  public:
    Parser(TokenStream& tokens, const Target& device) : tokens_(tokens), device_(device) {}

    Module run() {
        parse_version(tokens_, device_, module_);
        parse_target(tokens_, device_, module_);
        while (!tokens_.at_end())
            top_level();
        return std::move(module_);
    }

  private:
    void top_level() {
        if (tokens_.accept(";")) return;
        if (tokens_.peek().kind != TokenKind::Dotted) tokens_.unexpected("a directive");
        if (debug_directive()) return;
        const std::string_view word = tokens_.peek().text;
        if (word == ".address_size") {
            tokens_.take();
            const int line = tokens_.line();
            if (tokens_.integer("an address size") != 64)
                throw LoadError(line, "only .address_size 64 is supported");
        } else if (word == ".alias") {
            Alias alias;
            alias.line = tokens_.line();
            tokens_.take();
            alias.name = tokens_.identifier("a name");
            tokens_.expect(",");
            alias.target = tokens_.identifier("a name");
            tokens_.expect(";");
            module_.aliases.push_back(alias);
        } else {
            linked();
        }
    }

    void linked() {
        bool is_extern = false;
        for (;;) {
            if (tokens_.accept_dotted(".extern")) {
                is_extern = true;
            } else if (!tokens_.accept_dotted(".visible") && !tokens_.accept_dotted(".weak") &&
                       !tokens_.accept_dotted(".common")) {
                break;
            }
        }
        Space space;
        if (tokens_.is_dotted(".entry") || tokens_.is_dotted(".func")) {
            function(is_extern);
        } else if (tokens_.peek().kind == TokenKind::Dotted &&
                   declares(tokens_.peek().text, space) && space != Space::Register &&
                   space != Space::Param) {
            for (Declaration& declaration : parse_declarations(tokens_, is_extern)) {
                module_.variables.push_back(std::move(declaration));
            }
        } else {
            tokens_.fail("directive " + quoted(TokenStream::shown(tokens_.peek())) +
                         " is not supported");
        }
    }

    /// .loc, .file, .section and .pragma carry nothing that execution needs.
    bool debug_directive() {
        const std::string_view word = tokens_.peek().text;
        if (word == ".file") {
            tokens_.take();
            tokens_.integer("a file number");
            if (tokens_.peek().kind != TokenKind::String) tokens_.unexpected("a file name");
            tokens_.take();
            while (tokens_.accept(","))
                tokens_.integer("a number");
            return true;
        }
        if (word == ".loc") {
            tokens_.take();
            for (int i = 0; i < 3; ++i)
                tokens_.integer("a line number");
            while (tokens_.accept(","))
                location_attribute();
            return true;
        }
        if (word == ".section") {
            tokens_.take();
            tokens_.take();
            tokens_.expect("{");
            while (!tokens_.is("}")) {
                if (tokens_.at_end()) tokens_.unexpected("'}'");
                tokens_.take();
            }
            tokens_.take();
            return true;
        }
        if (word == ".pragma") {
            tokens_.take();
            do {
                if (tokens_.peek().kind != TokenKind::String) tokens_.unexpected("a string");
                tokens_.take();
            } while (tokens_.accept(","));
            tokens_.expect(";");
            return true;
        }
        return false;
    }

    void location_attribute() {
        const std::string_view name = tokens_.identifier("function_name or inlined_at");
        if (name == "function_name") {
            tokens_.identifier("a label");
            if (tokens_.is("+")) parse_constant(tokens_);
        } else if (name == "inlined_at") {
            for (int i = 0; i < 3; ++i)
                tokens_.integer("a number");
        } else {
            tokens_.fail("unknown attribute " + quoted(name) + " of .loc");
        }
    }

    void function(bool is_extern) {
        Function function;
        function.line = tokens_.line();
        function.is_extern = is_extern;
        function.is_entry = tokens_.take().text == ".entry";
        if (tokens_.is("(")) {
            if (function.is_entry) tokens_.fail("an entry has no return value");
            function.results = parse_parameters(tokens_);
        }
        function.name = tokens_.identifier("a function name");
        if (tokens_.is("(")) function.parameters = parse_parameters(tokens_);
        while (tokens_.peek().kind == TokenKind::Dotted) {
            if (!debug_directive()) performance_directive(function);
        }
        if (tokens_.is("{")) {
            if (is_extern) tokens_.fail("extern function " + quoted(function.name) + " has a body");
            function.has_body = true;
            function.body = block(0);
        } else {
            tokens_.expect(";");
        }
        module_.functions.push_back(std::move(function));
    }

    Dim3 dimensions() {
        std::uint32_t sizes[3] = {1, 1, 1};
        for (int i = 0; i < 3; ++i) {
            const std::uint64_t value = tokens_.integer("a dimension");
            if (value == 0 || value > 0x7fffffff)
                tokens_.fail("dimension " + std::to_string(value) + " is out of range");
            sizes[i] = static_cast<std::uint32_t>(value);
            if (!tokens_.accept(",")) break;
        }
        return {sizes[0], sizes[1], sizes[2]};
    }

    void performance_directive(Function& function) {
        const std::string_view word = tokens_.peek().text;
        if (word == ".noreturn" && !function.is_entry) {
            tokens_.take();
            function.no_return = true;
            return;
        }
        if (!function.is_entry && word != ".maxnreg") {
            tokens_.fail("directive " + quoted(word) + " is not supported on a .func");
        }
        tokens_.take();
        const auto number = [&] { return static_cast<std::uint32_t>(tokens_.integer("a number")); };
        if (word == ".maxntid") {
            function.max_threads = dimensions();
        } else if (word == ".reqntid") {
            function.required_threads = dimensions();
        } else if (word == ".reqnctapercluster") {
            function.required_cluster = dimensions();
        } else if (word == ".explicitcluster") {
            function.explicit_cluster = true;
        } else if (word == ".maxclusterrank") {
            function.max_cluster_rank = number();
        } else if (word == ".minnctapersm") {
            function.min_blocks_per_sm = number();
        } else if (word == ".maxnctapersm") {
            number();
        } else if (word == ".maxnreg") {
            function.max_registers = number();
        } else {
            tokens_.fail("directive " + quoted(word) + " is not supported");
        }
    }

    Block block(int depth) {
        if (depth > kMaxNesting) tokens_.fail("blocks are nested too deeply");
        Block result;
        tokens_.expect("{");
        while (!tokens_.accept("}")) {
            if (tokens_.at_end()) tokens_.unexpected("'}'");
            statement(result, depth);
        }
        return result;
    }

    void add(Block& into, const Token& first, decltype(Statement::content) content) {
        Statement statement;
        statement.line = first.line;
        statement.content = std::move(content);
        statement.text = tokens_.text_since(first);
        into.statements.push_back(std::move(statement));
    }

    void statement(Block& into, int depth) {
        if (tokens_.accept(";")) return;
        const Token first = tokens_.peek();
        if (tokens_.is("{")) {
            Block inner = block(depth + 1);
            add(into, first, std::move(inner));
        } else if (first.kind == TokenKind::Dotted) {
            if (debug_directive()) return;
            Space space;
            if (!declares(first.text, space))
                tokens_.fail("directive " + quoted(first.text) + " is not supported");
            std::vector<Declaration> declarations = parse_declarations(tokens_, false);
            add(into, first, std::move(declarations));
        } else if (first.kind == TokenKind::Identifier && tokens_.is(":", 1)) {
            tokens_.take();
            tokens_.take();
            labelled(into, first);
        } else {
            Instruction parsed = instruction();
            add(into, first, std::move(parsed));
        }
    }

    void labelled(Block& into, const Token& first) {
        if (tokens_.is_dotted(".branchtargets") || tokens_.is_dotted(".calltargets")) {
            tokens_.take();
            Targets targets;
            targets.label = first.text;
            do {
                targets.names.push_back(tokens_.identifier("a label"));
            } while (tokens_.accept(","));
            tokens_.expect(";");
            add(into, first, std::move(targets));
        } else if (tokens_.accept_dotted(".callprototype")) {
            Prototype prototype;
            prototype.label = first.text;
            if (tokens_.is("(")) prototype.results = parse_parameters(tokens_);
            tokens_.identifier("'_'");
            if (tokens_.is("(")) prototype.parameters = parse_parameters(tokens_);
            tokens_.accept_dotted(".noreturn");
            tokens_.expect(";");
            add(into, first, std::move(prototype));
        } else {
            add(into, first, Label{first.text});
        }
    }

    Instruction instruction() {
        Instruction result;
        if (tokens_.accept("@")) {
            result.guard_negated = tokens_.accept("!");
            result.guard = tokens_.identifier("a predicate");
        }
        result.opcode = tokens_.identifier("an instruction");
        while (tokens_.peek().kind == TokenKind::Dotted) {
            result.modifiers.push_back(tokens_.take().text.substr(1));
        }
        if (tokens_.accept(";")) return result;
        do {
            const bool list = result.opcode == "call" && tokens_.is("(");
            result.operands.push_back(list ? parse_list(tokens_) : parse_operand(tokens_));
        } while (tokens_.accept(","));
        tokens_.expect(";");
        return result;
    }

    TokenStream& tokens_;
    const Target& device_;
    Module module_;
};

} // namespace
} // namespace cudamod::emulator::ptx::syntax

namespace cudamod::emulator::ptx {

syntax::Module parse(std::string_view source, const Target& device) {
    TokenStream tokens(source, tokenize(source));
    return syntax::Parser(tokens, device).run();
}

} // namespace cudamod::emulator::ptx
