#pragma once

#include "formats/mangled_name.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

/// One name or type of a mangled name. Children are indices into MangledTree::nodes.
struct MangledNode {
    enum class Kind {
        Name,    ///< text
        Closure, ///< a lambda, number index, with signature first; or an unnamed type, where first
                 ///< is -1
        Nested,  ///< first::second
        Local, ///< second inside function first, whose Function node is children[0], if it has one
        Template,      ///< first<children>
        Builtin,       ///< text, scalar
        Qualified,     ///< first with text (" const", ...) behind it
        Pointer,       ///< first with text ("*", "&", "&&") behind it
        Array,         ///< of first, text is its length
        Function,      ///< children: result, parameters
        MemberPointer, ///< to second in class first
        Complex,       ///< of first
        Parameter,     ///< template parameter number index of scope
        Expansion,     ///< pattern first, once for each element of the packs in it
        Pack,          ///< children
        Literal,       ///< text
        Address,       ///< of function first with Function node second, or of variable first, where
                       ///< second is -1
        Opaque,        ///< text: a type that is only known to be one
    };
    Kind kind;
    std::string text;
    ScalarType scalar = ScalarType::Unknown;
    int first = -1;
    int second = -1;
    std::size_t index = 0;
    std::size_t scope = 0;
    std::vector<int> children = {};
};

/// A parsed function name. Template parameters stay what they are in `nodes` and are looked up in
/// `scopes`.
struct MangledTree {
    static constexpr int kNoTemplate = -1;
    static constexpr int kLambda = -2;

    std::vector<MangledNode> nodes;
    std::vector<int> scopes; ///< for each function its Template node, or kNoTemplate; kLambda for a
                             ///< lambda's signature
    int name = -1;           ///< of the function
    int function = -1;       ///< its Function node

    const MangledNode& operator[](int index) const {
        return nodes[static_cast<std::size_t>(index)];
    }
};

/// Reads names and types out of a tree. Answers nothing rather than a guess, and where a name would
/// expand beyond bounds that no real one reaches: substitutions let a short text stand for an
/// exponentially long one.
class MangledTypes {
  public:
    explicit MangledTypes(const MangledTree& tree) : tree_(tree) {}

    std::optional<std::string> spell(int node);
    /// The function as a demangler writes it: result where the name has one, name, parameters.
    std::optional<std::string> spell_function();
    std::optional<std::vector<ParameterType>> parameters();

  private:
    static constexpr std::size_t kNoElement = static_cast<std::size_t>(-1);

    bool visit();
    int resolve(int node, std::size_t element);
    std::optional<std::size_t> pack_size(int node);
    bool spell(int node, std::size_t element, std::string declarator, std::string& out);
    bool spell_list(const std::vector<int>& nodes, std::size_t first, std::size_t element,
                    std::string& out);
    bool spell_one(int node, std::size_t element, bool& any, std::string& out);
    std::optional<ScalarType> classify(int node, std::size_t element);
    bool is_closure(int node);
    bool mentions_parameter(int node);
    bool is_dependent_member(int node);

    const MangledTree& tree_;
    std::size_t visits_ = 0;
    std::size_t depth_ = 0;
};

} // namespace cudamod::formats
