#include "check.h"

#include "formats/mangled_name.h"

using namespace cudamod::formats;

namespace {

/// "i32, ptr": the types; "?" where the list isn't known, "none" where the name isn't one.
std::string types_of(std::string_view mangled) {
    auto name = read_mangled_name(mangled);
    if (!name) return "none";
    if (!name->parameter_types) return "?";
    std::string text;
    for (const auto& parameter : *name->parameter_types) {
        if (!text.empty()) text += ", ";
        text += cudamod::formats::name(parameter.type);
    }
    return text;
}

std::string text_of(std::string_view mangled, std::size_t i) {
    auto name = read_mangled_name(mangled);
    return name && name->parameter_types && i < name->parameter_types->size()
               ? (*name->parameter_types)[i].text
               : "";
}

void check_builtins() {
    CHECK_EQ(types_of("_Z1kv"), "");
    CHECK_EQ(types_of("_Z1kbcahstijlmxy"),
             "bool, i8, i8, u8, i16, u16, i32, u32, i64, u64, i64, u64");
    CHECK_EQ(types_of("_Z1kfdenowDsDiDuDn"),
             "f32, f64, unknown, i128, u128, i32, u16, u32, u8, ptr");
    CHECK_EQ(types_of("_Z1kDhDF16_DF16b"), "f16, f16, bf16");
    CHECK_EQ(types_of("_Z1k6__half13__nv_bfloat167__half2"), "f16, bf16, struct");
    CHECK_EQ(types_of("_Z1kCfCdSt7complexIfES1_IdE"), "c64, c128, c64, c128");
    CHECK_EQ(types_of("_Z1kN6thrust7complexIfEE"), "c64");
    CHECK_EQ(types_of("_Z1kN2ns6__halfE"), "struct"); // not the one of CUDA
}

void check_compounds() {
    CHECK_EQ(types_of("_Z1kPfPKfPVjPrdRiOiA4_i"), "ptr, ptr, ptr, ptr, ptr, ptr, ptr");
    CHECK_EQ(types_of("_Z1kPFvifEPFviE"), "ptr, ptr");
    CHECK_EQ(types_of("_Z1kM1SiMS_KFiiE"), "unknown, unknown");
    CHECK_EQ(types_of("_Z1kDv4_f"), "unknown");
    CHECK_EQ(types_of("_Z1kU3AS1Pf"), "ptr");
    CHECK_EQ(text_of("_Z1kPKPKf", 0), "float const* const*");
    CHECK_EQ(text_of("_Z1kPFvifE", 0), "void (*)(int, float)");
    CHECK_EQ(text_of("_Z1kRA4_Ki", 0), "int const (&) [4]");
    CHECK_EQ(text_of("_Z1kM1SKFiiE", 0), "int (S::*)(int) const");
}

void check_classes_and_substitutions() {
    CHECK_EQ(types_of("_Z6nestedN5Outer5InnerIfEENS_2EnENS0_IPNS0_IiEEEE"),
             "struct, struct, struct");
    CHECK_EQ(text_of("_Z6nestedN5Outer5InnerIfEENS_2EnENS0_IPNS0_IiEEEE", 2),
             "Outer::Inner<Outer::Inner<int>*>");
    CHECK_EQ(types_of("_Z1kPfS_S_"), "ptr, ptr, ptr");
    CHECK_EQ(types_of("_Z1k1AS_PS_S0_"), "struct, struct, ptr, ptr");
    CHECK_EQ(types_of("_Z1kPKFvvE1AS1_"),
             "ptr, struct, struct");                     // const function: one substitution
    CHECK_EQ(text_of("_ZN2ns1kENS_1AES0_", 1), "ns::A"); // the function itself is none
    CHECK_EQ(types_of("_Z1kSsSaIiE"), "struct, struct");
    CHECK_EQ(types_of("_Z1kPfS0_"), "none"); // S0_ isn't there, so no C++ function
    CHECK_EQ(types_of("_Z1kS_"), "none");
    CHECK_EQ(types_of("_Z1kPfS_IiE"), "?"); // arguments on what is no template
}

void check_templates() {
    CHECK_EQ(types_of("_Z4axpyIfEvT_PKS0_PS0_m"), "f32, ptr, ptr, u64");
    CHECK_EQ(types_of("_Z4axpyIyEvT_PKS0_PS0_m"), "u64, ptr, ptr, u64");
    CHECK_EQ(types_of("_Z6sfinaeIfLi0EEvT_"), "f32");
    CHECK_EQ(types_of("_Z4litsILb1ELc99ELy7ELln3ELsn4EEvPf"), "ptr");
    CHECK_EQ(types_of("_Z2enIL4Mode5ES0_EvS0_T0_"), "struct, struct");
    CHECK_EQ(types_of("_Z2fnIXadL_Z3dblfEEEvPf"), "ptr");
    CHECK_EQ(types_of("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6"
                      "detail5ArrayIPcLi1EEEEEviT0_T1_"),
             "i32, struct, struct");
    // packs
    CHECK_EQ(types_of("_Z1kIJifPdEEvDpT_"), "i32, f32, ptr");
    CHECK_EQ(types_of("_Z1kIJifPdEEviDpPKT_c"), "i32, ptr, ptr, ptr, i8");
    CHECK_EQ(types_of("_Z1kIJEEvDpT_"), "");
    CHECK_EQ(types_of("_Z1kIJifEJdhEEvDpT_DpT0_"), "i32, f32, f64, u8");
    CHECK_EQ(types_of("_Z1kIJifEEvDp3BoxIT_E"), "struct, struct");
    CHECK_EQ(text_of("_Z1kIJifEEvDp3BoxIT_E", 1), "Box<float>");
    CHECK_EQ(text_of("_Z1kIJifEEv3TupIJDpT_EE", 0), "Tup<int, float>");
}

/// Where a name doesn't say what a type is, neither do we.
void check_never_guesses() {
    // the type of a closure
    CHECK_EQ(types_of("_Z5applyIZ4mainEUlfE_EvT_PfPS1_i"), "unknown, ptr, ptr, i32");
    CHECK_EQ(types_of("_Z6applyvIZ4mainEUlvE_JifPdZ4mainEUlfE_EEvT_DpT0_"),
             "unknown, i32, f32, ptr, unknown");
    // typename Box<T>::type, T::type, and W<T>, where W may be an alias
    CHECK_EQ(types_of("_Z1kIfEvN3BoxIT_E4typeE"), "unknown");
    CHECK_EQ(types_of("_Z1kI1AEvNT_4typeE"), "unknown");
    CHECK_EQ(types_of("_Z2ttI3BoxfEvT_IT0_ES2_"), "unknown, f32");
    // expressions and decltype, even in the result alone
    CHECK_EQ(types_of("_Z8sfinae_rIfENSt9enable_ifIXeqstT_Li4EEvE4typeES1_"), "?");
    CHECK_EQ(types_of("_Z1kIfEvDTfp_E"), "?");
    // a parameter that isn't there, is no type, or is a pack without expansion
    CHECK_EQ(types_of("_Z1kIfEvT0_"), "none");
    CHECK_EQ(types_of("_Z1kILi4EEvT_"), "?");
    CHECK_EQ(types_of("_Z1kIJfEEvT_"), "?");
    CHECK_EQ(types_of("_Z1kIvEvT_"), "?");
    // an ellipsis
    CHECK_EQ(types_of("_Z1kiz"), "?");
}

void check_not_functions() {
    CHECK_EQ(types_of(""), "none");
    CHECK_EQ(types_of("saxpy"), "none");
    CHECK_EQ(types_of("_Z"), "none");
    CHECK_EQ(types_of("_Z1"), "none");
    CHECK_EQ(types_of("_Z9k"), "none");
    CHECK_EQ(types_of("_Z99999999999999999999k"), "none");
    CHECK_EQ(types_of("_Z1kiE"), "none");
    CHECK_EQ(types_of(std::string_view("_Z1ki\0i", 7)), "none");
    for (const char* endless : {"_Z1fAsrriU", "_Z1fAsrri1aU", "_Z1fIXsrriUEE", "_Z1fDTsrriU_E"})
        CHECK_EQ(types_of(endless), "none"); // on which the runtime's demangler does not end
    CHECK_EQ(types_of("_ZTV3Foo"), "?");     // a vtable: text alone
    CHECK_EQ(read_mangled_name("_ZTV3Foo")->demangled, "vtable for Foo");
}

void check_names() {
    auto name = read_mangled_name("_ZN2ns1kIfLi4EEEvPT_");
    if (!name) return CHECK(false);
    CHECK_EQ(name->demangled, "void ns::k<float, 4>(float*)");
    CHECK_EQ(name->base_name, "k");
    CHECK_EQ(name->qualified_name, "ns::k");
    CHECK_EQ(name->template_arguments, "<float, 4>");
    auto hidden = read_mangled_name("_ZN37_GLOBAL__N__aed22e9b_6_lam_cu__Z3dblf6hiddenEPfi");
    if (!hidden) return CHECK(false);
    CHECK_EQ(hidden->qualified_name, "(anonymous namespace)::hidden");
    CHECK_EQ(hidden->base_name, "hidden");
    CHECK_EQ(hidden->template_arguments, "");
    CHECK_EQ(types_of("_ZN12_GLOBAL__N_11kEPf"), "ptr");
    CHECK_EQ(types_of("_ZL1kPf"), "ptr");
    CHECK_EQ(types_of("_Z1kB5cxx11i"), "i32");
}

/// A short name that stands for a text of 2^60 characters must end soon, without it.
void check_explosion() {
    std::string nested = "1A";
    for (int i = 0; i < 100'000; ++i)
        nested = "P" + nested;
    CHECK_EQ(types_of("_Z1k" + nested), "none");
    std::string doubling = "_Z1k1A"; // each class has the one before it twice, as S_, S1_, S3_, ...
    std::string last = "S_";
    for (int i = 0; i < 18; ++i) {
        doubling += "1" + std::string(1, static_cast<char>('B' + i)) + "I" + last + last + "E";
        last = std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[2 * i + 1] + "_";
        if (i == 2) CHECK_EQ(types_of(doubling), "struct, struct, struct, struct");
    }
    CHECK_EQ(types_of(doubling), "none");
}

} // namespace

int main() {
    check_builtins();
    check_compounds();
    check_classes_and_substitutions();
    check_templates();
    check_never_guesses();
    check_not_functions();
    check_names();
    check_explosion();
    return check::failures();
}
