/// One function's syntax to executable form.
#pragma once

#include "emulator/ptx/constant_pool.h"
#include "emulator/ptx/diagnostics.h"
#include "emulator/ptx/form.h"
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/symbols.h"
#include "emulator/ptx/variable_table.h"

#include <deque>

namespace cudamod::emulator::ptx {

/// A function as calls see it.
struct Signature {
    std::vector<syntax::Declaration> results, parameters;
    bool is_entry = false, has_body = false;
    Builtin builtin = Builtin::None;
};

/// What the functions of a module share while they are compiled.
struct ModuleContext {
    Code& code;
    ConstantPool& constants;
    std::unordered_map<std::string_view, Symbol>& symbols;
    std::vector<Signature>& signatures; ///< by index of Code::functions
    VariableTable& variables;
    const InstructionSet& set;
};

class FunctionCompiler {
  public:
    FunctionCompiler(ModuleContext& context, FunctionCode& function)
        : context_(context), function_(function) {}

    /// Throws LoadError.
    void run(const syntax::Function& syntax);

  private:
    using Operand = syntax::Operand;
    struct Address {
        Slot base = kNoSlot;
        std::int64_t displacement = 0;
        const Symbol* symbol = nullptr; ///< when it names a variable
    };
    struct Result {
        Slot slot = kNoSlot;
        Slot final_slot = kNoSlot; ///< widened into afterwards
        unsigned bytes = 0, final_bytes = 0;
        bool sign = false;
    };

    [[noreturn]] void fail(const std::string& reason) const { throw LoadError(line_, reason); }

    // Statements.
    void parameters(const syntax::Function& syntax);
    void block(const syntax::Block& block);
    void declare(const syntax::Declaration& declaration);
    void declare_labels(const syntax::Block& block);
    void instruction(const syntax::Instruction& syntax);
    void resolve_branches();

    // Names and registers.
    Symbol* find(std::string_view name);
    Symbol* find_range(Scope& scope, std::string_view name);
    Symbol& add_symbol(std::string_view name, Symbol symbol);
    Slot new_register(Type type);
    Slot new_temporary(unsigned bytes) { return new_register(bits_of_size(bytes)); }
    Slot frame_base();
    Slot register_slot(const Operand& operand, const Symbol& symbol) const;

    // Operands (operands.cpp).
    Slot source(const Operand& operand, Type type, bool relaxed = false);
    Slot literal(const Operand& operand, Type type);
    Slot symbol_value(const Operand& operand, const Symbol& symbol, Type type);
    Slot predicate_source(const Operand& operand);
    Slot predicate_destination(const Operand& operand);
    Result destination(const Operand& operand, Type type, bool relaxed = false);
    void finish(const Result& result);
    void check_type(const Operand& operand, Type declared, Type wanted, bool relaxed) const;
    Slot resized(Slot slot, unsigned from, unsigned to, bool sign);
    Address address(const Operand& operand);
    Slot variable_base(const Symbol& symbol, std::int64_t& displacement, bool generic);
    std::int64_t constant(const Operand& operand) const;
    std::uint32_t label_index(const Operand& operand);

    // Families.
    void plain(const Form& form, const syntax::Instruction& syntax, Instruction result,
               Handler handler);
    void set(const Form& form, const syntax::Instruction& syntax);
    void choose(Slot to, Slot predicate, std::uint32_t yes, std::uint32_t no);
    void pair(const Form& form, const syntax::Instruction& syntax);
    void move(const Form& form, const syntax::Instruction& syntax);
    void move_vector(const Form& form, const syntax::Instruction& syntax);
    void memory(const Form& form, const syntax::Instruction& syntax);
    bool parameter_access(const Form& form, const Operand& value, const Operand& where);
    Where where_of(const Form& form, const Address& address) const;
    void values(const Form& form, const Operand& operand, bool load, Instruction& result,
                std::vector<Result>& results);
    void atomic(const Form& form, const syntax::Instruction& syntax);
    void vector_atomic(const Form& form, const syntax::Instruction& syntax, Address address,
                       Where memory);
    void special(const Form& form, const syntax::Instruction& syntax);
    void control(const Form& form, const syntax::Instruction& syntax);
    void barrier(const Form& form, const syntax::Instruction& syntax);
    void async(const Form& form, const syntax::Instruction& syntax);
    void call(const syntax::Instruction& syntax);
    void matrix(const Form& form, const syntax::Instruction& syntax);
    void matrix_product(const Form& form, const syntax::Instruction& syntax, MatrixSite& site);
    void matrix_rows(const Form& form, const syntax::Instruction& syntax, MatrixSite& site,
                     Instruction& result);
    void matrix_fragment(const Form& form, const syntax::Instruction& syntax, MatrixSite& site,
                         Instruction& result);
    void fragment_registers(const Operand& operand, Fragment& fragment, std::size_t count,
                            bool written);
    void memory_barrier(const Form& form, const syntax::Instruction& syntax);
    void bulk(const Form& form, const syntax::Instruction& syntax);
    void tensor(const Form& form, const syntax::Instruction& syntax);
    Address tensor_address(const Operand& operand, const Form& form, Instruction& result);
    Slot bytes_to_read(const Operand& operand, std::uint32_t bytes);
    void store_async(const Form& form, const syntax::Instruction& syntax);
    void without_effect(const Form& form, const syntax::Instruction& syntax);
    void policy(const Form& form, const syntax::Instruction& syntax);
    /// The whole address in one register.
    Slot address_value(const Address& address);
    std::vector<Transfer> transfers(const Operand* list,
                                    const std::vector<syntax::Declaration>& formal, bool results);

    Instruction& emit(Instruction instruction);
    void set_address(Instruction& instruction, const Address& address);
    void note_access(const Instruction& result, Access::Kind kind, Where where, unsigned bytes,
                     unsigned vector = 1, bool strong = false);

    ModuleContext& context_;
    FunctionCode& function_;
    std::deque<Scope> scopes_;
    std::vector<std::vector<syntax::Declaration>> prototype_results_, prototype_parameters_;
    std::vector<std::vector<std::string_view>> target_lists_;
    std::vector<std::uint32_t> labels_; ///< instruction indices
    struct Fixup {
        std::uint32_t instruction = 0, label = 0;
        int line = 0;
    };
    std::vector<Fixup> fixups_;
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> table_fixups_;
    Slot predicate_block_ = kNoSlot;
    unsigned predicates_ = 0;
    int line_ = 0;
    std::uint32_t source_ = 0;
    Slot guard_ = kNoSlot;
    std::uint32_t guard_xor_ = 0;
    bool is_entry_ = false;
};

} // namespace cudamod::emulator::ptx
