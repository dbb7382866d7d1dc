#include "formats/mangled_parser.h"

#include "formats/mangled_builtins.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

using Kind = MangledNode::Kind;

constexpr std::size_t kMostDepth = 600;
constexpr std::size_t kLongestName = 64 * 1024;
constexpr int kFailed = -1;

struct Abbreviation {
    char code;
    std::string_view spelling;
};

constexpr Abbreviation kAbbreviations[] = {
    {'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
    {'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"},
};

// Two-letter codes; which operator a local name lies in doesn't matter, that it is one name does.
constexpr std::string_view kOperators[] = {
    "nw", "na", "dl", "da", "ps", "ng", "ad", "de", "co", "pl", "mi", "ml", "dv", "rm", "an", "or",
    "eo", "aS", "pL", "mI", "mL", "dV", "rM", "aN", "oR", "eO", "ls", "rs", "lS", "rS", "eq", "ne",
    "lt", "gt", "le", "ge", "ss", "nt", "aa", "oo", "pp", "mm", "cm", "pm", "pt", "cl", "ix", "aw",
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::optional<MangledTree> parse() {
        if (text_.size() > kLongestName || !accept("_Z")) return std::nullopt;
        auto [name, function] = parse_encoding();
        if (name == kFailed || function == kFailed || at_ != text_.size()) return std::nullopt;
        tree_.name = name;
        tree_.function = function;
        return std::move(tree_);
    }

  private:
    struct Encoding {
        int name;
        int function; ///< Function node; kFailed where there is none (a variable)
    };

    /// One more rule below the current ones; false when there are too many.
    class Level {
      public:
        explicit Level(Parser& parser) : parser_(parser) { ++parser_.depth_; }
        ~Level() { --parser_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        explicit operator bool() const { return parser_.depth_ <= kMostDepth; }

      private:
        Parser& parser_;
    };

    // --- text ---
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }

    bool accept(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }

    std::optional<std::size_t> parse_number() {
        if (!is_digit(peek())) return std::nullopt;
        std::size_t value = 0;
        while (is_digit(peek())) {
            value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
            if (value > kLongestName) return std::nullopt;
        }
        return value;
    }

    /// "_" is 0, "0_" is 1, ... in base 36 for substitutions and 10 else.
    std::optional<std::size_t> parse_sequence(std::size_t base) {
        if (accept("_")) return 0;
        std::size_t value = 0;
        do {
            const char c = peek();
            std::size_t digit = base;
            if (is_digit(c)) digit = static_cast<std::size_t>(c - '0');
            if (c >= 'A' && c <= 'Z') digit = static_cast<std::size_t>(c - 'A') + 10;
            if (digit >= base) return std::nullopt;
            value = value * base + digit;
            if (value > kLongestName) return std::nullopt;
            ++at_;
        } while (!accept("_"));
        return value + 1;
    }

    // --- nodes ---
    int add(MangledNode node) {
        tree_.nodes.push_back(std::move(node));
        return static_cast<int>(tree_.nodes.size()) - 1;
    }

    int add(Kind kind, std::string text, int first = -1, int second = -1) {
        MangledNode node{kind, std::move(text)};
        node.first = first;
        node.second = second;
        return add(std::move(node));
    }

    int substitutable(int node) {
        if (node != kFailed) substitutions_.push_back(node);
        return node;
    }

    // --- encodings ---
    Encoding parse_encoding() {
        Level level(*this);
        if (!level) return {kFailed, kFailed};
        const std::size_t outer = scope_;
        scope_ = tree_.scopes.size();
        tree_.scopes.push_back(-1);
        special_member_ = false;
        const int name = parse_name();
        const bool has_result = !special_member_;
        Encoding encoding{name, kFailed};
        if (name != kFailed && at_ < text_.size() && peek() != 'E') {
            int last = name;
            while (tree_[last].kind == Kind::Local)
                last = tree_[last].second;
            const bool is_template = tree_[last].kind == Kind::Template;
            if (is_template) tree_.scopes[scope_] = last;
            encoding.function = parse_function_types(is_template && has_result);
        }
        scope_ = outer;
        return encoding;
    }

    /// Types up to the end or an E (not taken), the result first when the text has one.
    int parse_function_types(bool has_result) {
        MangledNode function{Kind::Function, ""};
        function.children.push_back(has_result ? parse_type() : add(Kind::Opaque, ""));
        if (function.children[0] == kFailed) return kFailed;
        if (peek() == 'v' && (at_ + 1 == text_.size() || peek(1) == 'E')) {
            ++at_;
            return add(std::move(function));
        }
        while (at_ < text_.size() && peek() != 'E') {
            function.children.push_back(parse_type());
            if (function.children.back() == kFailed) return kFailed;
        }
        return function.children.size() > 1 ? add(std::move(function)) : kFailed;
    }

    // --- names ---
    int parse_name() {
        Level level(*this);
        if (!level) return kFailed;
        switch (peek()) {
        case 'N':
            return parse_nested_name();
        case 'Z':
            return parse_local_name();
        case 'S': {
            if (peek(1) == 't') break;
            const int template_name = parse_substitution();
            return template_name != kFailed && peek() == 'I' ? parse_template(template_name)
                                                             : kFailed;
        }
        default:
            break;
        }
        int name;
        if (accept("St")) {
            const int inner = parse_unqualified_name();
            if (inner == kFailed) return kFailed;
            name = add(Kind::Nested, "", add(Kind::Name, "std"), inner);
        } else {
            name = parse_unqualified_name();
        }
        if (name == kFailed || peek() != 'I') return name;
        return parse_template(substitutable(name));
    }

    int parse_nested_name() {
        ++at_;
        while (peek() == 'r' || peek() == 'V' || peek() == 'K')
            ++at_;
        if (peek() == 'R' || peek() == 'O') ++at_;
        int name = kFailed;
        for (;;) {
            const char c = peek();
            bool add_substitution = true;
            if (c == 'E') {
                ++at_;
                return name;
            }
            if (c == 'S' && peek(1) == 't') {
                if (name != kFailed) return kFailed;
                at_ += 2;
                name = add(Kind::Name, "std");
                add_substitution = false;
            } else if (c == 'S') {
                if (name != kFailed) return kFailed;
                name = parse_substitution();
                add_substitution = false;
            } else if (c == 'T') {
                if (name != kFailed) return kFailed;
                name = parse_template_parameter();
            } else if (c == 'I') {
                if (name == kFailed || tree_[name].kind == Kind::Template) return kFailed;
                name = parse_template(name);
            } else if (c == 'M') { // the initialiser of a data member, around a closure
                ++at_;
                if (name == kFailed) return kFailed;
                continue;
            } else if ((c == 'C' || c == 'D') && name != kFailed) {
                name = parse_special_member(name);
            } else {
                const int inner = parse_unqualified_name();
                if (inner == kFailed) return kFailed;
                name = name == kFailed ? inner : add(Kind::Nested, "", name, inner);
            }
            if (name == kFailed) return kFailed;
            if (add_substitution && peek() != 'E') substitutable(name);
        }
    }

    /// A constructor or destructor: no kernel, but a closure may lie in one.
    int parse_special_member(int owner) {
        const bool known = (peek() == 'C' && peek(1) >= '1' && peek(1) <= '5') ||
                           (peek() == 'D' && peek(1) >= '0' && peek(1) <= '5');
        if (!known) return kFailed;
        special_member_ = true;
        at_ += 2;
        return add(Kind::Nested, "", owner, add(Kind::Name, "{structor}"));
    }

    int parse_local_name() {
        ++at_;
        const bool outer_special = special_member_;
        const Encoding function = parse_encoding();
        special_member_ = outer_special;
        if (function.name == kFailed || !accept("E")) return kFailed;
        const int entity = parse_name();
        if (entity == kFailed || !skip_discriminator()) return kFailed;
        MangledNode local{Kind::Local, ""};
        local.first = function.name;
        local.second = entity;
        if (function.function != kFailed) local.children = {function.function};
        return add(std::move(local));
    }

    bool skip_discriminator() {
        if (accept("__")) return parse_number() && accept("_");
        if (peek() == '_' && is_digit(peek(1))) at_ += 2;
        return true;
    }

    int parse_unqualified_name() {
        Level level(*this);
        if (!level) return kFailed;
        int name = kFailed;
        accept("L"); // internal linkage
        if (is_digit(peek())) {
            name = parse_source_name();
        } else if (peek() == 'U' && (peek(1) == 'l' || peek(1) == 't')) {
            name = parse_closure();
        } else {
            const auto code = text_.substr(at_, 2);
            if (std::find(std::begin(kOperators), std::end(kOperators), code) ==
                std::end(kOperators)) {
                return kFailed;
            }
            at_ += 2;
            name = add(Kind::Name, "operator " + std::string(code));
        }
        while (name != kFailed && accept("B")) { // ABI tag
            const int tag = parse_source_name();
            if (tag == kFailed) return kFailed;
            name = add(Kind::Name, tree_[name].text + "[abi:" + tree_[tag].text + "]");
        }
        return name;
    }

    int parse_source_name() {
        const auto length = parse_number();
        if (!length || *length == 0 || *length > text_.size() - at_) return kFailed;
        const auto text = text_.substr(at_, *length);
        at_ += *length;
        const bool anonymous = text.starts_with("_GLOBAL_") && text.size() > 9 &&
                               (text[8] == '.' || text[8] == '_' || text[8] == '$') &&
                               text[9] == 'N';
        return add(Kind::Name, anonymous ? "(anonymous namespace)" : std::string(text));
    }

    int parse_closure() {
        MangledNode closure{Kind::Closure, ""};
        const bool lambda = peek(1) == 'l';
        at_ += 2;
        if (lambda) {
            const std::size_t outer = scope_;
            scope_ = tree_.scopes.size();
            tree_.scopes.push_back(MangledTree::kLambda);
            closure.first = parse_function_types(false);
            scope_ = outer;
            if (closure.first == kFailed || !accept("E")) return kFailed;
        }
        const auto number = parse_sequence(10);
        if (!number) return kFailed;
        closure.index = *number;
        return add(std::move(closure));
    }

    // --- templates ---
    int parse_template(int name) {
        const Kind kind = tree_[name].kind;
        if (kind != Kind::Name && kind != Kind::Nested && kind != Kind::Parameter) return kFailed;
        MangledNode node{Kind::Template, ""};
        node.first = name;
        if (!parse_arguments("I", node.children)) return kFailed;
        return add(std::move(node));
    }

    bool parse_arguments(std::string_view opening, std::vector<int>& arguments) {
        Level level(*this);
        if (!level || !accept(opening)) return false;
        while (!accept("E")) {
            if (at_ == text_.size()) return false;
            const int argument = parse_argument();
            if (argument == kFailed) return false;
            arguments.push_back(argument);
        }
        return true;
    }

    int parse_argument() {
        switch (peek()) {
        case 'L':
            return parse_literal();
        case 'J': {
            MangledNode pack{Kind::Pack, ""};
            return parse_arguments("J", pack.children) ? add(std::move(pack)) : kFailed;
        }
        case 'X': {
            if (!accept("Xad")) return kFailed;
            const int address = parse_literal();
            return address != kFailed && accept("E") ? address : kFailed;
        }
        default:
            return parse_type();
        }
    }

    /// L type value E, or L _Z encoding E.
    int parse_literal() {
        Level level(*this);
        if (!level || !accept("L")) return kFailed;
        if (accept("_Z")) {
            const bool outer_special = special_member_;
            const Encoding object = parse_encoding();
            special_member_ = outer_special;
            if (object.name == kFailed || !accept("E")) return kFailed;
            return add(Kind::Address, "", object.name, object.function);
        }
        const int type = parse_type();
        if (type == kFailed) return kFailed;
        std::string value;
        if (accept("n")) value = "-";
        while (is_digit(peek()) || (peek() >= 'a' && peek() <= 'f'))
            value += text_[at_++];
        if (!accept("E")) return kFailed;
        return add(Kind::Literal, spell_literal(type, std::move(value)));
    }

    std::string spell_literal(int type, std::string value) {
        const auto& node = tree_[type];
        if (node.kind == Kind::Builtin) {
            if (node.text == "bool") return value == "1" ? "true" : "false";
            if (node.text == "int") return value;
            if (node.text == "decltype(nullptr)") return "(decltype(nullptr))" + value;
            for (const auto& builtin : kMangledBuiltins) {
                if (builtin.spelling == node.text && !builtin.literal_suffix.empty()) {
                    return value + std::string(builtin.literal_suffix);
                }
            }
            if (node.scalar == ScalarType::F32 || node.scalar == ScalarType::F64) {
                value = "[" + value + "]";
            }
        }
        return "(" + MangledTypes(tree_).spell(type).value_or("?") + ")" + value;
    }

    int parse_template_parameter() {
        if (!accept("T")) return kFailed;
        const auto index = parse_sequence(10);
        if (!index) return kFailed;
        MangledNode node{Kind::Parameter, ""};
        node.index = *index;
        node.scope = scope_;
        return add(std::move(node));
    }

    /// S_ S0_ ..., and the abbreviations Sa Sb Ss Si So Sd; not St.
    int parse_substitution() {
        if (!accept("S")) return kFailed;
        for (const auto& abbreviation : kAbbreviations) {
            if (peek() != abbreviation.code) continue;
            ++at_;
            return add(Kind::Name, std::string(abbreviation.spelling));
        }
        const auto index = parse_sequence(36);
        if (!index || *index >= substitutions_.size()) return kFailed;
        return substitutions_[*index];
    }

    // --- types ---
    int parse_type() {
        Level level(*this);
        if (!level) return kFailed;
        if (const int builtin = parse_builtin(); builtin != kFailed) return builtin;
        switch (peek()) {
        case 'r':
        case 'V':
        case 'K':
            return parse_qualified();
        case 'P':
            ++at_;
            return parse_compound(Kind::Pointer, "*");
        case 'R':
            ++at_;
            return parse_compound(Kind::Pointer, "&");
        case 'O':
            ++at_;
            return parse_compound(Kind::Pointer, "&&");
        case 'C':
            ++at_;
            return parse_compound(Kind::Complex, "");
        case 'F':
            return substitutable(parse_function());
        case 'A':
            return parse_array();
        case 'M':
            return parse_member_pointer();
        case 'D':
            return parse_extended();
        case 'T': {
            const int parameter = substitutable(parse_template_parameter());
            if (parameter == kFailed || peek() != 'I') return parameter;
            return substitutable(parse_template(parameter));
        }
        case 'S':
            return parse_substituted();
        case 'U':
            if (peek(1) == 'l' || peek(1) == 't') return substitutable(parse_name());
            return parse_vendor_qualified();
        case 'u': {
            ++at_;
            const int vendor = parse_source_name();
            if (vendor == kFailed || peek() == 'I') return kFailed;
            return substitutable(add(Kind::Opaque, tree_[vendor].text));
        }
        case 'N':
        case 'Z':
            return substitutable(parse_name());
        default:
            return is_digit(peek()) ? substitutable(parse_name()) : kFailed;
        }
    }

    int parse_builtin() {
        for (const auto& builtin : kMangledBuiltins) {
            if (!accept(builtin.code)) continue;
            MangledNode node{Kind::Builtin, std::string(builtin.spelling)};
            node.scalar = builtin.type;
            return add(std::move(node));
        }
        return kFailed;
    }

    int parse_compound(Kind kind, std::string text) {
        const int target = parse_type();
        return target == kFailed ? kFailed : substitutable(add(kind, std::move(text), target));
    }

    /// All qualifiers are one step for substitutions. Those of a function type belong to it.
    int parse_qualified() {
        std::string text;
        for (;; ++at_) {
            if (peek() == 'r') {
                text.insert(0, " restrict");
            } else if (peek() == 'V') {
                text.insert(0, " volatile");
            } else if (peek() == 'K') {
                text.insert(0, " const");
            } else {
                break;
            }
        }
        if (peek() == 'F' || text_.substr(at_, 3) == "DoF") {
            const int function = parse_function();
            if (function == kFailed) return kFailed;
            tree_.nodes[static_cast<std::size_t>(function)].text.insert(0, text);
            return substitutable(function);
        }
        const int target = parse_type();
        return target == kFailed ? kFailed
                                 : substitutable(add(Kind::Qualified, std::move(text), target));
    }

    /// F, or DoF: one that is noexcept. The caller says whether it can be substituted.
    int parse_function() {
        const bool no_except = accept("Do");
        if (!accept("F")) return kFailed;
        accept("Y");
        const int function = parse_function_types(true);
        if (function == kFailed) return kFailed;
        if (no_except) tree_.nodes[static_cast<std::size_t>(function)].text = " noexcept";
        return accept("E") ? function : kFailed;
    }

    int parse_array() {
        ++at_;
        const std::size_t first = at_;
        while (is_digit(peek()))
            ++at_;
        const std::string length(text_.substr(first, at_ - first));
        return accept("_") ? parse_compound(Kind::Array, length) : kFailed;
    }

    int parse_member_pointer() {
        ++at_;
        const int owner = parse_type();
        const int member = owner == kFailed ? kFailed : parse_type();
        if (member == kFailed) return kFailed;
        return substitutable(add(Kind::MemberPointer, "", owner, member));
    }

    /// D, where it isn't a fundamental type.
    int parse_extended() {
        if (accept("Dp")) return parse_compound(Kind::Expansion, "");
        if (peek(1) == 'o') return substitutable(parse_function());
        if (accept("Dv")) {
            const auto count = parse_number();
            if (!count || !accept("_")) return kFailed;
            const int element = parse_type();
            if (element == kFailed) return kFailed;
            const auto text = MangledTypes(tree_).spell(element);
            if (!text) return kFailed;
            return substitutable(
                add(Kind::Opaque, *text + " __vector(" + std::to_string(*count) + ")"));
        }
        return kFailed;
    }

    int parse_substituted() {
        if (peek(1) == 't') return substitutable(parse_name());
        const int type = parse_substitution();
        if (type == kFailed || peek() != 'I') return type;
        return substitutable(parse_template(type));
    }

    int parse_vendor_qualified() {
        ++at_;
        const int qualifier = parse_source_name();
        if (qualifier == kFailed || peek() == 'I') return kFailed;
        const int target = parse_type();
        if (target == kFailed) return kFailed;
        return substitutable(add(Kind::Qualified, " " + tree_[qualifier].text, target));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    std::size_t scope_ = 0;
    bool special_member_ = false;
    std::vector<int> substitutions_;
    MangledTree tree_;
};

} // namespace

std::optional<MangledTree> parse_mangled_function(std::string_view mangled) {
    return Parser(mangled).parse();
}

} // namespace cudamod::formats
