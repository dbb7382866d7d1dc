/// Runs PTX text on the interpreter, with memory made of vectors.
#pragma once

#include "check.h"
#include "emulator/ptx/program.h"

#include <cstring>
#include <map>
#include <sstream>

namespace harness {

namespace ptx = cudamod::emulator::ptx;

/// Allocations far apart, so that whatever lies outside of one is nowhere.
class VectorMemory : public ptx::Memory {
  public:
    std::uint64_t allocate(std::size_t bytes) {
        const std::uint64_t address = next_;
        next_ += (bytes / 4096 + 2) * 4096;
        blocks_[address] = std::vector<std::byte>(bytes);
        return address;
    }
    template <class T>
    std::uint64_t upload(const std::vector<T>& values) {
        const std::uint64_t address = allocate(values.size() * sizeof(T));
        std::memcpy(blocks_[address].data(), values.data(), values.size() * sizeof(T));
        return address;
    }
    template <class T>
    std::vector<T> download(std::uint64_t address) const {
        const std::vector<std::byte>& block = blocks_.at(address);
        std::vector<T> values(block.size() / sizeof(T));
        std::memcpy(values.data(), block.data(), values.size() * sizeof(T));
        return values;
    }
    ptx::Window find(std::uint64_t address, std::size_t size) override {
        auto found = blocks_.upper_bound(address);
        if (found == blocks_.begin()) return {};
        --found;
        const std::uint64_t offset = address - found->first;
        if (offset > found->second.size() || found->second.size() - offset < size) return {};
        return {found->first, found->first + found->second.size(), found->second.data(), true};
    }
    std::string explain(std::uint64_t address) override {
        return address == 0 ? "null" : "outside of every allocation";
    }

  private:
    std::map<std::uint64_t, std::vector<std::byte>> blocks_;
    std::uint64_t next_ = 0x7'0000'0000;
};

inline std::string header(const std::string& version = "9.0", const std::string& target = "sm_90") {
    return ".version " + version + "\n.target " + target + "\n.address_size 64\n";
}

constexpr ptx::Target kDevice{90, 'a', 90};

inline ptx::LoadResult load(const std::string& text, const ptx::Target& device = kDevice) {
    return ptx::load(text, device);
}

/// A loaded module with memory for its variables and a way to launch its kernels.
class Module {
  public:
    explicit Module(const std::string& text, const ptx::Target& device = kDevice)
        : result_(load(text, device)) {
        if (!result_.program) {
            check::report(__FILE__, __LINE__,
                          "does not load: " + result_.log + text.substr(0, 4000));
            return;
        }
        for (const ptx::Variable& variable : result_.program->variables()) {
            variables_.push_back(memory.allocate(std::max<std::uint64_t>(variable.size, 1)));
            if (variable.initial.empty()) continue;
            std::memcpy(memory.find(variables_.back(), 1).host, variable.initial.data(),
                        variable.initial.size());
        }
        relocate();
    }

    bool loaded() const { return result_.program != nullptr; }
    const ptx::Program& program() const { return *result_.program; }
    std::uint64_t variable(const std::string& name) const {
        for (std::size_t n = 0; n < variables_.size(); ++n) {
            if (program().variables()[n].name == name) return variables_[n];
        }
        return 0;
    }

    /// Each argument takes its place at its natural alignment.
    template <class... T>
    std::optional<ptx::Fault> launch(const std::string& name, ptx::Dim3 grid, ptx::Dim3 block,
                                     T... arguments) {
        if (!loaded()) return ptx::Fault{ptx::FaultKind::Trap, "not loaded"};
        std::vector<std::byte> parameters;
        const auto append = [&](auto value) {
            while (parameters.size() % sizeof value != 0)
                parameters.push_back({});
            const auto* bytes = reinterpret_cast<const std::byte*>(&value);
            parameters.insert(parameters.end(), bytes, bytes + sizeof value);
        };
        (append(arguments), ...);
        options.program = &program();
        options.entry = ~std::size_t{0};
        for (std::size_t n = 0; n < program().entries().size(); ++n) {
            if (program().entries()[n].name == name) options.entry = n;
        }
        if (options.entry == ~std::size_t{0})
            return ptx::Fault{ptx::FaultKind::Trap, "no kernel " + name};
        options.grid = grid;
        options.block = block;
        options.parameters = parameters.data();
        options.parameter_bytes = parameters.size();
        options.variable_addresses = variables_.data();
        options.multiprocessors = 4;
        printed.clear();
        return ptx::execute(options, memory, [this](std::string_view text) { printed += text; });
    }

    VectorMemory memory;
    ptx::Launch options;
    std::string printed;

  private:
    void relocate() {
        for (std::size_t n = 0; n < variables_.size(); ++n) {
            for (const ptx::Relocation& relocation : program().variables()[n].relocations) {
                const auto function = program().function_address(relocation.symbol);
                const std::uint64_t value = (function ? *function : variable(relocation.symbol)) +
                                            static_cast<std::uint64_t>(relocation.addend);
                std::memcpy(memory.find(variables_[n], 1).host + relocation.offset, &value,
                            sizeof value);
            }
        }
    }

    ptx::LoadResult result_;
    std::vector<std::uint64_t> variables_;
};

/// What kernel k0(out, a, b, c[, count]) makes of three columns of words, one a thread.
inline std::vector<std::uint64_t>
over_columns(Module& module, const std::vector<std::vector<std::uint64_t>>& columns, bool counted) {
    const auto size = static_cast<std::uint32_t>(columns[0].size());
    const std::uint64_t out = module.memory.allocate(size * 8);
    const std::uint64_t a = module.memory.upload(columns[0]), b = module.memory.upload(columns[1]),
                        c = module.memory.upload(columns[2]);
    const ptx::Dim3 grid{(size + 127) / 128, 1, 1}, block{128, 1, 1};
    const auto fault = counted ? module.launch("k0", grid, block, out, a, b, c, size)
                               : module.launch("k0", grid, block, out, a, b, c);
    if (!fault) return module.memory.download<std::uint64_t>(out);
    check::report(__FILE__, __LINE__, "fault: " + fault->message);
    return {};
}

inline void check_no_fault(const std::optional<ptx::Fault>& fault, const char* file, int line) {
    if (fault) check::report(file, line, "fault: " + fault->message);
}
#define CHECK_RUNS(launch) harness::check_no_fault((launch), __FILE__, __LINE__)

} // namespace harness
