/// The arithmetic of mma and wmma.
///
/// Products are exact. Floating-point sums follow what is known of the hardware: a block of
/// products and the addend are aligned to the largest of their exponents, cut there, summed
/// exactly, and cut (single precision) or rounded (half precision) once.
#include "emulator/ptx/matrix.h"

#include "emulator/ptx/ops/floats.h"
#include "emulator/ptx/worker.h"

#include <array>

namespace cudamod::emulator::ptx::matrix {
namespace {

using std::int32_t, std::int64_t, std::uint32_t, std::uint64_t;

constexpr unsigned kMaxRows = 32, kMaxColumns = 32, kMaxDepth = 256;

struct Inputs {
    const Warp& w;
    const Part* parts;
    std::size_t count;
};

/// Calls `take(row, column, bits)` with each element of the fragment.
template <class T, class F>
void each_element(const Inputs& in, const Fragment& fragment, F take) {
    const unsigned bits = bits_of(fragment.type), each = elements_per_register(fragment.type),
                   registers = distinct_registers(fragment);
    const T mask = bits == 8 * sizeof(T) ? ~T{0} : (T{1} << bits) - 1;
    T values[kLanes];
    for (unsigned r = 0; r < registers; ++r) {
        read_register(in.w, in.parts, in.count, fragment.slots[r], values);
        for (unsigned l = 0; l < kLanes; ++l) {
            for (unsigned e = 0; e < each; ++e) {
                const Position at = position_of(fragment, l, r * each + e);
                take(at.row, at.column, static_cast<T>(values[l] >> (bits * e) & mask));
            }
        }
    }
}

/// Writes a fragment from `give(row, column)`, which answers an element's bits.
template <class T, class F>
void fill_elements(const Inputs& in, const Fragment& fragment, F give) {
    const unsigned bits = bits_of(fragment.type), each = elements_per_register(fragment.type);
    T values[kLanes];
    for (unsigned r = 0; r < fragment.slots.size(); ++r) {
        for (unsigned l = 0; l < kLanes; ++l) {
            values[l] = 0;
            for (unsigned e = 0; e < each; ++e) {
                const Position at = position_of(fragment, l, r * each + e);
                values[l] |= static_cast<T>(give(at.row, at.column)) << (bits * e);
            }
        }
        write_register(in.parts, in.count, fragment.slots[r], values);
    }
}

/// significand * 2^exponent; the exponent is that of the unit's place: a normal number's
/// significand is in [2^fraction, 2^(fraction + 1)).
struct Term {
    int32_t significand = 0;
    int32_t exponent = 0;
    float value = 0;
};

/// How a multiplier of this type sees its operands.
struct Operand {
    ops::Format format;
    unsigned block;     ///< products that are summed at once
    unsigned precision; ///< places kept behind the largest exponent
};

Operand operand_of(Type type) {
    switch (type) {
    case Type::BF16:
        return {ops::kBfloat, 16, 25};
    case Type::TF32:
        return {ops::kTf32, 8, 25};
    case Type::E4M3:
        return {ops::kE4m3, 16, 25};
    case Type::E5M2:
        return {ops::kE5m2, 16, 25};
    default:
        return {ops::kHalf, 16, 25};
    }
}

Term term_of(uint32_t bits, const ops::Format format) {
    const uint32_t mantissa = bits & ((1u << format.mantissa) - 1),
                   field = bits >> format.mantissa & ((1u << format.exponent) - 1);
    Term term;
    term.value = ops::decode(bits, format);
    term.exponent = static_cast<int32_t>(field == 0 ? 1 : field) - format.bias();
    term.significand =
        static_cast<int32_t>(field == 0 ? mantissa : mantissa | 1u << format.mantissa);
    if ((bits >> (format.mantissa + format.exponent) & 1) != 0)
        term.significand = -term.significand;
    return term;
}

constexpr ops::Format kSingle{23, 8, false};

/// `magnitude * 2^shift`, cut toward zero.
CUDAMOD_INLINE int64_t shifted(int64_t value, int shift) {
    if (shift >= 0) return value * (int64_t{1} << shift);
    if (shift <= -63) return 0;
    return value < 0 ? -(-value >> -shift) : value >> -shift;
}

bool is_finite(float x) {
    return (ops::bits(x) & 0x7f800000) != 0x7f800000;
}

/// One element of a float product; `sum` is the addend and `depth` terms follow each other.
class FloatSum {
  public:
    FloatSum(const Operand& left, const Operand& right, bool to_half)
        : left_(left), right_(right), to_half_(to_half),
          fraction_(left.format.mantissa + right.format.mantissa) {}

    /// `c` and, unless it is half precision, the result are single precision.
    uint32_t run(const Term* a, const Term* b, unsigned depth, uint32_t c) const {
        if (const auto special = not_finite(a, b, depth, ops::single(c))) return *special;
        for (unsigned k = 0; k < depth; k += left_.block) {
            const bool last = k + left_.block >= depth;
            c = block(a + k, b + k, std::min(left_.block, depth - k), c, to_half_ && last);
        }
        return c;
    }

  private:
    std::optional<uint32_t> not_finite(const Term* a, const Term* b, unsigned depth,
                                       float addend) const {
        bool finite = is_finite(addend);
        for (unsigned k = 0; k < depth; ++k)
            finite &= is_finite(a[k].value) && is_finite(b[k].value);
        if (finite) return std::nullopt;
        double sum = static_cast<double>(addend);
        for (unsigned k = 0; k < depth; ++k)
            sum += static_cast<double>(a[k].value) * static_cast<double>(b[k].value);
        if (to_half_) return sum != sum ? 0x7fff : sum > 0 ? 0x7c00 : 0xfc00;
        return sum != sum ? ops::kCanonicalNan : sum > 0 ? 0x7f800000 : 0xff800000;
    }

    uint32_t block(const Term* a, const Term* b, unsigned count, uint32_t c, bool round) const {
        const Term addend = term_of(c, kSingle);
        constexpr int kNone = -100000;
        int largest = addend.significand != 0 ? addend.exponent : kNone;
        for (unsigned k = 0; k < count; ++k) {
            if (a[k].significand != 0 && b[k].significand != 0)
                largest = std::max(largest, a[k].exponent + b[k].exponent);
        }
        if (largest == kNone) return round ? c >> 16 : c;
        const int places = static_cast<int>(left_.precision);
        int64_t sum =
            shifted(addend.significand, addend.exponent - largest + places - kSingle.mantissa);
        for (unsigned k = 0; k < count; ++k) {
            const int64_t product = int64_t{a[k].significand} * b[k].significand;
            sum += shifted(product, a[k].exponent + b[k].exponent - largest + places - fraction_);
        }
        // The sum has at most 34 bits, and the scale stays far inside double's range.
        const double value =
            static_cast<double>(sum) *
            std::bit_cast<double>(static_cast<uint64_t>(largest - places + 1023) << 52);
        if (round) return ops::to_half(value);
        if (__builtin_fabs(value) >= 0x1p128) return value > 0 ? 0x7f800000 : 0xff800000;
        return ops::encode(value, kSingle, ops::Rounding::Zero, false, 0);
    }

    Operand left_, right_;
    bool to_half_;
    int fraction_;
};

struct Shape {
    unsigned rows, columns, depth;
};
Shape shape_of(const MatrixSite& site) {
    return {site.a.rows, site.b.columns, site.a.columns};
}

/// A, B by columns, C and D, of one representation.
template <class A, class C>
struct Matrices {
    std::vector<A> a, b;
    std::array<C, kMaxRows * kMaxColumns> c;

    explicit Matrices(const Shape& shape)
        : a(shape.rows * shape.depth), b(shape.columns * shape.depth) {}
};

void multiply_floats(const Inputs& in, const MatrixSite& site) {
    const Shape shape = shape_of(site);
    Matrices<Term, uint32_t> m(shape);
    const Operand left = operand_of(site.a.type), right = operand_of(site.b.type);
    const auto element = [](uint32_t bits, Type type, const ops::Format format) {
        return term_of(type == Type::TF32 ? bits >> 13 : bits, format);
    };
    each_element<uint32_t>(in, site.a, [&](unsigned row, unsigned column, uint32_t bits) {
        m.a[row * shape.depth + column] = element(bits, site.a.type, left.format);
    });
    each_element<uint32_t>(in, site.b, [&](unsigned row, unsigned column, uint32_t bits) {
        m.b[column * shape.depth + row] = element(bits, site.b.type, right.format);
    });
    each_element<uint32_t>(in, site.c, [&](unsigned row, unsigned column, uint32_t bits) {
        m.c[row * kMaxColumns + column] =
            site.c.type == Type::F16 ? ops::bits(ops::half_value(static_cast<std::uint16_t>(bits)))
                                     : bits;
    });
    const FloatSum sum(left, right, site.d.type == Type::F16);
    for (unsigned row = 0; row < shape.rows; ++row) {
        for (unsigned column = 0; column < shape.columns; ++column) {
            uint32_t& c = m.c[row * kMaxColumns + column];
            c = sum.run(&m.a[row * shape.depth], &m.b[column * shape.depth], shape.depth, c);
        }
    }
    fill_elements<uint32_t>(
        in, site.d, [&](unsigned row, unsigned column) { return m.c[row * kMaxColumns + column]; });
}

void multiply_doubles(const Inputs& in, const MatrixSite& site) {
    const Shape shape = shape_of(site);
    Matrices<double, double> m(shape);
    each_element<uint64_t>(in, site.a, [&](unsigned row, unsigned column, uint64_t bits) {
        m.a[row * shape.depth + column] = std::bit_cast<double>(bits);
    });
    each_element<uint64_t>(in, site.b, [&](unsigned row, unsigned column, uint64_t bits) {
        m.b[column * shape.depth + row] = std::bit_cast<double>(bits);
    });
    each_element<uint64_t>(in, site.c, [&](unsigned row, unsigned column, uint64_t bits) {
        m.c[row * kMaxColumns + column] = std::bit_cast<double>(bits);
    });
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[site.rounding]);
    for (unsigned row = 0; row < shape.rows; ++row) {
        for (unsigned column = 0; column < shape.columns; ++column) {
            double& c = m.c[row * kMaxColumns + column];
            for (unsigned k = 0; k < shape.depth; ++k) {
                c = __builtin_fma(m.a[row * shape.depth + k], m.b[column * shape.depth + k], c);
            }
        }
    }
    std::fesetround(FE_TONEAREST);
    fill_elements<uint64_t>(in, site.d, [&](unsigned row, unsigned column) {
        return ops::bits(m.c[row * kMaxColumns + column]);
    });
}

int32_t integer_of(uint32_t bits, Type type) {
    switch (type) {
    case Type::S8:
        return static_cast<std::int8_t>(bits);
    case Type::S4:
        return static_cast<int32_t>(bits << 28) >> 28;
    default:
        return static_cast<int32_t>(bits);
    }
}

void multiply_integers(const Inputs& in, const MatrixSite& site) {
    const Shape shape = shape_of(site);
    Matrices<int32_t, int64_t> m(shape);
    each_element<uint32_t>(in, site.a, [&](unsigned row, unsigned column, uint32_t bits) {
        m.a[row * shape.depth + column] = integer_of(bits, site.a.type);
    });
    each_element<uint32_t>(in, site.b, [&](unsigned row, unsigned column, uint32_t bits) {
        m.b[column * shape.depth + row] = integer_of(bits, site.b.type);
    });
    each_element<uint32_t>(in, site.c, [&](unsigned row, unsigned column, uint32_t bits) {
        m.c[row * kMaxColumns + column] = static_cast<int32_t>(bits);
    });
    const bool single_bits = site.a.type == Type::B1;
    for (unsigned row = 0; row < shape.rows; ++row) {
        for (unsigned column = 0; column < shape.columns; ++column) {
            const int32_t* a = &m.a[row * shape.depth];
            const int32_t* b = &m.b[column * shape.depth];
            int64_t sum = m.c[row * kMaxColumns + column];
            for (unsigned k = 0; k < shape.depth; ++k)
                sum += single_bits ? (site.conjunction ? a[k] & b[k] : a[k] ^ b[k]) : a[k] * b[k];
            if (site.saturate)
                sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                          std::numeric_limits<int32_t>::max());
            m.c[row * kMaxColumns + column] = sum;
        }
    }
    fill_elements<uint32_t>(in, site.d, [&](unsigned row, unsigned column) {
        return static_cast<uint32_t>(m.c[row * kMaxColumns + column]);
    });
}

void evaluate_product(Warp& w, const Part* parts, std::size_t count) {
    require_whole_warp(w, parts, count);
    const MatrixSite& site = w.worker->grid.code.matrices[parts[0].instruction->extra];
    const Inputs in{w, parts, count};
    if (site.d.type == Type::F64) {
        multiply_doubles(in, site);
    } else if (site.d.type == Type::S32) {
        multiply_integers(in, site);
    } else {
        multiply_floats(in, site);
    }
}

} // namespace

void multiply(Warp& w, const Instruction& i, std::uint32_t mask) {
    w.synchronize(i, mask, i.slots[0], &evaluate_product);
}

} // namespace cudamod::emulator::ptx::matrix
