#include "emulator/ptx/fault_text.h"
#include "emulator/ptx/worker.h"

#include <cstdio>

namespace cudamod::emulator::ptx {

std::string address_text(std::uint64_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

std::string triple_text(const Dim3& value) {
    return "(" + std::to_string(value.x) + "," + std::to_string(value.y) + "," +
           std::to_string(value.z) + ")";
}

std::string instruction_text(const Code& code, const Instruction& i) {
    const SourceLine& source = code.sources[i.source];
    std::string result;
    for (const char c : std::string_view(code.text).substr(source.begin, source.length)) {
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank) {
            result += c;
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
    }
    return result.substr(0, 200);
}

Fault Warp::describe(FaultKind kind, const Instruction& i, unsigned lane, const std::string& detail,
                     std::optional<std::uint64_t> address) const {
    const Code& code = worker->grid.code;
    Fault fault;
    fault.kind = kind;
    fault.kernel = worker->grid.kernel().name;
    fault.line = code.sources[i.source].line;
    fault.instruction = instruction_text(code, i);
    fault.block = block->index;
    fault.thread = {tid[0][lane], tid[1][lane], tid[2][lane]};
    fault.address = address;
    fault.message = "kernel '" + fault.kernel + "', line " + std::to_string(fault.line) + " '" +
                    fault.instruction + "'";
    if (frame != nullptr && frame->parent != nullptr)
        fault.message += " in function '" + frame->code->name + "'";
    fault.message += ", block " + triple_text(fault.block) + ", thread " +
                     triple_text(fault.thread) + ": " + detail;
    return fault;
}

void Warp::tell(AccessWatch& watch, const Instruction& i, unsigned lane, unsigned lanes,
                std::uint64_t address, std::size_t bytes, bool writes, bool strong) const {
    const Dim3& grid = worker->grid.launch.grid;
    const Dim3& at = block->index;
    MemoryAccess access;
    access.address = address;
    access.bytes = bytes * lanes;
    access.bytes_of_each = bytes;
    access.writes = writes;
    access.strong = strong;
    access.instruction = i.cache;
    access.block = (std::uint64_t{at.z} * grid.y + at.y) * grid.x + at.x;
    access.thread = index * kLanes + lane;
    const auto conflict = watch.conflict(access);
    if (!conflict) return;
    const auto culprit = lane + static_cast<unsigned>((conflict->address - address) / bytes);
    report(FaultKind::StreamConflict, i, culprit, conflict->text, conflict->address);
}

void Warp::fault(FaultKind kind, const Instruction& i, unsigned lane, const std::string& detail,
                 std::optional<std::uint64_t> address) const {
    throw FaultError{describe(kind, i, lane, detail, address)};
}

void Warp::report(FaultKind kind, const Instruction& i, unsigned lane, const std::string& detail,
                  std::optional<std::uint64_t> address) const {
    Grid& grid = worker->grid;
    {
        const std::lock_guard lock(grid.fault_mutex);
        if (!grid.reported.insert({&i, kind}).second) return;
    }
    const Fault found = describe(kind, i, lane, detail, address);
    if (!grid.launch.found || !grid.launch.found(found)) throw FaultError{found};
}

} // namespace cudamod::emulator::ptx
