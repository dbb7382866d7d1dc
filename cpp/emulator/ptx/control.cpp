#include "emulator/ptx/runtime.h"
#include "emulator/ptx/worker.h"

namespace cudamod::emulator::ptx {

void branch(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.branch(&i + i.immediate, mask);
}

void branch_indexed(Warp& w, const Instruction& i, std::uint32_t mask) {
    const std::vector<std::uint32_t>& table = w.worker->grid.code.branch_tables[i.extra];
    const auto* index = w.at<std::uint32_t>(i.slots[0]);
    w.separate(mask, w.pc);
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    if (index[lane] >= table.size()) {
        w.fault(FaultKind::IllegalInstruction, i, lane,
                "index " + std::to_string(index[lane]) + " is beyond the " +
                    std::to_string(table.size()) + " branch targets");
    }
    std::uint32_t same = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        same |= index[l] == index[lane] ? 1u << l : 0u;
    w.separate(mask & same, &i);
    w.pc = w.frame->code->instructions.data() + table[index[lane]];
}

void return_from(Warp& w, const Instruction&, std::uint32_t mask) {
    w.leave(mask);
}
void exit_thread(Warp& w, const Instruction&, std::uint32_t mask) {
    w.exit(mask);
}

void trap(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.fault(FaultKind::Trap, i, static_cast<unsigned>(__builtin_ctz(mask)), "trap");
}
void breakpoint(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.fault(FaultKind::Trap, i, static_cast<unsigned>(__builtin_ctz(mask)),
            "breakpoint without a debugger");
}

void sleep(Warp& w, const Instruction&, std::uint32_t) {
    w.give_way();
}
void nothing(Warp&, const Instruction&, std::uint32_t) {}

void call_direct(Warp& w, const Instruction& i, std::uint32_t mask) {
    const Code& code = w.worker->grid.code;
    const CallSite& site = code.calls[i.extra];
    w.call(i, site, code.functions[site.function], mask);
}

void call_indirect(Warp& w, const Instruction& i, std::uint32_t mask) {
    const Code& code = w.worker->grid.code;
    const CallSite& site = code.calls[i.extra];
    w.separate(mask, w.pc);
    const auto* address = w.at<std::uint64_t>(i.slots[0]);
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    std::uint32_t same = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        same |= address[l] == address[lane] ? 1u << l : 0u;
    w.separate(mask & same, &i);
    const std::uint64_t number = (address[lane] - kFunctionWindow) / 16;
    bool fits = in_window(address[lane], kFunctionWindow) && address[lane] % 16 == 0 &&
                number < code.functions.size();
    if (fits) {
        const FunctionCode& callee = code.functions[number];
        fits = !callee.is_entry && !callee.instructions.empty() &&
               callee.parameters.size() == site.arguments.size() &&
               callee.results.size() == site.results.size();
        for (std::size_t n = 0; fits && n < site.arguments.size(); ++n)
            fits = callee.parameters[n].size == site.arguments[n].size;
        for (std::size_t n = 0; fits && n < site.results.size(); ++n)
            fits = callee.results[n].size == site.results[n].size;
    }
    if (!fits) {
        w.fault(FaultKind::IllegalInstruction, i, lane,
                "the address called is no function of this signature");
    }
    w.call(i, site, code.functions[number], w.active);
}

} // namespace cudamod::emulator::ptx
