#include "emulator/ptx/program.h"
#include "formats/ptx_header.h"
namespace cudamod::emulator::ptx {
struct Code { std::vector<Entry> e; std::vector<Variable> v; int t, i; };
Program::Program(std::unique_ptr<const Code> c) : code_(std::move(c)) {}
Program::~Program() = default;
const std::vector<Entry>& Program::entries() const { return code_->e; }
const std::vector<Variable>& Program::variables() const { return code_->v; }
int Program::target() const { return code_->t; }
int Program::isa() const { return code_->i; }
std::optional<std::uint64_t> Program::function_address(std::string_view) const { return {}; }
LoadResult load(std::string_view text, const Target&) {
    LoadResult r;
    auto h = formats::read_ptx_header(text);
    if (!h.ok()) { r.log = "ptxas application ptx input, line 1; error   : " + h.reason(); return r; }
    auto c = std::make_unique<Code>(); c->t = h->sm; c->i = h->version_major * 10 + h->version_minor;
    for (auto& en : h->entries) { Entry e; e.name = en.name; for (auto& p : en.parameters) e.parameters.push_back({(std::uint32_t)p.offset, (std::uint32_t)p.size, p.alignment}); e.parameter_bytes = en.parameter_bytes; e.registers = 16; c->e.push_back(e); }
    r.status = LoadStatus::Ok; r.program = std::make_shared<Program>(std::move(c)); return r;
}
std::optional<Fault> execute(const Launch&, Memory&, const std::function<void(std::string_view)>&) { return {}; }
}
