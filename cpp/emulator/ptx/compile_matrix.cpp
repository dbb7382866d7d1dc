/// mma, wmma, ldmatrix, stmatrix and movmatrix.
#include "emulator/ptx/function_compiler.h"
#include "emulator/ptx/matrix.h"

namespace cudamod::emulator::ptx {
namespace {

struct MatrixShape {
    std::uint16_t rows = 0, columns = 0, depth = 0;
};

/// "m16n8k16"
MatrixShape matrix_shape(const Form& form) {
    for (const std::string_view modifier : form.modifiers) {
        MatrixShape shape;
        std::uint16_t* part = nullptr;
        bool fits = modifier.size() > 4 && modifier[0] == 'm' && modifier[1] <= '9';
        for (const char c : modifier) {
            if (c == 'm') {
                part = &shape.rows;
            } else if (c == 'n') {
                part = &shape.columns;
            } else if (c == 'k') {
                part = &shape.depth;
            } else if (c >= '0' && c <= '9' && part != nullptr) {
                *part = static_cast<std::uint16_t>(*part * 10 + (c - '0'));
            } else {
                fits = false;
            }
        }
        if (fits) return shape;
    }
    return {};
}

Type register_type(Type element) {
    if (element == Type::F64 || element == Type::F32 || element == Type::S32) return element;
    return Type::B32;
}

std::uint8_t matrix_rounding(const Form& form) {
    return form.has("rz") ? 1 : form.has("rm") ? 2 : form.has("rp") ? 3 : 0;
}

/// wmma's fragments of f16 hold every element twice.
std::size_t wmma_registers(const Fragment& fragment) {
    if (fragment.type == Type::F16 && fragment.role != Fragment::Role::Accumulator) return 8;
    return matrix::distinct_registers(fragment);
}

} // namespace

void FunctionCompiler::fragment_registers(const Operand& operand, Fragment& fragment,
                                          std::size_t count, bool written) {
    const Type type = register_type(fragment.type);
    const std::vector<Operand> alone{operand};
    const auto& elements = operand.kind == Operand::Kind::Vector ? operand.elements : alone;
    if (elements.size() != count) {
        fail("Arguments mismatch for instruction: " + std::to_string(elements.size()) +
             " registers where " + std::to_string(count) + " are wanted");
    }
    for (const Operand& element : elements) {
        const Slot slot = written ? destination(element, type).slot : source(element, type);
        if (slot == kNoSlot) fail("'_' can't be a destination here");
        fragment.slots.push_back(slot);
    }
}

void FunctionCompiler::matrix_product(const Form& form, const syntax::Instruction& syntax,
                                      MatrixSite& site) {
    const MatrixShape shape = matrix_shape(form);
    const bool halves = form.type_count == 2; // wmma of f16 names d and c only
    const Type types[4] = {form.types[0], halves ? Type::F16 : form.types[1],
                           halves ? Type::F16 : form.types[2], form.types[halves ? 1 : 3]};
    using Role = Fragment::Role;
    site.d = {Role::Accumulator, types[0], shape.rows, shape.columns, {}};
    site.a = {Role::Left, types[1], shape.rows, shape.depth, {}};
    site.b = {Role::Right, types[2], shape.depth, shape.columns, {}};
    site.c = {Role::Accumulator, types[3], shape.rows, shape.columns, {}};
    site.saturate = form.has("satfinite");
    site.conjunction = form.has("and");
    site.rounding = matrix_rounding(form);
    Fragment* fragments[] = {&site.d, &site.a, &site.b, &site.c};
    for (std::size_t n = 0; n < 4; ++n) {
        const std::size_t count = form.is("wmma") ? wmma_registers(*fragments[n])
                                                  : matrix::distinct_registers(*fragments[n]);
        // The destination's names are looked up last: it may not exist as a source.
        if (n != 0) fragment_registers(syntax.operands[n], *fragments[n], count, false);
    }
    fragment_registers(
        syntax.operands[0], site.d,
        form.is("wmma") ? wmma_registers(site.d) : matrix::distinct_registers(site.d), true);
}

void FunctionCompiler::matrix_rows(const Form& form, const syntax::Instruction& syntax,
                                   MatrixSite& site, Instruction& result) {
    const bool load = form.is("ldmatrix");
    site.transposed = form.has("trans");
    site.matrices = form.has("x4") ? 4 : form.has("x2") ? 2 : 1;
    Fragment& fragment = load ? site.d : site.a;
    fragment.type = Type::B16;
    const Address address = this->address(syntax.operands[load ? 1 : 0]);
    site.where = static_cast<std::uint8_t>(where_of(form, address));
    if (address.symbol != nullptr && address.symbol->kind != Symbol::Kind::Shared)
        fail("State space mismatch between instruction and address");
    if (address.symbol != nullptr) site.where = static_cast<std::uint8_t>(Where::Shared);
    fragment_registers(syntax.operands[load ? 0 : 1], fragment, site.matrices, load);
    result.handler = load ? &matrix::load_matrices : &matrix::store_matrices;
    set_address(result, address);
}

void FunctionCompiler::matrix_fragment(const Form& form, const syntax::Instruction& syntax,
                                       MatrixSite& site, Instruction& result) {
    const bool load = form.has("load");
    const MatrixShape shape = matrix_shape(form);
    using Role = Fragment::Role;
    Fragment fragment{Role::Accumulator, form.type(), shape.rows, shape.columns, {}};
    if (load && form.has("a")) fragment = {Role::Left, form.type(), shape.rows, shape.depth, {}};
    if (load && form.has("b"))
        fragment = {Role::Right, form.type(), shape.depth, shape.columns, {}};
    site.transposed = form.has("col");
    site.stride = site.transposed ? fragment.rows : fragment.columns;
    if (bits_of(fragment.type) < 8 && site.transposed != (fragment.role == Role::Right))
        fail("Illegal modifier combination for instruction 'wmma.load': a is row-major and b "
             "column-major when elements are smaller than a byte");
    const Address address = this->address(syntax.operands[load ? 1 : 0]);
    if (address.symbol != nullptr && !form.has("global") && !form.has("shared") &&
        !form.has("shared::cta"))
        fail("Variable in an address without a state space");
    site.where = static_cast<std::uint8_t>(where_of(form, address));
    if (syntax.operands.size() > 2) result.slots[1] = source(syntax.operands[2], Type::U32);
    fragment_registers(syntax.operands[load ? 0 : 1], fragment, wmma_registers(fragment), load);
    (load ? site.d : site.a) = std::move(fragment);
    result.handler = load ? &matrix::load_fragment : &matrix::store_fragment;
    set_address(result, address);
}

void FunctionCompiler::matrix(const Form& form, const syntax::Instruction& syntax) {
    Instruction result;
    MatrixSite site;
    if (form.is("movmatrix")) {
        site.a.type = site.d.type = Type::B16;
        fragment_registers(syntax.operands[1], site.a, 1, false);
        fragment_registers(syntax.operands[0], site.d, 1, true);
        result.handler = &matrix::transpose;
    } else if (form.is("ldmatrix") || form.is("stmatrix")) {
        matrix_rows(form, syntax, site, result);
    } else if (form.has("load") || form.has("store")) {
        matrix_fragment(form, syntax, site, result);
    } else {
        matrix_product(form, syntax, site);
        result.handler = &matrix::multiply;
    }
    result.slots[0] = context_.constants.value(4, 0xffffffff);
    result.extra = static_cast<std::uint32_t>(context_.code.matrices.size());
    context_.code.matrices.push_back(std::move(site));
    emit(result);
}

} // namespace cudamod::emulator::ptx
