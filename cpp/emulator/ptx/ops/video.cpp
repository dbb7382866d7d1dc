/// The video instructions: on whole words, and on 2 or 4 parts of a word. Selectors of parts and
/// masks are not supported (the loader refuses them).
#include "emulator/ptx/ops/lanes.h"

#include <algorithm>
#include <bit>

namespace cudamod::emulator::ptx::ops::video {
namespace {

using std::int64_t, std::uint32_t;

enum class Op : uint32_t { Add, Sub, AbsDiff, Min, Max, Set, Shl, Shr, Mad };
enum class Second : uint32_t { None, Add, Min, Max };

/// Instruction::extra.
struct Settings {
    uint32_t op : 4 = 0;
    uint32_t parts : 3 = 1;
    uint32_t signed_a : 1 = 0, signed_b : 1 = 0, signed_d : 1 = 0;
    uint32_t saturates : 1 = 0;
    uint32_t second : 2 = 0;
    uint32_t wraps : 1 = 0;
    uint32_t shift : 4 = 0;
    uint32_t comparison : 3 = 0;
    uint32_t unused : 10 = 0;
};

int64_t part(uint32_t word, unsigned n, unsigned bits, bool sign) {
    const int64_t value = static_cast<int64_t>(word >> (n * bits)) & ((int64_t{1} << bits) - 1);
    return sign && (value >> (bits - 1) & 1) != 0 ? value - (int64_t{1} << bits) : value;
}

bool compared(uint32_t how, int64_t a, int64_t b) {
    switch (how) {
    case 0:
        return a == b;
    case 1:
        return a != b;
    case 2:
        return a < b;
    case 3:
        return a <= b;
    case 4:
        return a > b;
    default:
        return a >= b;
    }
}

int64_t applied(const Settings& s, int64_t a, int64_t b, uint32_t c) {
    const auto shift = [&] {
        return s.wraps != 0 ? static_cast<uint32_t>(b & 31)
                            : static_cast<uint32_t>(std::min<int64_t>(b, 32));
    };
    switch (static_cast<Op>(s.op)) {
    case Op::Add:
        return a + b;
    case Op::Sub:
        return a - b;
    case Op::AbsDiff:
        return a > b ? a - b : b - a;
    case Op::Min:
        return std::min(a, b);
    case Op::Max:
        return std::max(a, b);
    case Op::Set:
        return compared(s.comparison, a, b) ? 1 : 0;
    case Op::Shl:
        return a * (int64_t{1} << shift());
    case Op::Shr:
        return a >> shift();
    default: {
        const bool sign = s.signed_a != 0 || s.signed_b != 0;
        return (a * b + part(c, 0, 32, sign)) >> s.shift;
    }
    }
}

int64_t limited(int64_t value, unsigned bits, bool sign) {
    const int64_t top = int64_t{1} << (sign ? bits - 1 : bits);
    return std::clamp(value, sign ? -top : int64_t{0}, top - 1);
}

uint32_t combined(const Settings& s, uint32_t value, uint32_t c) {
    const bool sign = s.signed_d != 0;
    const int64_t x = part(value, 0, 32, sign), y = part(c, 0, 32, sign);
    switch (static_cast<Second>(s.second)) {
    case Second::Add:
        return value + c;
    case Second::Min:
        return static_cast<uint32_t>(std::min(x, y));
    case Second::Max:
        return static_cast<uint32_t>(std::max(x, y));
    default:
        return value;
    }
}

uint32_t result(const Settings& s, uint32_t a, uint32_t b, uint32_t c) {
    const unsigned bits = 32 / s.parts;
    const bool adds = s.parts > 1 && static_cast<Second>(s.second) == Second::Add;
    const bool sign =
        static_cast<Op>(s.op) == Op::Mad ? s.signed_a != 0 || s.signed_b != 0 : s.signed_d != 0;
    uint32_t word = adds ? c : 0;
    for (unsigned n = 0; n < s.parts; ++n) {
        int64_t value =
            applied(s, part(a, n, bits, s.signed_a != 0), part(b, n, bits, s.signed_b != 0), c);
        if (s.saturates != 0) value = limited(value, bits, sign);
        const auto low = static_cast<uint32_t>(value & ((int64_t{1} << bits) - 1));
        if (adds) {
            word += static_cast<uint32_t>(value);
        } else {
            word |= low << (n * bits);
        }
    }
    return s.parts == 1 ? combined(s, word, c) : word;
}

void execute(Warp& w, const Instruction& i, uint32_t mask) {
    const auto s = std::bit_cast<Settings>(i.extra);
    auto* d = w.at<uint32_t>(i.slots[0]);
    const auto* a = w.at<uint32_t>(i.slots[1]);
    const auto* b = w.at<uint32_t>(i.slots[2]);
    const auto* c = i.slots[3] == kNoSlot ? a : w.at<uint32_t>(i.slots[3]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = result(s, a[l], b[l], c[l]);
    }
}

template <std::size_t N>
uint32_t position(const Form& form, const std::string_view (&names)[N]) {
    for (uint32_t n = 0; n < N; ++n) {
        if (form.has(names[n])) return n;
    }
    return 0;
}

} // namespace

std::uint32_t settings(const Form& form) {
    static constexpr std::string_view kOps[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax",
                                                "vset", "vshl", "vshr",     "vmad"};
    static constexpr std::string_view kComparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static constexpr std::string_view kSecond[] = {"none", "add", "min", "max"};
    const std::string_view name = form.opcode();
    const bool split = name.back() == '2' || name.back() == '4';
    const std::string_view op = name.substr(0, name.size() - (split ? 1 : 0));
    Settings s;
    s.op = static_cast<uint32_t>(std::find(std::begin(kOps), std::end(kOps), op) - kOps);
    s.parts = split ? static_cast<uint32_t>(name.back() - '0') : 1;
    const bool compares = op == "vset" && !split; // without a type of the result
    s.signed_d = is_signed(form.types[0]) && !compares ? 1 : 0;
    s.signed_a = is_signed(form.types[compares ? 0 : 1]) ? 1 : 0;
    s.signed_b = is_signed(form.types[compares ? 1 : 2]) ? 1 : 0;
    s.saturates = form.has("sat") ? 1 : 0;
    s.second = position(form, kSecond);
    s.wraps = form.has("wrap") ? 1 : 0;
    s.shift = form.has("shr7") ? 7 : form.has("shr15") ? 15 : 0;
    s.comparison = position(form, kComparisons);
    return std::bit_cast<uint32_t>(s);
}

Handler select(const Form&) {
    return &execute;
}

} // namespace cudamod::emulator::ptx::ops::video
