#include "check.h"

#include "emulator/occupancy.h"

using namespace cudamod::emulator;

namespace {

KernelUse use_of(const Multiprocessor& mp, std::uint32_t registers, std::uint32_t static_shared) {
    KernelUse use;
    use.registers = registers;
    use.static_shared = static_shared;
    use.max_dynamic_shared = default_max_dynamic_shared(mp, static_shared);
    return use;
}

void check_table() {
    for (int sm : {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}) {
        CHECK(multiprocessor(sm).has_value());
    }
    CHECK(!multiprocessor(0) && !multiprocessor(70) && !multiprocessor(91));
    CHECK_EQ(multiprocessor(75)->reserved_shared, 0u);
    CHECK_EQ(multiprocessor(80)->reserved_shared, 1024u);
    CHECK_EQ(multiprocessor(90)->shared_per_block_optin, 232448u); // device attribute 97 of an H200
    CHECK_EQ(multiprocessor(90)->shared_bytes, 233472u);           // device attribute 81
}

void check_limits() {
    const auto mp = *multiprocessor(90);
    auto use = use_of(mp, 10, 0);
    CHECK_EQ(max_active_blocks(mp, use, 0, 0), 0);
    CHECK_EQ(max_active_blocks(mp, use, 1025, 0), 0);
    CHECK_EQ(max_active_blocks(mp, use, 1, 0), 32);                 // blocks
    CHECK_EQ(max_active_blocks(mp, use, 1000, 0), 2);               // warps
    CHECK_EQ(max_active_blocks(mp, use_of(mp, 255, 0), 256, 0), 1); // registers
    CHECK_EQ(max_active_blocks(mp, use_of(mp, 255, 0), 257, 0), 0);
    CHECK_EQ(max_active_blocks(mp, use_of(mp, 256, 0), 32, 0), 0);
    CHECK_EQ(max_active_blocks(mp, use_of(mp, 0, 0), 64, 0), 32);
    CHECK_EQ(max_active_blocks(mp, use, 32, 49152), 4); // shared memory
    CHECK_EQ(max_active_blocks(mp, use, 32, 49153), 0); // not opted in
    use.max_dynamic_shared = 232448;
    CHECK_EQ(max_active_blocks(mp, use, 32, 232448), 1);
    use.static_shared = 1;
    CHECK_EQ(max_active_blocks(mp, use, 32, 232448), 0);
    use = use_of(mp, 10, 0);
    use.barriers = 16;
    CHECK_EQ(max_active_blocks(mp, use, 32, 0), 4);
    use.max_threads = 64; // launch bounds don't matter to the query
    CHECK_EQ(max_active_blocks(mp, use, 1024, 0), 2);
}

void check_potential() {
    const auto mp = *multiprocessor(90);
    auto use = use_of(mp, 10, 0);
    auto none = [](int) { return std::uint64_t{0}; };
    auto best = potential_block_size(mp, use, 132, none);
    CHECK(best.block_size == 1024 && best.grid_size == 264);
    best = potential_block_size(mp, use, 132, none, 100);
    CHECK(best.block_size == 64 && best.grid_size == 32 * 132);
    best = potential_block_size(mp, use, 132, none, 20);
    CHECK(best.block_size == 20 && best.grid_size == 32 * 132);
    // 64 bytes a thread: the functor is asked about each size
    best = potential_block_size(mp, use, 1, [](int size) { return std::uint64_t(size) * 64; });
    CHECK_EQ(best.block_size, 512); // 1,024 may not run, 2 blocks of 768 are less than 4 of 512
    CHECK_EQ(best.grid_size, 4);
    best = potential_block_size(mp, use, 1, [](int) { return std::uint64_t{1} << 40; });
    CHECK(best.block_size == 0 && best.grid_size == 0);
}

void check_available() {
    const auto mp = *multiprocessor(90);
    const auto use = use_of(mp, 10, 4);
    CHECK_EQ(available_dynamic_shared(mp, use, 8, 128).value_or(1), 29180u);
    CHECK_EQ(available_dynamic_shared(mp, use, 1, 128).value_or(1), 49148u);
    CHECK(!available_dynamic_shared(mp, use, 17, 128)); // 16 fit
    CHECK(!available_dynamic_shared(mp, use, 0, 128));
    CHECK(!available_dynamic_shared(mp, use, 1, 0));
}

} // namespace

int main() {
    check_table();
    check_limits();
    check_potential();
    check_available();
    return check::failures();
}
