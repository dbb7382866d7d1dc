#include "formats/mangled_parser.h"

#include "formats/mangled_builtins.h"
#include "formats/mangled_grammar.h"

namespace cudamod::formats {
namespace {

struct Abbreviation {
    char code;
    std::string_view spelling;
};

constexpr Abbreviation kAbbreviations[] = {
    {'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
    {'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"},
};

} // namespace

std::optional<MangledTree> MangledParser::parse() {
    if (text_.size() > kLongestName || !accept("_Z")) return std::nullopt;
    auto [name, function] = parse_encoding();
    if (name == kFailed || function == kFailed || at_ != text_.size()) return std::nullopt;
    tree_.name = name;
    tree_.function = function;
    return std::move(tree_);
}

bool MangledParser::accept(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
}

std::optional<std::size_t> MangledParser::parse_number() {
    if (!is_digit(peek())) return std::nullopt;
    std::size_t value = 0;
    while (is_digit(peek())) {
        value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
        if (value > kLongestName) return std::nullopt;
    }
    return value;
}

std::optional<std::size_t> MangledParser::parse_sequence(std::size_t base) {
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

int MangledParser::add(MangledNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
}

int MangledParser::add(Kind kind, std::string text, int first, int second) {
    MangledNode node{kind, std::move(text)};
    node.first = first;
    node.second = second;
    return add(std::move(node));
}

int MangledParser::substitutable(int node) {
    if (node != kFailed) substitutions_.push_back(node);
    return node;
}

MangledParser::Encoding MangledParser::parse_encoding() {
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

int MangledParser::parse_function_types(bool has_result) {
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

int MangledParser::parse_template(int name) {
    const Kind kind = tree_[name].kind;
    if (kind != Kind::Name && kind != Kind::Nested && kind != Kind::Parameter) return kFailed;
    MangledNode node{Kind::Template, ""};
    node.first = name;
    if (!parse_arguments("I", node.children)) return kFailed;
    return add(std::move(node));
}

bool MangledParser::parse_arguments(std::string_view opening, std::vector<int>& arguments) {
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

int MangledParser::parse_argument() {
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

int MangledParser::parse_literal() {
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

std::string MangledParser::spell_literal(int type, std::string value) {
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

int MangledParser::parse_template_parameter() {
    if (!accept("T")) return kFailed;
    const auto index = parse_sequence(10);
    if (!index) return kFailed;
    MangledNode node{Kind::Parameter, ""};
    node.index = *index;
    node.scope = scope_;
    return add(std::move(node));
}

int MangledParser::parse_substitution() {
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

std::optional<MangledTree> parse_mangled_function(std::string_view mangled) {
    return MangledParser(mangled).parse();
}

} // namespace cudamod::formats
