/// The PTX engine's interface: load PTX text into a Program, execute one of its kernels.
///
/// The engine knows no driver: device memory is reached through `Memory`, addresses of variables
/// are handed in with each launch. A Program is immutable and may be executed by several threads at
/// once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudamod::emulator::ptx {

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
};

/// What the driver would answer for the image: success, 218 INVALID_PTX, 222
/// UNSUPPORTED_PTX_VERSION.
enum class LoadStatus { Ok, InvalidPtx, UnsupportedVersion };

/// The device that an image is loaded for.
struct Target {
    int capability = 90; ///< 90 is compute capability 9.0
    char suffix = 0;     ///< 'a', 'f' or 0: which architecture-specific PTX the device runs
    int newest_isa = 90; ///< newest `.version` understood; 90 is PTX 9.0
};

struct Parameter {
    std::uint32_t offset = 0, size = 0, alignment = 1;
};

enum class VariableSpace { Global, Constant };

/// The 8-byte generic address of `symbol` plus `addend` belongs at `offset` of the variable.
struct Relocation {
    std::uint64_t offset = 0;
    std::string symbol;
    std::int64_t addend = 0;
};

/// A module-scope variable of the image. The driver half places it and writes its initial value.
struct Variable {
    std::string name;
    VariableSpace space = VariableSpace::Global;
    std::uint64_t size = 0, alignment = 1;
    std::vector<std::uint8_t> initial; ///< empty: zeros
    std::vector<Relocation> relocations;
};

/// A kernel. Dimensions of {0,0,0} mean that the directive is absent.
struct Entry {
    std::string name;
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0, static_shared_bytes = 0, local_bytes = 0;
    std::uint32_t registers = 0; ///< a guess: PTX does not say
    Dim3 max_threads{0, 0, 0}, required_threads{0, 0, 0}, required_cluster{0, 0, 0};
    bool explicit_cluster = false; ///< launched in clusters, whoever gives their size
    std::uint32_t max_cluster_rank = 0, min_blocks_per_sm = 0, max_registers = 0;
};

struct Code;

/// A loaded image.
class Program {
  public:
    explicit Program(std::unique_ptr<const Code> code);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    const std::vector<Entry>& entries() const;
    const std::vector<Variable>& variables() const;
    int target() const;                         ///< 90 for `.target sm_90`
    int isa() const;                            ///< 80 for `.version 8.0`
    const Code& code() const { return *code_; } ///< the executable form; the engine's own

    /// Instructions that touch memory are numbered from 1; one more than the last number.
    std::uint32_t memory_instructions() const;
    /// "line 7 'st.global.u32 [%rd1], %r1;'".
    std::string instruction_text(std::uint32_t memory_instruction) const;

    /// The 8-byte value of a function's address, for relocations whose symbol is a function.
    std::optional<std::uint64_t> function_address(std::string_view name) const;

  private:
    std::unique_ptr<const Code> code_;
};

struct LoadResult {
    LoadStatus status = LoadStatus::InvalidPtx;
    std::string log; ///< "ptxas application ptx input, line 5; error   : ..."
    std::shared_ptr<const Program> program;
};

/// Parses, verifies and compiles `text` (with or without a trailing NUL). Everything that the
/// engine cannot execute is refused here, with line, text and reason in the log.
LoadResult load(std::string_view text, const Target& device);

enum class FaultKind {
    IllegalAddress,      ///< 700
    MisalignedAddress,   ///< 716
    Trap,                ///< 719
    Assert,              ///< 710
    IllegalInstruction,  ///< 715
    InvalidAddressSpace, ///< 717
    Timeout,             ///< 702; also a launch that was told to end
    Deadlock,
    StackOverflow,
    UninitializedRead, ///< found by kCheckUninitialized
    SharedRace,        ///< found by kCheckRaces
    BarrierDivergence, ///< found by kCheckBarriers
    StreamConflict     ///< found by kCheckStreams
};

/// Checks that a launch may ask for.
constexpr unsigned kCheckUninitialized = 1, ///< reads of global and shared memory nobody wrote
    kCheckRaces = 2,    ///< accesses of shared memory by two threads of a block with no barrier
                        ///< between them
    kCheckBarriers = 4, ///< threads of a warp that don't wait in the same barrier instruction
    kCheckStreams = 8;  ///< accesses of device memory are told to its AccessWatch

/// `message` names kernel, line and text of the instruction, block, thread and address; the rest
/// is the same for programs, where it is known.
struct Fault {
    FaultKind kind = FaultKind::Trap;
    std::string message;
    std::string kernel{}, instruction{};
    int line = 0; ///< 0: no single instruction is at fault
    Dim3 block{0, 0, 0}, thread{0, 0, 0};
    std::optional<std::uint64_t> address{}; ///< generic, or an offset in shared memory
};

/// What one thread does to device memory, or several that follow each other do to as many
/// neighbouring pieces of it.
struct MemoryAccess {
    std::uint64_t address = 0;
    std::size_t bytes = 0, bytes_of_each = 0;
    bool writes = false;
    bool strong = false;           ///< atomic, volatile or with an order
    std::uint32_t instruction = 0; ///< as Program numbers them
    std::uint64_t block = 0;       ///< counted through the grid, x first
    std::uint32_t thread = 0;      ///< the first; counted through the block, x first
};

/// Where an access conflicts with an earlier one, and what to say of it.
struct AccessConflict {
    std::uint64_t address = 0;
    std::string text;
};

/// Who wants to know of every access; called from all of a launch's threads.
struct AccessWatch {
    virtual ~AccessWatch() = default;
    /// The access is made; what it conflicts with, if anything.
    virtual std::optional<AccessConflict> conflict(const MemoryAccess& access) = 0;
};

/// Live memory: device addresses [begin, end), whose first byte lies at `host`. Empty: no such
/// memory. A window stays usable until execute() returns, even if the allocation is freed
/// meanwhile.
struct Window {
    std::uint64_t begin = 0, end = 0;
    std::byte* host = nullptr;
    bool writable = true;
    /// A byte for each of the window's: not 0 once it was written. Null: all of it was.
    std::uint8_t* written = nullptr;
    AccessWatch* watch = nullptr; ///< null: nobody; lives as long as the window
};

/// Device memory as the interpreter sees it; called from all of a launch's threads.
struct Memory {
    virtual ~Memory() = default;
    /// The live allocation that holds [address, address + size).
    virtual Window find(std::uint64_t address, std::size_t size) = 0;
    /// What is known about a bad address: "16 bytes past the end of ...", "freed", "null", ...
    virtual std::string explain(std::uint64_t address) = 0;
};

struct Launch {
    const Program* program = nullptr;
    std::size_t entry = 0;
    Dim3 grid, block, cluster{0, 0, 0};
    std::uint32_t dynamic_shared_bytes = 0;
    bool cooperative = false;
    const std::byte* parameters = nullptr;
    std::size_t parameter_bytes = 0;
    const std::uint64_t* variable_addresses = nullptr; ///< one device address per variables()
    std::uint32_t multiprocessors = 1, shared_limit_bytes = 0;
    std::uint64_t seed = 0;
    unsigned threads = 1;
    unsigned checks = 0; ///< kCheck...
    /// Hears what checks find, from all of the launch's threads; false makes it the launch's fault.
    std::function<bool(const Fault&)> found;
    /// Asked now and then by all threads of the launch: why it must end, or null. It then ends with
    /// FaultKind::Timeout.
    std::function<const char*()> watch;
    /// Where further threads come from; empty: the standard library.
    std::function<void(std::function<void()>)> start_thread;
};

/// Runs the kernel to its end; returns the first fault, if any. `print` receives what printf
/// writes.
std::optional<Fault> execute(const Launch& launch, Memory& memory,
                             const std::function<void(std::string_view)>& print);

} // namespace cudamod::emulator::ptx
