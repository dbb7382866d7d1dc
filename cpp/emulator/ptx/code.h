/// The executable form of a module.
///
/// Registers are arrays of 32 lanes of their own width in a frame's register file; a predicate is
/// one 32-bit mask. Immediates, and addresses known at launch, are arrays of the same shape in a
/// pool of constants, so that instructions see registers only.
#pragma once

#include "emulator/ptx/program.h"
#include "emulator/ptx/types.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::emulator::ptx {

constexpr unsigned kLanes = 32;
constexpr std::uint32_t kAllLanes = 0xffffffff;
constexpr std::uint32_t kMaxLocalBytes = 512 * 1024; ///< of a thread

class Warp;
struct Instruction;

/// Executes one instruction for the lanes of `mask`, which is never empty.
using Handler = void (*)(Warp&, const Instruction&, std::uint32_t mask);

/// A lane array: byte offset into the frame's registers, or, with bit 0 set, into the constants.
using Slot = std::uint32_t;
constexpr Slot kNoSlot = 0xfffffffe;
constexpr Slot kConstantBit = 1;

struct Instruction {
    Handler handler = nullptr;
    Slot guard = kNoSlot;        ///< predicate
    std::uint32_t guard_xor = 0; ///< all ones: @!p
    std::array<Slot, 10> slots{kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot,
                               kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
    std::int64_t immediate = 0; ///< displacement, branch target, small settings
    std::uint32_t extra = 0;    ///< of the family: call site, table, special register ...
    std::uint32_t source = 0;   ///< index into Code::sources
    std::uint32_t cache = 0;    ///< memory instructions: index of the worker's window, from 1
};

/// Which memory an instruction names. Constant memory is global memory to the interpreter.
enum class Where : std::uint8_t { Global, Shared, Local, Generic };

/// What a memory instruction does, for checks.
struct Access {
    enum class Kind : std::uint8_t { Other, Load, Store, Atomic };
    Kind kind = Kind::Other;
    Where where = Where::Generic;
    std::uint8_t bytes = 0, vector = 1; ///< bytes of all elements together
    bool strong = false;                ///< atomic, volatile or with an order
};

struct SourceLine {
    int line = 0;
    std::uint32_t begin = 0, length = 0; ///< in Code::text
};

/// A constant whose value is known at launch only.
struct Patch {
    enum class Kind : std::uint8_t { Variable, Shared, DynamicShared };
    Kind kind = Kind::Variable;
    std::uint32_t offset = 0; ///< in Code::constants, of a 64-bit lane array
    std::uint32_t index = 0;  ///< Program::variables() or Code::shared
    std::int64_t addend = 0;
    bool generic = false; ///< the generic address of a shared variable
};

struct SharedVariable {
    std::string name;
    std::uint32_t size = 0, alignment = 1;
    bool dynamic = false; ///< extern: begins after the static ones
};

enum class Builtin : std::uint8_t { None, Printf, Malloc, Free, AssertFail };

/// One side of a value that a call hands over: local memory (offset from the frame's base) or a
/// register.
struct Transfer {
    std::uint32_t place = 0, size = 0;
    bool in_register = false; ///< place is a Slot; kNoSlot: the value is dropped
};

struct CallSite {
    std::uint32_t function = 0; ///< Code::functions, when the call is direct
    Builtin builtin = Builtin::None;
    std::vector<Transfer> arguments, results;
};

/// The part of a matrix that each thread of a warp holds.
struct Fragment {
    enum class Role : std::uint8_t { Left, Right, Accumulator }; ///< A; B; C and D
    Role role = Role::Accumulator;
    Type type = Type::None;
    std::uint16_t rows = 0, columns = 0;
    std::vector<Slot> slots;
};

/// The operands of mma, wmma, ldmatrix, stmatrix and movmatrix.
struct MatrixSite {
    Fragment d, a, b, c;
    bool saturate = false;     ///< integers: clamp to s32
    bool conjunction = false;  ///< b1: and instead of xor
    bool transposed = false;   ///< ldmatrix and stmatrix: .trans; wmma: column-major memory
    unsigned matrices = 0;     ///< ldmatrix and stmatrix: 1, 2 or 4
    std::uint8_t where = 0;    ///< memory: Where
    std::uint32_t stride = 0;  ///< wmma: elements, when the instruction names none
    std::uint8_t rounding = 0; ///< f64: of the host's <cfenv>, by ops::Rounding
};

struct FunctionCode {
    std::string name;
    bool is_entry = false;
    std::vector<Instruction> instructions; ///< ends with a ret
    std::uint32_t register_bytes = 0;
    std::uint32_t local_bytes = 0;          ///< frame: variables, formal parameters, call arguments
    std::uint32_t local_variable_bytes = 0; ///< of .local variables alone
    Slot frame_base = kNoSlot;              ///< 64-bit register holding the frame's local address
    std::vector<Transfer> parameters;       ///< callee side of what calls hand in
    std::vector<Transfer> results;
    std::vector<std::uint32_t> shared; ///< Code::shared used here, directly
    std::vector<std::uint32_t> calls;  ///< functions called directly
    bool indirect_calls = false;
};

/// What one entry needs at launch.
struct EntryCode {
    std::uint32_t function = 0;
    std::vector<std::uint32_t> shared_offsets; ///< per Code::shared; ~0u: not used by this entry
    std::uint32_t static_shared = 0, dynamic_alignment = 1;
    bool explicit_cluster = false;
};

struct Code {
    std::string text;
    int isa = 0, target = 0;
    char target_suffix = 0; ///< of sm_90a
    std::vector<Entry> entries;
    std::vector<Variable> variables;
    std::vector<EntryCode> entry_codes;
    std::vector<FunctionCode> functions;
    std::vector<SourceLine> sources;
    std::vector<std::uint64_t> constants; ///< the pool, in 8-byte words
    std::vector<Patch> patches;
    std::vector<SharedVariable> shared;
    std::vector<CallSite> calls;
    std::vector<MatrixSite> matrices;
    std::vector<std::vector<std::uint32_t>> branch_tables; ///< instruction indices
    std::uint32_t memory_instructions = 1;                 ///< and one: Instruction::cache
    std::vector<Access> accesses; ///< by Instruction::cache, where it is a plain access

    bool is_plain(const Instruction& i) const {
        return i.cache < accesses.size() && accesses[i.cache].kind != Access::Kind::Other;
    }
};

} // namespace cudamod::emulator::ptx
