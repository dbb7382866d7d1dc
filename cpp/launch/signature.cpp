#include "launch/signature.h"

#include "formats/mangled_name.h"

#include <string>

namespace cudamod::launch {

namespace {

Type type_of_parameter(const formats::PtxParameter& parameter) {
    auto size = static_cast<std::uint32_t>(parameter.size);
    if (parameter.is_pointer && size == 8) return *type_of_name("ptr");
    if (parameter.is_array) return {TypeClass::Bytes, true, size, 0, 0};
    switch (parameter.type_class) {
    case formats::PtxClass::Unsigned:
    case formats::PtxClass::Signed:
        return *type_of_name("b" + std::to_string(8 * size));
    case formats::PtxClass::Float:
        if (parameter.type == "f16") return *type_of_name("f16");
        if (parameter.type == "bf16") return *type_of_name("bf16");
        if (parameter.type == "f32") return *type_of_name("f32");
        if (parameter.type == "f64") return *type_of_name("f64");
        return unknown_of_size(size);
    default:
        return unknown_of_size(size);
    }
}

Type type_of_scalar(formats::ScalarType scalar) {
    // A class or an enumeration: only the driver knows its size, and what it is nobody does.
    return type_of_name(formats::name(scalar)).value_or(Type{TypeClass::Unknown, false, 0, 0, 0});
}

} // namespace

std::vector<Type> types_of_entry(const formats::PtxEntry& entry) {
    std::vector<Type> types;
    types.reserve(entry.parameters.size());
    for (const formats::PtxParameter& parameter : entry.parameters)
        types.push_back(type_of_parameter(parameter));
    return types;
}

std::optional<std::vector<Type>> infer_types(std::string_view kernel,
                                             const formats::PtxEntry* entry) {
    std::optional<std::vector<Type>> from_ptx;
    if (entry) from_ptx = types_of_entry(*entry);
    auto mangled = formats::read_mangled_name(kernel);
    if (!mangled || !mangled->parameter_types) return from_ptx;
    std::vector<Type> types;
    for (const formats::ParameterType& parameter : *mangled->parameter_types)
        types.push_back(type_of_scalar(parameter.type));
    if (!from_ptx) return types;
    if (types.size() != from_ptx->size()) return from_ptx;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const Type& seen = (*from_ptx)[i];
        if (types[i].size == 0)
            types[i] = seen;
        else if (types[i].size != seen.size)
            return from_ptx;
    }
    return types;
}

} // namespace cudamod::launch
