#include "check.h"

#include "formats/cubin.h"
#include "formats/elf.h"

#include <cstring>

using namespace cudamod::formats;

namespace {

std::string data;

Result<Cubin> read_file(const std::string& name) {
    const std::string content = check::read_file(data + name);
    return read_cubin(as_bytes(content));
}

void check_architectures() {
    struct Expected {
        const char* name;
        int sm, toolkit;
    };
    for (const Expected& expected :
         {Expected{"/h200/saxpy.sm75.cubin", 75, 135}, Expected{"/h200/saxpy.sm90.cubin", 90, 130},
          Expected{"/h200/saxpy.sm120.cubin", 120, 135}}) {
        auto cubin = read_file(expected.name);
        CHECK_OK(cubin);
        if (!cubin) continue;
        CHECK_EQ(cubin->sm, expected.sm);
        CHECK_EQ(cubin->virtual_sm, expected.sm);
        CHECK_EQ(cubin->toolkit, expected.toolkit);
        CHECK_EQ(cubin->suffix, '\0');
        CHECK_EQ(cubin->abi, 8);
        CHECK(!cubin->relocatable);
        const auto* kernel = cubin->find_kernel("saxpy");
        if (!kernel) return CHECK(false);
        CHECK_EQ(kernel->registers, 10u);
        CHECK_EQ(kernel->parameter_bytes, 24u);
        CHECK(kernel->parameters == (std::vector<CubinParameter>{{0, 4}, {4, 4}, {8, 8}, {16, 8}}));
        CHECK_EQ(kernel->static_shared_bytes, 0u);
        CHECK_EQ(kernel->max_threads_per_block, 1024u);
    }
}

/// features.sm*.cubin: sources in features.cu, compiled for three architectures and by two
/// toolkits.
void check_features(const std::string& name, int sm, char suffix, int abi, bool clusters) {
    auto cubin = read_file(name);
    CHECK_OK(cubin);
    if (!cubin) return;
    CHECK_EQ(cubin->sm, sm);
    CHECK_EQ(cubin->virtual_sm, sm);
    CHECK_EQ(cubin->suffix, suffix);
    CHECK_EQ(cubin->abi, abi);
    CHECK_EQ(cubin->toolkit, abi == 7 ? 129 : 130);
    auto kernel = [&](const char* which) -> CubinKernel {
        const auto* found = cubin->find_kernel(which);
        if (!found) check::report(__FILE__, __LINE__, name + ": no kernel " + which);
        return found ? *found : CubinKernel{};
    };
    const auto bounds = kernel("bounds");
    CHECK(bounds.max_threads == (std::array<std::uint32_t, 3>{96, 1, 1}));
    CHECK_EQ(bounds.max_threads_per_block, 96u);
    CHECK_EQ(bounds.max_cluster_rank, clusters ? 4u : 0u);
    const auto barriers = kernel("barriers");
    CHECK_EQ(barriers.barriers, 6u);
    CHECK_EQ(barriers.parameters.size(), 0u);
    const auto large = kernel("large");
    CHECK(large.parameters == (std::vector<CubinParameter>{{0, 5000}, {5000, 8}, {5008, 1}}));
    CHECK_EQ(large.parameter_bytes, 5009u);
    CHECK_EQ(kernel("local").local_bytes, 400u);
    const auto shared = kernel("shared");
    CHECK_EQ(shared.static_shared_bytes, 400u);
    CHECK_EQ(shared.constant_bytes, 44u);
    if (clusters) {
        const auto cluster = kernel("cluster");
        CHECK(cluster.required_cluster == (std::array<std::uint32_t, 3>{2, 1, 1}));
        CHECK(cluster.required_threads == (std::array<std::uint32_t, 3>{64, 2, 1}));
        CHECK_EQ(cluster.max_threads_per_block, 128u);
        CHECK_EQ(cluster.blocks_are_clusters, abi == 8); // CUDA 13's
    }
    auto variable = [&](const char* which) -> CubinVariable {
        const auto* found = cubin->find_variable(which);
        if (!found) check::report(__FILE__, __LINE__, name + ": no variable " + which);
        return found ? *found : CubinVariable{};
    };
    const auto zeros = variable("zeros");
    CHECK_EQ(zeros.size, 4000u);
    CHECK(zeros.space == VariableSpace::Global && zeros.initial.empty() && !zeros.managed);
    const auto five = variable("five");
    CHECK(five.initial.size() == 4 && five.initial[0] == std::byte{5});
    const auto weights = variable("weights");
    CHECK_EQ(weights.size, 40u);
    CHECK(weights.space == VariableSpace::Constant);
    const auto three = variable("three");
    CHECK(three.space == VariableSpace::Constant && three.initial.size() == 4 &&
          three.initial[0] == std::byte{3});
    CHECK(variable("managed").managed);
}

void check_malformed() {
    const std::string good = check::read_file(data + "/h200/reduce_shared.sm90.cubin");
    auto reads = [](const std::string& bytes) { return read_cubin(as_bytes(bytes)); };
    auto patched = [&](std::size_t at, auto value) {
        std::string bad = good;
        std::memcpy(bad.data() + at, &value, sizeof(value));
        return reads(bad);
    };
    CHECK_FAILS(reads(""), "truncated header (0 bytes)");
    CHECK_FAILS(reads("hello"), "truncated header");
    CHECK_FAILS(reads(std::string(64, 'x')), "not a little-endian 64-bit ELF");
    CHECK_FAILS(reads(good.substr(0, 2000)), "reach beyond the end");
    CHECK_FAILS(patched(18, std::uint16_t{62}), "machine 62");
    CHECK_FAILS(patched(8, std::uint8_t{9}), "ABI version 9");
    CHECK_FAILS(patched(40, UINT64_MAX), "section header table");
    CHECK_FAILS(patched(58, std::uint16_t{63}), "section headers of 63 bytes");
    CHECK_FAILS(patched(60, std::uint16_t{0xffff}), "65535 entries");
    // Many sections over the same bytes would cost their sum.
    std::string overlapping = good;
    const auto table = *read<std::uint64_t>(as_bytes(good), 40);
    for (std::size_t i = 5; i < 12; ++i) {
        const std::uint64_t whole[2] = {0, good.size()};
        std::memcpy(overlapping.data() + table + i * 64 + 24, whole, sizeof(whole));
    }
    CHECK_FAILS(reads(overlapping), "sections overlap");
    // Nothing but the header is an image without kernels.
    auto empty = patched(40, std::uint64_t{0});
    CHECK(empty && empty->kernels.empty() && empty->variables.empty() && empty->sm == 90);

    auto elf = read_elf(as_bytes(good));
    if (!elf) return CHECK(false);
    const auto* info = elf->find(".nv.info.reduce_shared");
    if (!info) return CHECK(false);
    // A first record that claims more payload than the section has.
    std::string bad = good;
    bad[info->offset] = 4;
    bad[info->offset + 2] = bad[info->offset + 3] = '\xff';
    CHECK_FAILS(reads(bad), "kernel 'reduce_shared': section .nv.info.reduce_shared ends inside");
    for (std::size_t at = info->offset; at < info->offset + info->size; ++at) {
        if (good[at] != 0x17 || good[at - 1] != 4) continue;
        bad = good;
        bad[at + 7] = 9; // the ordinal of the first parameter record
        CHECK_FAILS(reads(bad), "skip or repeat");
        bad = good;
        bad[at + 10] = '\xff'; // its offset
        CHECK_FAILS(reads(bad), "outside the parameter block of 20 bytes");
        break;
    }
}

} // namespace

int main(int, char** arguments) {
    data = arguments[1];
    check_architectures();
    check_features("/cubins/features.sm75.cubin", 75, '\0', 8, false);
    check_features("/cubins/features.sm90a.cubin", 90, 'a', 8, true);
    check_features("/cubins/features.sm100f.cubin", 100, 'f', 8, true);
    check_features("/cubins/features.sm80.abi7.cubin", 80, '\0', 7, false);
    check_features("/cubins/features.sm90a.abi7.cubin", 90, 'a', 7, true);
    check_malformed();
    return check::failures();
}
