#pragma once

#include "formats/mangled_types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::formats {

/// Recursive descent: a function for each rule that answers a node, or kFailed. Not for other users
/// than parse_mangled_function.
class MangledParser {
  public:
    explicit MangledParser(std::string_view text) : text_(text) {}

    std::optional<MangledTree> parse();

  private:
    using Kind = MangledNode::Kind;

    static constexpr int kFailed = -1;
    static constexpr std::size_t kMostDepth = 600;
    static constexpr std::size_t kLongestName = 64 * 1024;

    struct Encoding {
        int name;
        int function; ///< Function node; kFailed where there is none (a variable)
    };

    /// One more rule below the current ones; false when there are too many.
    class Level {
      public:
        explicit Level(MangledParser& parser) : parser_(parser) { ++parser_.depth_; }
        ~Level() { --parser_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        explicit operator bool() const { return parser_.depth_ <= kMostDepth; }

      private:
        MangledParser& parser_;
    };

    // --- text ---
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    bool accept(std::string_view expected);
    std::optional<std::size_t> parse_number();

    /// "_" is 0, "0_" is 1, ... in base 36 for substitutions and 10 else.
    std::optional<std::size_t> parse_sequence(std::size_t base);

    // --- nodes ---
    int add(MangledNode node);
    int add(Kind kind, std::string text, int first = -1, int second = -1);
    int substitutable(int node);

    // --- encodings ---
    Encoding parse_encoding();

    /// Types up to the end or an E (not taken), the result first when the text has one.
    int parse_function_types(bool has_result);

    // --- names ---
    int parse_name();
    int parse_nested_name();

    /// A constructor or destructor: no kernel, but a closure may lie in one.
    int parse_special_member(int owner);
    int parse_local_name();
    bool skip_discriminator();
    int parse_unqualified_name();
    int parse_source_name();
    int parse_closure();

    // --- templates ---
    int parse_template(int name);
    bool parse_arguments(std::string_view opening, std::vector<int>& arguments);
    int parse_argument();

    /// L type value E, or L _Z encoding E.
    int parse_literal();
    std::string spell_literal(int type, std::string value);
    int parse_template_parameter();

    /// S_ S0_ ..., and the abbreviations Sa Sb Ss Si So Sd; not St.
    int parse_substitution();

    // --- types ---
    int parse_type();
    int parse_builtin();
    int parse_compound(Kind kind, std::string text);

    /// All qualifiers are one step for substitutions. Those of a function type belong to it.
    int parse_qualified();

    /// F, or DoF: one that is noexcept. The caller says whether it can be substituted.
    int parse_function();
    int parse_array();
    int parse_member_pointer();

    /// D, where it isn't a fundamental type.
    int parse_extended();
    int parse_substituted();
    int parse_vendor_qualified();

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    std::size_t scope_ = 0;
    bool special_member_ = false;
    std::vector<int> substitutions_;
    MangledTree tree_;
};

} // namespace cudamod::formats
