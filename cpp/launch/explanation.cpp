#include "launch/explanation.h"

#include "driver/library.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"

#include <algorithm>
#include <limits>

namespace cudamod::launch {

namespace {

constexpr unsigned kPortableClusterBlocks = 8;

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

/// One refused launch, and what the driver says of its kernel and its device.
class Refusal {
  public:
    Refusal(CUresult status, const Kernel& kernel, const Config& config,
            const handles::StreamBox& stream)
        : status_(status), kernel_(kernel), shape_(config.shape()), stream_(stream) {}

    std::string dimensions() const {
        struct Axis {
            const char* name;
            unsigned value;
            CUdevice_attribute attribute;
        };
        Dim3 blocks = shape_.blocks();
        const Axis axes[] = {{"block x", shape_.block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
                             {"block y", shape_.block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
                             {"block z", shape_.block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
                             {"grid x", blocks.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
                             {"grid y", blocks.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
                             {"grid z", blocks.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z}};
        for (const Axis& axis : axes)
            if (int most = device(axis.attribute);
                most > 0 && axis.value > static_cast<unsigned>(most))
                return std::string(axis.name) + " = " + number(axis.value) +
                       " exceeds the device's limit of " + std::to_string(most);
        int threads = kernel(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        if (threads > 0 && shape_.block.product() > static_cast<std::uint64_t>(threads))
            return "block " + shape_.block.text() + " = " + number(shape_.block.product()) +
                   " threads exceeds the kernel's limit of " + std::to_string(threads);
        return {};
    }

    std::string cluster() const {
        if (shape_.cluster && device(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
            return "thread block clusters need compute capability 9.0";
        Dim3 required{dimension(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                      dimension(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                      dimension(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
        bool has_required = required != Dim3{};
        if (has_required && shape_.cluster && *shape_.cluster != required)
            return "the kernel was compiled for clusters of " + required.text() + ", not " +
                   shape_.cluster->text();
        Dim3 blocks = shape_.blocks();
        if (has_required &&
            (blocks.x % required.x || blocks.y % required.y || blocks.z % required.z))
            return "the kernel was compiled for clusters of " + required.text() +
                   ", of which the grid of " + blocks.text() + " blocks is no multiple";
        if (!has_required && !shape_.cluster && kernel(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET))
            return "the kernel was compiled for clusters whose size the launch gives: "
                   "LaunchConfig.cluster";
        if (!shape_.cluster) return {};
        return cluster_size();
    }

    std::string cooperation() const {
        if (!shape_.cooperative) return {};
        if (!device(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
            return "the device has no cooperative launch";
        if (status_ != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) return {};
        try {
            return number(shape_.blocks().product()) + " blocks exceed the " +
                   number(most_blocks_at_once(kernel_, shape_, stream_)) +
                   " that can run at once, as a cooperative launch must";
        } catch (const driver::DriverError&) {
            return {};
        }
    }

    std::string attributes() const {
        if (!shape_.attributes) return {};
        const Attributes& given = *shape_.attributes;
        if (const auto& window = given.access_policy_window)
            if (int most = device(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
                window->num_bytes > static_cast<std::uint64_t>(std::max(most, 0)))
                return "an access policy window of " + number(window->num_bytes) +
                       " bytes exceeds the device's limit of " + std::to_string(most);
        if (const auto& map = given.mem_sync_domain_map)
            if (int count = device(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
                std::max(map->default_, map->remote) >= count)
                return "the memory synchronisation domains (" + number(map->default_) + ", " +
                       number(map->remote) + ") must be below the device's " +
                       std::to_string(count);
        if (given.preferred_cluster)
            if (std::uint64_t size = given.preferred_cluster->product();
                size > kPortableClusterBlocks &&
                !kernel(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED))
                return too_large("preferred cluster", size);
        if (std::string why = priority(); !why.empty()) return why;
        for (const RawAttribute& raw : given.raw)
            if (!known_attribute(raw.id))
                return "launch attribute " + std::to_string(raw.id) +
                       " may be unknown to this driver, which supports CUDA " +
                       driver::version_text(driver::version());
        return {};
    }

  private:
    int device(CUdevice_attribute attribute) const {
        int value = 0;
        bool known =
            driver::table.cuDeviceGetAttribute(&value, attribute, stream_.device) == CUDA_SUCCESS;
        return known ? value : 0;
    }
    int kernel(CUfunction_attribute attribute) const {
        int value = 0;
        bool known = driver::table.cuKernelGetAttribute(&value, attribute, kernel_.raw(),
                                                        stream_.device) == CUDA_SUCCESS;
        return known ? value : 0;
    }
    unsigned dimension(CUfunction_attribute attribute) const {
        return static_cast<unsigned>(std::max(kernel(attribute), 1));
    }

    static std::string too_large(const char* what, std::uint64_t blocks) {
        return std::string("a ") + what + " of more than " + number(kPortableClusterBlocks) +
               " blocks (here " + number(blocks) +
               ") needs the kernel's attribute non_portable_cluster_size_allowed";
    }

    std::string cluster_size() const {
        std::uint64_t size = shape_.cluster->product();
        if (size > kPortableClusterBlocks &&
            !kernel(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED))
            return too_large("cluster", size);
        // Asked with a cluster of one block: the query refuses a cluster that is too large itself.
        Shape asked{shape_.cluster_or_one(), shape_.block, {}, shape_.shmem_size};
        Config::Native native;
        Config(asked).copy_to(native, stream_.raw);
        int most = 0;
        if (driver::table.cuOccupancyMaxPotentialClusterSize(
                &most, reinterpret_cast<CUfunction>(kernel_.raw()), &native.config) !=
                CUDA_SUCCESS ||
            size <= static_cast<std::uint64_t>(most))
            return {};
        return "a cluster of " + number(size) + " blocks exceeds the " + std::to_string(most) +
               " that fit with this kernel, block and shared memory";
    }

    std::string priority() const {
        int least = 0, greatest = 0;
        if (!shape_.attributes->priority ||
            driver::table.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS)
            return {};
        int asked = *shape_.attributes->priority;
        if (asked <= least && asked >= greatest) return {};
        return "priority " + std::to_string(asked) + " is outside the device's " +
               std::to_string(greatest) + " .. " + std::to_string(least);
    }

    CUresult status_;
    const Kernel& kernel_;
    const Shape& shape_;
    const handles::StreamBox& stream_;
};

} // namespace

std::uint64_t most_blocks_at_once(const Kernel& kernel, const Shape& shape,
                                  const handles::StreamBox& stream) {
    handles::ContextScope scope(stream.context);
    auto* function = reinterpret_cast<CUfunction>(kernel.raw());
    auto subject = [&] { return "kernel '" + kernel.name() + "'"; };
    if (shape.cluster) {
        int clusters = 0;
        Config::Native native;
        Shape plain{shape.grid, shape.block, shape.cluster, shape.shmem_size};
        Config(plain).copy_to(native, stream.raw);
        driver::check(
            driver::table.cuOccupancyMaxActiveClusters(&clusters, function, &native.config),
            "cuOccupancyMaxActiveClusters", subject);
        return static_cast<unsigned>(clusters) * shape.cluster->product();
    }
    int blocks = 0, multiprocessors = 0;
    driver::check(driver::table.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                      &blocks, function, static_cast<int>(shape.block.product()), shape.shmem_size),
                  "cuOccupancyMaxActiveBlocksPerMultiprocessor", subject);
    driver::check(driver::table.cuDeviceGetAttribute(
                      &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, stream.device),
                  "cuDeviceGetAttribute", "multiprocessor count");
    return std::uint64_t{static_cast<unsigned>(blocks)} * static_cast<unsigned>(multiprocessors);
}

std::string explain(CUresult status, const Kernel& kernel, const Config& config,
                    const handles::StreamBox& stream) {
    Refusal refusal(status, kernel, config, stream);
    for (auto part :
         {&Refusal::dimensions, &Refusal::cluster, &Refusal::cooperation, &Refusal::attributes})
        if (std::string why = (refusal.*part)(); !why.empty()) return why;
    return {};
}

} // namespace cudamod::launch
