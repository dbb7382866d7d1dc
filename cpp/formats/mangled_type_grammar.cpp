#include "formats/mangled_builtins.h"
#include "formats/mangled_grammar.h"

namespace cudamod::formats {

int MangledParser::parse_type() {
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

int MangledParser::parse_builtin() {
    for (const auto& builtin : kMangledBuiltins) {
        if (!accept(builtin.code)) continue;
        MangledNode node{Kind::Builtin, std::string(builtin.spelling)};
        node.scalar = builtin.type;
        return add(std::move(node));
    }
    return kFailed;
}

int MangledParser::parse_compound(Kind kind, std::string text) {
    const int target = parse_type();
    return target == kFailed ? kFailed : substitutable(add(kind, std::move(text), target));
}

int MangledParser::parse_qualified() {
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

int MangledParser::parse_function() {
    const bool no_except = accept("Do");
    if (!accept("F")) return kFailed;
    accept("Y");
    const int function = parse_function_types(true);
    if (function == kFailed) return kFailed;
    if (no_except) tree_.nodes[static_cast<std::size_t>(function)].text = " noexcept";
    return accept("E") ? function : kFailed;
}

int MangledParser::parse_array() {
    ++at_;
    const std::size_t first = at_;
    while (is_digit(peek()))
        ++at_;
    const std::string length(text_.substr(first, at_ - first));
    return accept("_") ? parse_compound(Kind::Array, length) : kFailed;
}

int MangledParser::parse_member_pointer() {
    ++at_;
    const int owner = parse_type();
    const int member = owner == kFailed ? kFailed : parse_type();
    if (member == kFailed) return kFailed;
    return substitutable(add(Kind::MemberPointer, "", owner, member));
}

int MangledParser::parse_extended() {
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

int MangledParser::parse_substituted() {
    if (peek(1) == 't') return substitutable(parse_name());
    const int type = parse_substitution();
    if (type == kFailed || peek() != 'I') return type;
    return substitutable(parse_template(type));
}

int MangledParser::parse_vendor_qualified() {
    ++at_;
    const int qualifier = parse_source_name();
    if (qualifier == kFailed || peek() == 'I') return kFailed;
    const int target = parse_type();
    if (target == kFailed) return kFailed;
    return substitutable(add(Kind::Qualified, " " + tree_[qualifier].text, target));
}

} // namespace cudamod::formats
