#include "formats/ptx_header.h"

#include "formats/ptx_tokens.h"

#include <algorithm>
#include <unordered_set>

namespace cudamod::formats {
namespace {

constexpr std::uint64_t kLargestParameter = std::uint64_t{1} << 31;
constexpr std::uint64_t kLargestAlignment = 1u << 20;

struct Fundamental {
    std::string_view name;
    PtxClass type_class;
    std::uint32_t size;
};

constexpr Fundamental kTypes[] = {
    {"b8", PtxClass::Bits, 1},        {"b16", PtxClass::Bits, 2},
    {"b32", PtxClass::Bits, 4},       {"b64", PtxClass::Bits, 8},
    {"b128", PtxClass::Bits, 16},     {"u8", PtxClass::Unsigned, 1},
    {"u16", PtxClass::Unsigned, 2},   {"u32", PtxClass::Unsigned, 4},
    {"u64", PtxClass::Unsigned, 8},   {"s8", PtxClass::Signed, 1},
    {"s16", PtxClass::Signed, 2},     {"s32", PtxClass::Signed, 4},
    {"s64", PtxClass::Signed, 8},     {"f16", PtxClass::Float, 2},
    {"f16x2", PtxClass::Float, 4},    {"bf16", PtxClass::Float, 2},
    {"bf16x2", PtxClass::Float, 4},   {"f32", PtxClass::Float, 4},
    {"f64", PtxClass::Float, 8},      {"pred", PtxClass::Predicate, 1},
    {"texref", PtxClass::Opaque, 8},  {"samplerref", PtxClass::Opaque, 8},
    {"surfref", PtxClass::Opaque, 8},
};

const Fundamental* find_type(std::string_view directive) {
    if (!directive.starts_with('.')) return nullptr;
    directive.remove_prefix(1);
    auto it = std::find_if(std::begin(kTypes), std::end(kTypes),
                           [&](const Fundamental& type) { return type.name == directive; });
    return it == std::end(kTypes) ? nullptr : it;
}

class HeaderReader {
  public:
    explicit HeaderReader(std::string_view text) : tokens_(text) {}

    Result<PtxHeader> read() {
        while (!tokens_.at_end() && ok())
            read_statement();
        if (ok() && header_.version_major == 0) fail("no .version directive");
        if (!ok()) return Failure{std::move(problem_)};
        return std::move(header_);
    }

  private:
    bool ok() const { return problem_.empty(); }

    void fail(const std::string& what) {
        if (!ok()) return;
        problem_ = "PTX line " + std::to_string(tokens_.peek().line) + ": " + what;
    }

    void fail_expected(const std::string& what) {
        std::string found = "the end";
        if (!tokens_.at_end()) found = "'" + std::string(tokens_.peek().text.substr(0, 80)) + "'";
        fail("expected " + what + ", found " + found);
    }

    void expect(std::string_view text) {
        if (!tokens_.accept(text)) fail_expected("'" + std::string(text) + "'");
    }

    std::uint32_t take_number(const char* what, std::uint64_t most = UINT32_MAX) {
        auto value = tokens_.peek().kind == PtxToken::Kind::Number
                         ? parse_ptx_integer(tokens_.peek().text)
                         : std::nullopt;
        if (!value || *value > most) {
            fail_expected(std::string(what) + " (at most " + std::to_string(most) + ")");
            return 0;
        }
        tokens_.take();
        return static_cast<std::uint32_t>(*value);
    }

    std::string take_name(const char* what) {
        if (tokens_.peek().kind != PtxToken::Kind::Word) {
            fail_expected(what);
            return {};
        }
        return std::string(tokens_.take().text);
    }

    void read_statement() {
        const PtxToken token = tokens_.take();
        if (token.is(".version")) {
            read_version();
        } else if (token.is(".target")) {
            read_target();
        } else if (token.is(".address_size")) {
            header_.address_size = static_cast<int>(take_number("an address size", 64));
        } else if (token.is(".entry")) {
            read_entry();
        } else if (token.is(".func")) {
            skip_function();
        } else if (token.is(".section")) {
            while (!tokens_.at_end() && !tokens_.peek().is("{"))
                tokens_.take();
            skip_block();
        } else if (token.is(".file")) {
            skip_file();
        } else if (token.is(".visible") || token.is(".extern") || token.is(".weak") ||
                   token.is(".common") || token.is(";")) {
            // linkage; the statement follows
        } else if (token.is("@") && tokens_.peek().is("@")) {
            skip_line(token.line); // DWARF in the notation of old compilers
        } else {
            skip_to_semicolon();
        }
    }

    void read_version() {
        const std::string_view text = tokens_.peek().text;
        const auto dot = text.find('.');
        auto major = parse_decimal(text.substr(0, dot));
        auto minor = dot == text.npos ? std::nullopt : parse_decimal(text.substr(dot + 1));
        if (tokens_.peek().kind != PtxToken::Kind::Number || !major || !minor || *major == 0) {
            return fail_expected("a version such as 9.0");
        }
        tokens_.take();
        header_.version_major = *major;
        header_.version_minor = *minor;
    }

    static std::optional<int> parse_decimal(std::string_view digits) {
        if (digits.empty() || digits.size() > 4) return std::nullopt;
        int value = 0;
        for (char c : digits) {
            if (c < '0' || c > '9') return std::nullopt;
            value = value * 10 + (c - '0');
        }
        return value;
    }

    void read_target() {
        do {
            const std::string option = take_name("a target");
            if (!option.starts_with("sm_") && !option.starts_with("compute_")) {
                header_.target_options.push_back(option);
                continue;
            }
            std::string_view digits = std::string_view(option).substr(option.find('_') + 1);
            if (digits.ends_with('a') || digits.ends_with('f')) {
                header_.suffix = digits.back();
                digits.remove_suffix(1);
            }
            auto sm = parse_decimal(digits);
            if (!sm) return fail("target '" + option.substr(0, 80) + "' is not known");
            header_.sm = *sm;
        } while (ok() && tokens_.accept(","));
    }

    void read_entry() {
        PtxEntry entry;
        entry.name = take_name("the name of the entry");
        if (tokens_.accept("(")) read_parameters(entry);
        read_bounds(entry);
        if (!ok()) return;
        if (tokens_.accept(";")) return; // a declaration: its definition follows, or is elsewhere
        skip_block();
        if (!names_.insert(entry.name).second) {
            return fail("a second entry is named '" + entry.name.substr(0, 80) + "'");
        }
        if (ok()) header_.entries.push_back(std::move(entry));
    }

    void read_parameters(PtxEntry& entry) {
        if (tokens_.accept(")")) return;
        do {
            read_parameter(entry);
        } while (ok() && tokens_.accept(","));
        expect(")");
    }

    void read_parameter(PtxEntry& entry) {
        expect(".param");
        PtxParameter parameter{};
        bool has_type = false;
        while (ok() && tokens_.peek().kind == PtxToken::Kind::Directive) {
            const PtxToken token = tokens_.take();
            if (token.is(".align")) {
                const auto alignment = take_alignment();
                (parameter.is_pointer ? parameter.pointer_alignment : parameter.alignment) =
                    alignment;
            } else if (token.is(".ptr")) {
                parameter.is_pointer = true;
            } else if (token.is(".global") || token.is(".const") || token.is(".local") ||
                       token.is(".shared")) {
                parameter.pointer_space = token.text.substr(1);
            } else if (const auto* type = find_type(token.text); type && !has_type) {
                has_type = true;
                parameter.type = type->name;
                parameter.type_class = type->type_class;
                parameter.element_size = type->size;
            } else {
                return fail("parameter attribute '" + std::string(token.text.substr(0, 80)) +
                            "' is not known");
            }
        }
        if (ok() && !has_type) return fail_expected("the type of a parameter");
        parameter.name = take_name("the name of a parameter");
        parameter.size = parameter.element_size;
        while (ok() && tokens_.accept("[")) {
            parameter.is_array = true;
            parameter.size *= take_number("an array size", kLargestParameter);
            expect("]");
            if (parameter.size > kLargestParameter) return fail("parameter is too large");
        }
        if (!ok()) return;
        if (parameter.alignment == 0) parameter.alignment = parameter.element_size;
        parameter.offset = round_up(entry.parameter_bytes, parameter.alignment);
        entry.parameter_bytes = parameter.offset + parameter.size;
        if (entry.parameter_bytes > kLargestParameter) return fail("parameters are too large");
        entry.parameters.push_back(std::move(parameter));
    }

    std::uint32_t take_alignment() {
        const auto alignment = take_number("an alignment", kLargestAlignment);
        if (ok() && (alignment == 0 || (alignment & (alignment - 1)) != 0)) {
            fail("alignment " + std::to_string(alignment) + " is not a power of two");
        }
        return alignment;
    }

    std::array<std::uint32_t, 3> take_dimensions() {
        std::array<std::uint32_t, 3> size{1, 1, 1};
        for (std::size_t i = 0; i < 3; ++i) {
            size[i] = take_number("a dimension");
            if (i == 2 || !ok() || !tokens_.accept(",")) break;
        }
        return size;
    }

    /// Performance directives between the parameters and the body.
    void read_bounds(PtxEntry& entry) {
        while (ok() && tokens_.peek().kind == PtxToken::Kind::Directive) {
            const PtxToken token = tokens_.take();
            if (token.is(".maxntid")) {
                entry.max_threads = take_dimensions();
            } else if (token.is(".reqntid")) {
                entry.required_threads = take_dimensions();
            } else if (token.is(".reqnctapercluster")) {
                entry.required_cluster = take_dimensions();
            } else if (token.is(".minnctapersm")) {
                entry.min_blocks = take_number("a number of blocks");
            } else if (token.is(".maxnreg")) {
                entry.max_registers = take_number("a number of registers");
            } else if (token.is(".maxclusterrank")) {
                entry.max_cluster_rank = take_number("a cluster rank");
            } else if (token.is(".explicitcluster")) {
                entry.explicit_cluster = true;
            } else if (token.is(".blocksareclusters")) {
                entry.blocks_are_clusters = true;
            } else if (token.is(".pragma")) {
                skip_to_semicolon();
            } else {
                // One that is younger than this reader: its numbers go with it.
                while (tokens_.peek().kind == PtxToken::Kind::Number || tokens_.peek().is(",")) {
                    tokens_.take();
                }
            }
        }
    }

    /// After .func: results, name, parameters, attributes, then a body or a semicolon.
    void skip_function() {
        while (!tokens_.at_end() && !tokens_.peek().is("{")) {
            if (tokens_.peek().is(".pragma")) {
                skip_to_semicolon();
            } else if (tokens_.take().is(";")) {
                return;
            }
        }
        skip_block();
    }

    void skip_block() {
        expect("{");
        std::size_t depth = 1;
        while (ok() && depth != 0) {
            if (tokens_.at_end()) return fail_expected("'}'");
            const PtxToken token = tokens_.take();
            if (token.is("{")) ++depth;
            if (token.is("}")) --depth;
        }
    }

    /// .file index "name"[, timestamp, size], without a semicolon.
    void skip_file() {
        tokens_.take();
        tokens_.take();
        while (tokens_.accept(","))
            tokens_.take();
    }

    void skip_line(std::uint32_t line) {
        while (!tokens_.at_end() && tokens_.peek().line == line)
            tokens_.take();
    }

    void skip_to_semicolon() {
        while (!tokens_.at_end() && !tokens_.take().is(";")) {
        }
    }

    PtxTokens tokens_;
    PtxHeader header_;
    std::unordered_set<std::string> names_;
    std::string problem_;
};

} // namespace

const PtxEntry* PtxHeader::find_entry(std::string_view name) const {
    auto it = std::find_if(entries.begin(), entries.end(),
                           [&](const PtxEntry& entry) { return entry.name == name; });
    return it == entries.end() ? nullptr : &*it;
}

Result<PtxHeader> read_ptx_header(std::string_view text) {
    return HeaderReader(text).read();
}

} // namespace cudamod::formats
