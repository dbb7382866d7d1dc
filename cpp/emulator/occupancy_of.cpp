#include "emulator/occupancy_of.h"

#include "emulator/device.h"
#include "emulator/failure.h"

namespace cudamod::emulator {

Multiprocessor multiprocessor_of(const KernelView& view) {
    const auto found = multiprocessor(view.device->profile->capability());
    if (!found)
        fail(CUDA_ERROR_NOT_SUPPORTED, "No occupancy rules are known of %s",
             view.device->profile->architecture.c_str());
    return *found;
}

KernelUse use_of(const KernelView& view) {
    KernelUse use;
    use.registers = view.kernel->registers;
    use.static_shared = view.kernel->static_shared;
    use.max_dynamic_shared = static_cast<std::uint32_t>(view.settings->max_dynamic_shared);
    use.max_threads = view.kernel->max_threads;
    use.barriers = view.kernel->barriers;
    return use;
}

int active_blocks(const KernelView& view, int block_size, std::uint64_t dynamic_shared) {
    return max_active_blocks(multiprocessor_of(view), use_of(view),
                             static_cast<std::uint32_t>(block_size), dynamic_shared);
}

} // namespace cudamod::emulator
