#include "formats/mangled_grammar.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

// Two-letter codes; which operator a local name lies in doesn't matter, that it is one name does.
constexpr std::string_view kOperators[] = {
    "nw", "na", "dl", "da", "ps", "ng", "ad", "de", "co", "pl", "mi", "ml", "dv", "rm", "an", "or",
    "eo", "aS", "pL", "mI", "mL", "dV", "rM", "aN", "oR", "eO", "ls", "rs", "lS", "rS", "eq", "ne",
    "lt", "gt", "le", "ge", "ss", "nt", "aa", "oo", "pp", "mm", "cm", "pm", "pt", "cl", "ix", "aw",
};

} // namespace

int MangledParser::parse_name() {
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
        return template_name != kFailed && peek() == 'I' ? parse_template(template_name) : kFailed;
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

int MangledParser::parse_nested_name() {
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

int MangledParser::parse_special_member(int owner) {
    const bool known = (peek() == 'C' && peek(1) >= '1' && peek(1) <= '5') ||
                       (peek() == 'D' && peek(1) >= '0' && peek(1) <= '5');
    if (!known) return kFailed;
    special_member_ = true;
    at_ += 2;
    return add(Kind::Nested, "", owner, add(Kind::Name, "{structor}"));
}

int MangledParser::parse_local_name() {
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

bool MangledParser::skip_discriminator() {
    if (accept("__")) return parse_number() && accept("_");
    if (peek() == '_' && is_digit(peek(1))) at_ += 2;
    return true;
}

int MangledParser::parse_unqualified_name() {
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
        if (std::find(std::begin(kOperators), std::end(kOperators), code) == std::end(kOperators)) {
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

int MangledParser::parse_source_name() {
    const auto length = parse_number();
    if (!length || *length == 0 || *length > text_.size() - at_) return kFailed;
    const auto text = text_.substr(at_, *length);
    at_ += *length;
    const bool anonymous = text.starts_with("_GLOBAL_") && text.size() > 9 &&
                           (text[8] == '.' || text[8] == '_' || text[8] == '$') && text[9] == 'N';
    return add(Kind::Name, anonymous ? "(anonymous namespace)" : std::string(text));
}

int MangledParser::parse_closure() {
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

} // namespace cudamod::formats
