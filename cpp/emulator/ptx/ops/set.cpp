/// The families' handlers, gathered.
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/ops/convert.h"
#include "emulator/ptx/ops/lanes.h"

namespace cudamod::emulator::ptx::ops {

Handler select_load(unsigned bytes, unsigned vector, Where where);
Handler select_store(unsigned bytes, unsigned vector, Where where);
Handler select_parameter(unsigned bytes, unsigned vector);
Handler select_resize(unsigned to, unsigned from, bool sign);
void add_immediate(Warp& w, const Instruction& i, std::uint32_t mask);

namespace {

Handler arithmetic(const Form& form) {
    switch (form.row->family) {
    case Family::Integer:
        return select_integer(form);
    case Family::Logic:
        return select_logic(form);
    case Family::Float:
        return select_float(form);
    case Family::Half:
        return select_half(form);
    case Family::Approximate:
        return select_approximate(form);
    case Family::Compare:
        return select_compare(form);
    case Family::Convert:
        return select_convert(form);
    case Family::Video:
        return video::select(form);
    default:
        return nullptr;
    }
}

std::uint32_t settings(const Form& form) {
    if (form.row->family == Family::Convert) return convert_settings(form);
    if (form.row->family == Family::Half) return half_settings(form);
    return form.row->family == Family::Video ? video::settings(form) : 0;
}

constexpr InstructionSet kInstructionSet{&arithmetic,   &settings,         &select_load,
                                         &select_store, &select_parameter, &select_resize,
                                         &add_immediate};

} // namespace
} // namespace cudamod::emulator::ptx::ops

namespace cudamod::emulator::ptx {

const InstructionSet& instruction_set() {
    return ops::kInstructionSet;
}

} // namespace cudamod::emulator::ptx
