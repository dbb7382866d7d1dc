#include "formats/mangled_types.h"

#include <algorithm>

namespace cudamod::formats {
namespace {

using Kind = MangledNode::Kind;

constexpr std::size_t kMostVisits = 100'000;
constexpr std::size_t kMostDepth = 400;
constexpr std::size_t kMostText = 64 * 1024;

struct KnownClass {
    std::string_view name;
    ScalarType type;
};

// Classes whose layout is fixed by the CUDA headers or the C++ standard.
constexpr KnownClass kKnownClasses[] = {
    {"__half", ScalarType::F16},
    {"__nv_bfloat16", ScalarType::BF16},
    {"std::complex<float>", ScalarType::C64},
    {"std::complex<double>", ScalarType::C128},
    {"thrust::complex<float>", ScalarType::C64},
    {"thrust::complex<double>", ScalarType::C128},
};

/// Counts the calls below each other for as long as it lives.
struct Deeper {
    explicit Deeper(std::size_t& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    std::size_t& depth_;
};

} // namespace

bool MangledTypes::visit() {
    return ++visits_ <= kMostVisits && depth_ <= kMostDepth;
}

/// Follows template parameters to what they stand for; -1 where that isn't one thing.
int MangledTypes::resolve(int node, std::size_t element) {
    while (tree_[node].kind == Kind::Parameter) {
        if (!visit()) return -1;
        const auto& parameter = tree_[node];
        const int scope = tree_.scopes[parameter.scope];
        if (scope == MangledTree::kLambda) return node; // its own: only printed
        if (scope < 0 || parameter.index >= tree_[scope].children.size()) return -1;
        node = tree_[scope].children[parameter.index];
        if (tree_[node].kind == Kind::Pack && element != kNoElement) {
            if (element >= tree_[node].children.size()) return -1;
            node = tree_[node].children[element];
        }
    }
    return node;
}

/// The common length of the packs in a pattern; nothing when there is none, or they differ.
std::optional<std::size_t> MangledTypes::pack_size(int node) {
    Deeper deeper(depth_);
    if (node < 0 || !visit()) return std::nullopt;
    const auto& at = tree_[node];
    if (at.kind == Kind::Parameter) {
        const int found = resolve(node, kNoElement);
        if (found < 0 || tree_[found].kind != Kind::Pack) return std::nullopt;
        return tree_[found].children.size();
    }
    std::optional<std::size_t> size =
        at.kind == Kind::Expansion ? std::nullopt : pack_size(at.first);
    auto merge = [&](std::optional<std::size_t> other) {
        if (other && size && *other != *size) return false;
        if (other) size = other;
        return true;
    };
    if (!merge(pack_size(at.second))) return std::nullopt;
    for (int child : at.children) {
        if (!merge(pack_size(child))) return std::nullopt;
    }
    return size;
}

bool MangledTypes::spell_one(int node, std::size_t element, bool& any, std::string& out) {
    Deeper deeper(depth_);
    if (!visit()) return false;
    int at = node;
    if (tree_[node].kind == Kind::Parameter && (at = resolve(node, element)) < 0) return false;
    if (tree_[at].kind == Kind::Pack) {
        for (int child : tree_[at].children) {
            if (!spell_one(child, element, any, out)) return false;
        }
        return true;
    }
    if (tree_[at].kind == Kind::Expansion) {
        auto size = pack_size(tree_[at].first);
        if (!size) return false;
        for (std::size_t i = 0; i < *size; ++i) {
            if (!spell_one(tree_[at].first, i, any, out)) return false;
        }
        return true;
    }
    if (any) out += ", ";
    any = true;
    return spell(at, element, {}, out);
}

bool MangledTypes::spell_list(const std::vector<int>& nodes, std::size_t first, std::size_t element,
                              std::string& out) {
    bool any = false;
    for (std::size_t i = first; i < nodes.size(); ++i) {
        if (!spell_one(nodes[i], element, any, out)) return false;
    }
    return true;
}

/// Appends the C++ spelling; declarator is what stands around or behind the name: "*", "(*)", "
/// const&".
bool MangledTypes::spell(int node, std::size_t element, std::string declarator, std::string& out) {
    Deeper deeper(depth_);
    if (!visit() || out.size() + declarator.size() > kMostText) return false;
    node = resolve(node, element);
    if (node < 0) return false;
    const auto& at = tree_[node];
    switch (at.kind) {
    case Kind::Name:
    case Kind::Builtin:
    case Kind::Literal:
    case Kind::Opaque:
        out += at.text;
        break;
    case Kind::Closure:
        out += at.first < 0 ? "{unnamed type#" : "{lambda(";
        if (at.first >= 0) {
            if (!spell_list(tree_[at.first].children, 1, element, out)) return false;
            out += ")#";
        }
        out += std::to_string(at.index + 1) + "}";
        break;
    case Kind::Address:
        out += at.second < 0 ? "&" : "&(";
        if (!spell(at.first, element, {}, out)) return false;
        if (at.second < 0) break;
        out += '(';
        if (!spell_list(tree_[at.second].children, 1, element, out)) return false;
        out += "))";
        break;
    case Kind::Local:
        if (!spell(at.first, element, {}, out)) return false;
        if (!at.children.empty()) { // main has no types in its name
            out += '(';
            if (!spell_list(tree_[at.children[0]].children, 1, element, out)) return false;
            out += ')';
        }
        out += "::";
        if (!spell(at.second, element, {}, out)) return false;
        break;
    case Kind::Nested:
        if (!spell(at.first, element, {}, out)) return false;
        out += "::";
        if (!spell(at.second, element, {}, out)) return false;
        break;
    case Kind::Template:
        if (!spell(at.first, element, {}, out)) return false;
        out += '<';
        if (!spell_list(at.children, 0, element, out)) return false;
        out += out.back() == '>' ? " >" : ">";
        break;
    case Kind::Complex:
        if (!spell(at.first, element, {}, out)) return false;
        out += " _Complex";
        break;
    case Kind::Qualified: // const of a const T, through a template parameter, is said once
        if (!declarator.starts_with(at.text)) declarator = at.text + declarator;
        return spell(at.first, element, std::move(declarator), out);
    case Kind::Pointer: {
        const int target = resolve(at.first, element);
        if (target < 0) return false;
        const bool wrap = tree_[target].kind == Kind::Function || tree_[target].kind == Kind::Array;
        declarator = at.text + declarator;
        return spell(target, element, wrap ? "(" + declarator + ")" : declarator, out);
    }
    case Kind::Array:
        return spell(at.first, element,
                     (declarator.empty() ? "" : " " + declarator) + " [" + at.text + "]", out);
    case Kind::Function:
        if (!spell(at.children[0], element, {}, out)) return false;
        out += " " + declarator + "(";
        if (!spell_list(at.children, 1, element, out)) return false;
        out += ")" + at.text;
        return out.size() <= kMostText;
    case Kind::MemberPointer: {
        std::string owner;
        const int target = resolve(at.second, element);
        if (target < 0 || !spell(at.first, element, {}, owner)) return false;
        owner += "::*" + declarator;
        const bool wrap = tree_[target].kind == Kind::Function || tree_[target].kind == Kind::Array;
        return spell(target, element, wrap ? "(" + owner + ")" : " " + owner, out);
    }
    case Kind::Parameter:
        out += "auto:" + std::to_string(at.index + 1);
        break;
    case Kind::Expansion:
    case Kind::Pack:
        return false;
    }
    out += declarator;
    return out.size() <= kMostText;
}

std::optional<std::string> MangledTypes::spell(int node) {
    std::string text;
    if (node < 0 || !spell(node, kNoElement, {}, text)) return std::nullopt;
    return text;
}

std::optional<std::string> MangledTypes::spell_function() {
    const auto& children = tree_[tree_.function].children;
    std::string text;
    if (!spell(children[0], kNoElement, {}, text)) return std::nullopt;
    if (!text.empty()) text += ' ';
    if (!spell(tree_.name, kNoElement, {}, text)) return std::nullopt;
    text += '(';
    if (!spell_list(children, 1, kNoElement, text)) return std::nullopt;
    return text + ')';
}

bool MangledTypes::is_closure(int node) {
    while (node >= 0 && visit()) {
        const auto& at = tree_[node];
        if (at.kind == Kind::Closure) return true;
        if (at.kind == Kind::Nested || at.kind == Kind::Local) {
            node = at.second;
        } else if (at.kind == Kind::Template) {
            node = at.first;
        } else {
            return false;
        }
    }
    return true;
}

bool MangledTypes::mentions_parameter(int node) {
    Deeper deeper(depth_);
    if (node < 0) return false;
    if (!visit()) return true;
    const auto& at = tree_[node];
    if (at.kind == Kind::Parameter || mentions_parameter(at.first) ||
        mentions_parameter(at.second)) {
        return true;
    }
    return std::any_of(at.children.begin(), at.children.end(),
                       [&](int child) { return mentions_parameter(child); });
}

/// "typename Box<T>::type", or "W<T>" of a template template parameter, which may be an alias: any
/// type may be meant.
bool MangledTypes::is_dependent_member(int node) {
    if (tree_[node].kind == Kind::Template) node = tree_[node].first;
    if (tree_[node].kind == Kind::Parameter) return true;
    return tree_[node].kind == Kind::Nested && mentions_parameter(tree_[node].first);
}

std::optional<ScalarType> MangledTypes::classify(int node, std::size_t element) {
    Deeper deeper(depth_);
    if (!visit()) return std::nullopt;
    node = resolve(node, element);
    if (node < 0) return std::nullopt;
    const auto& at = tree_[node];
    switch (at.kind) {
    case Kind::Builtin:
        if (at.text == "void" || at.text == "...") return std::nullopt;
        return at.scalar;
    case Kind::Qualified:
        return classify(at.first, element);
    case Kind::Pointer:
    case Kind::Array:
    case Kind::Function:
        return ScalarType::Pointer;
    case Kind::Complex: {
        auto part = classify(at.first, element);
        if (part == ScalarType::F32) return ScalarType::C64;
        if (part == ScalarType::F64) return ScalarType::C128;
        return ScalarType::Unknown;
    }
    case Kind::Name:
    case Kind::Nested:
    case Kind::Local:
    case Kind::Template: {
        if (is_closure(node) || is_dependent_member(node)) return ScalarType::Unknown;
        std::string text;
        if (!spell(node, element, {}, text)) return std::nullopt;
        for (const auto& known : kKnownClasses) {
            if (known.name == text) return known.type;
        }
        return ScalarType::Struct;
    }
    case Kind::Closure:
    case Kind::MemberPointer:
    case Kind::Opaque:
        return ScalarType::Unknown;
    case Kind::Parameter:
    case Kind::Expansion:
    case Kind::Pack:
    case Kind::Literal:
    case Kind::Address:
        return std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::vector<ParameterType>> MangledTypes::parameters() {
    std::vector<ParameterType> types;
    std::size_t total = 0;
    auto append = [&](int node, std::size_t element) {
        auto type = classify(node, element);
        std::string text;
        if (!type || !spell(node, element, {}, text)) return false;
        total += text.size();
        types.push_back({*type, std::move(text)});
        return total <= kMostText;
    };
    const auto& children = tree_[tree_.function].children;
    for (std::size_t i = 1; i < children.size(); ++i) {
        const int node = children[i];
        if (tree_[node].kind != Kind::Expansion) {
            if (!append(node, kNoElement)) return std::nullopt;
            continue;
        }
        auto size = pack_size(tree_[node].first);
        if (!size) return std::nullopt;
        for (std::size_t element = 0; element < *size; ++element) {
            if (!append(tree_[node].first, element)) return std::nullopt;
        }
    }
    return types;
}

} // namespace cudamod::formats
