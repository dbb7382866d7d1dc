#include "emulator/ptx/target.h"

#include <array>

namespace cudamod::emulator::ptx {
namespace {

struct Architecture {
    int capability;
    int first_isa; ///< first PTX version with this .target
    bool specific; ///< sm_NNa exists
};

constexpr std::array<Architecture, 26> kArchitectures{{
    {20, 20, false}, {21, 20, false}, {30, 30, false}, {32, 40, false}, {35, 31, false},
    {37, 41, false}, {50, 40, false}, {52, 41, false}, {53, 42, false}, {60, 50, false},
    {61, 50, false}, {62, 50, false}, {70, 60, false}, {72, 61, false}, {75, 63, false},
    {80, 70, false}, {86, 71, false}, {87, 74, false}, {88, 90, false}, {89, 78, false},
    {90, 78, true},  {100, 86, true}, {103, 88, true}, {110, 90, true}, {120, 87, true},
    {121, 88, true},
}};

std::string dotted(int isa) {
    return std::to_string(isa / 10) + "." + std::to_string(isa % 10);
}

bool known_option(std::string_view name) {
    return name == "debug" || name == "texmode_unified" || name == "texmode_independent";
}

void architecture(TokenStream& tokens, std::string_view name, const Target& device,
                  syntax::Module& module) {
    const std::string shown = "'" + std::string(name) + "'";
    if (name.substr(0, 3) != "sm_") tokens.fail("Unsupported .target " + shown);
    std::string_view digits = name.substr(3);
    char suffix = 0;
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
        suffix = digits.back();
        digits.remove_suffix(1);
    }
    int capability = 0;
    for (const char c : digits) {
        if (c < '0' || c > '9' || capability > 999) tokens.fail("Unsupported .target " + shown);
        capability = capability * 10 + (c - '0');
    }
    const Architecture* found = nullptr;
    for (const Architecture& candidate : kArchitectures) {
        if (candidate.capability == capability) found = &candidate;
    }
    if (found == nullptr || (suffix != 0 && !found->specific))
        tokens.fail("Unsupported .target " + shown);
    if (module.isa < found->first_isa) {
        tokens.fail("PTX .version " + dotted(module.isa) + " does not support .target " +
                    std::string(name));
    }
    const std::string mine = "sm_" + std::to_string(device.capability);
    if (capability > device.capability) {
        tokens.fail("SM version specified by .target is higher than default SM version assumed (" +
                    std::string(name) + ", the device is " + mine + ")");
    }
    const bool same_family = capability / 10 == device.capability / 10;
    if ((suffix == 'a' && capability != device.capability) || (suffix == 'f' && !same_family)) {
        tokens.fail(".target " + shown + " is not compatible with the device, which is " + mine);
    }
    module.target = capability;
    module.target_suffix = suffix;
}

} // namespace

void parse_version(TokenStream& tokens, const Target& device, syntax::Module& module) {
    if (!tokens.accept_dotted(".version"))
        tokens.fail("Missing .version directive at start of file");
    const Token version = tokens.peek();
    int parts[2] = {0, 0};
    int part = 0;
    bool ok = version.kind == TokenKind::Double;
    for (const char c : version.text) {
        if (c == '.' && part == 0) {
            part = 1;
        } else if (c >= '0' && c <= '9' && parts[part] < 1000) {
            parts[part] = parts[part] * 10 + (c - '0');
        } else {
            ok = false;
        }
    }
    if (!ok || part == 0 || parts[1] > 9) tokens.unexpected("a version such as 8.0");
    module.isa = parts[0] * 10 + parts[1];
    if (module.isa > device.newest_isa) {
        throw LoadError(version.line,
                        "Unsupported .version " + std::string(version.text) +
                            "; current version is '" + dotted(device.newest_isa) + "'",
                        LoadStatus::UnsupportedVersion);
    }
    tokens.take();
}

void parse_target(TokenStream& tokens, const Target& device, syntax::Module& module) {
    if (!tokens.accept_dotted(".target")) tokens.fail("Missing .target directive after .version");
    module.target_line = tokens.line();
    do {
        const Token name = tokens.peek();
        if (name.kind != TokenKind::Identifier) tokens.unexpected("a target");
        if (!known_option(name.text)) {
            if (module.target != 0) tokens.fail("a second architecture in .target");
            architecture(tokens, name.text, device, module);
        }
        tokens.take();
    } while (tokens.accept(","));
    if (module.target == 0) tokens.fail("Unsupported .target: no architecture named");
}

} // namespace cudamod::emulator::ptx
