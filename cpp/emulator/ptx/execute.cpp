/// execute(): a launch from its parameters to its end.
#include "emulator/ptx/worker.h"

#include <cstring>
#include <latch>
#include <thread>

namespace cudamod::emulator::ptx {
namespace {

/// The pool with what only the launch knows: addresses of variables, the layout of shared memory.
std::vector<std::uint64_t> patched_constants(const Launch& launch, const Code& code,
                                             const EntryCode& entry) {
    std::vector<std::uint64_t> constants = code.constants;
    for (const Patch& patch : code.patches) {
        std::uint64_t value = 0;
        switch (patch.kind) {
        case Patch::Kind::Variable:
            value = launch.variable_addresses[patch.index];
            break;
        case Patch::Kind::Shared: {
            const std::uint32_t offset = entry.shared_offsets[patch.index];
            value = offset == ~0u ? 0 : offset;
            break;
        }
        case Patch::Kind::DynamicShared:
            value = entry.static_shared;
            break;
        }
        value += static_cast<std::uint64_t>(patch.addend) + (patch.generic ? kSharedWindow : 0);
        std::uint64_t* lanes = constants.data() + patch.offset / sizeof(std::uint64_t);
        for (unsigned l = 0; l < kLanes; ++l)
            lanes[l] = value;
    }
    return constants;
}

void run_worker(Grid& grid, unsigned number, unsigned count) {
    try {
        Worker worker(grid);
        if (grid.launch.cooperative) {
            worker.run_together(number, count);
        } else {
            worker.run_all();
        }
    } catch (const FaultError& error) {
        const std::lock_guard lock(grid.fault_mutex);
        if (!grid.fault) grid.fault = error.fault;
        grid.stop = true;
    }
}

void start_thread(const Launch& launch, std::function<void()> job) {
    if (launch.start_thread)
        launch.start_thread(std::move(job));
    else
        std::thread(std::move(job)).detach();
}

bool whole_clusters(const Launch& launch, const Dim3& cluster) {
    return launch.grid.x % cluster.x == 0 && launch.grid.y % cluster.y == 0 &&
           launch.grid.z % cluster.z == 0;
}

} // namespace

std::optional<Fault> execute(const Launch& launch, Memory& memory,
                             const std::function<void(std::string_view)>& print) {
    const Code& code = launch.program->code();
    const EntryCode& entry = code.entry_codes.at(launch.entry);
    const Entry& kernel = code.entries[launch.entry];

    Launch complete = launch;
    std::vector<std::byte> parameters;
    if (launch.parameter_bytes < kernel.parameter_bytes) {
        parameters.resize(kernel.parameter_bytes);
        if (launch.parameter_bytes != 0)
            std::memcpy(parameters.data(), launch.parameters, launch.parameter_bytes);
        complete.parameters = parameters.data();
    }
    std::vector<std::uint64_t> constants;
    if (!code.patches.empty()) constants = patched_constants(launch, code, entry);

    Grid grid{complete,
              memory,
              print,
              code,
              entry,
              reinterpret_cast<const std::byte*>(code.patches.empty() ? code.constants.data()
                                                                      : constants.data())};
    grid.shared_bytes = entry.static_shared + launch.dynamic_shared_bytes;
    const Dim3& asked = launch.cluster.x != 0 ? launch.cluster : kernel.required_cluster;
    if (asked.x != 0) grid.cluster = asked;
    if (!whole_clusters(launch, grid.cluster)) {
        return Fault{FaultKind::IllegalInstruction,
                     "the grid of kernel '" + kernel.name + "' is not made of whole clusters"};
    }

    const std::uint64_t clusters =
        grid.blocks() / (std::uint64_t{grid.cluster.x} * grid.cluster.y * grid.cluster.z);
    const auto count =
        static_cast<unsigned>(std::min<std::uint64_t>(std::max(launch.threads, 1u), clusters));
    std::latch ended(count);
    for (unsigned n = 1; n < count; ++n) {
        start_thread(launch, [&grid, &ended, n, count] {
            run_worker(grid, n, count);
            ended.count_down();
        });
    }
    run_worker(grid, 0, count);
    ended.arrive_and_wait();
    return grid.fault;
}

} // namespace cudamod::emulator::ptx
