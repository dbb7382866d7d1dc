#include "emulator/ptx/worker.h"

namespace cudamod::emulator::ptx {
namespace {

std::string triple(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

/// The instruction on one line.
std::string squeezed(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank) {
            result += c;
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
    }
    return result.substr(0, 200);
}

} // namespace

void Warp::fault(FaultKind kind, const Instruction& i, unsigned lane,
                 const std::string& detail) const {
    const Code& code = worker->grid.code;
    const SourceLine& source = code.sources[i.source];
    std::string message =
        "kernel '" + worker->grid.kernel().name + "', line " + std::to_string(source.line) + " '" +
        squeezed(std::string_view(code.text).substr(source.begin, source.length)) + "'";
    if (frame != nullptr && frame->parent != nullptr)
        message += " in function '" + frame->code->name + "'";
    message += ", block " + triple(block->index.x, block->index.y, block->index.z) + ", thread " +
               triple(tid[0][lane], tid[1][lane], tid[2][lane]) + ": " + detail;
    throw FaultError{{kind, message}};
}

} // namespace cudamod::emulator::ptx
