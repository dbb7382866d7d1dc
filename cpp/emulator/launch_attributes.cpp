#include "emulator/launch_attributes.h"

#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/failure.h"
#include "emulator/settings.h"
#include "emulator/stream.h"

#include <algorithm>
#include <cstring>

namespace cudamod::emulator {
namespace {

/// The CUDA version whose header first has the attribute; 0 for an unknown one.
int introduced(int id) {
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return 12000;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return 12030;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return 12040;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return 12050;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        return 12080;
    case 16: // NVLink utilisation
        return 13000;
    default:
        return 0;
    }
}

void require(bool kept, int id, const char* rule) {
    if (!kept) fail(CUDA_ERROR_INVALID_VALUE, "Launch attribute %d: %s", id, rule);
}

template <class Dimensions>
std::array<std::uint32_t, 3> dimensions(const Dimensions& value, int id) {
    require(value.x && value.y && value.z, id, "cluster dimensions must be nonzero");
    return {value.x, value.y, value.z};
}

CUevent recordable(CUevent handle, int flags, int id) {
    const auto event = find_event(handle);
    require(!event->timing(), id, "the event must have been made without timing");
    require(!event->shared, id, "the event must not be one for other processes");
    require(!(flags & CU_EVENT_RECORD_EXTERNAL), id, "the event can't be recorded as external");
    return handle;
}

void read_one(const CUlaunchAttribute& attribute, const Profile& profile, ValidLaunch& launch) {
    const int id = static_cast<int>(attribute.id);
    const CUlaunchAttributeValue& value = attribute.value;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        launch.cluster = dimensions(value.clusterDim, id);
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        launch.preferred_cluster = dimensions(value.preferredClusterDim, id);
        break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch.cooperative = value.cooperative != 0;
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        launch.programmatic_event =
            recordable(value.programmaticEvent.event, value.programmaticEvent.flags, id);
        break;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        launch.completion_event =
            recordable(value.launchCompletionEvent.event, value.launchCompletionEvent.flags, id);
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        require(static_cast<unsigned>(value.clusterSchedulingPolicyPreference) <=
                    CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING,
                id, "the policy is unknown");
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        require(value.priority <= kLeastPriority && value.priority >= kGreatestPriority, id,
                "the priority is out of range");
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        require(static_cast<unsigned>(value.memSyncDomain) <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE, id,
                "the domain is unknown");
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        require(std::max(value.memSyncDomainMap.default_, value.memSyncDomainMap.remote) <
                    profile.attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT),
                id, "the device has not as many domains");
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
        const CUaccessPolicyWindow& window = value.accessPolicyWindow;
        require(window.hitRatio >= 0 && window.hitRatio <= 1, id, "the hit ratio is out of range");
        require(static_cast<unsigned>(window.hitProp) <= CU_ACCESS_PROPERTY_PERSISTING &&
                    static_cast<unsigned>(window.missProp) <= CU_ACCESS_PROPERTY_STREAMING,
                id, "the property is unknown, or none of misses");
        require(window.num_bytes <= static_cast<std::size_t>(profile.attribute(
                                        CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)),
                id, "the window is too large");
        break;
    }
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        require(value.sharedMemCarveout <= 100, id, "the carveout is in percent");
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        fail(CUDA_ERROR_NOT_SUPPORTED, "Kernel nodes that the device updates are not emulated");
    default:
        break;
    }
}

} // namespace

void read_attributes(const LaunchRequest& request, const Device& device, ValidLaunch& launch) {
    if (request.attribute_count && !request.attributes) {
        fail(CUDA_ERROR_INVALID_VALUE, "%u launch attributes were announced and none given",
             request.attribute_count);
    }
    for (unsigned index = 0; index < request.attribute_count; ++index) {
        const CUlaunchAttribute& attribute = request.attributes[index];
        const int since = introduced(static_cast<int>(attribute.id));
        if (!since || since > settings().driver_version) {
            fail(CUDA_ERROR_INVALID_VALUE, "Launch attribute %d is unknown to this driver",
                 static_cast<int>(attribute.id));
        }
        read_one(attribute, *device.profile, launch);
        launch.attributes.push_back(attribute);
    }
}

void require_preferred_cluster(const KernelView& view, const ValidLaunch& launch) {
    const auto& preferred = launch.preferred_cluster;
    if (!preferred[0] || !launch.cluster[0]) return;
    for (int axis = 0; axis < 3; ++axis) {
        const bool multiple = axis == 2 ? preferred[axis] == launch.cluster[axis]
                                        : preferred[axis] % launch.cluster[axis] == 0;
        if (!multiple || launch.grid[axis] % preferred[axis]) {
            fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                 "A preferred cluster of (%u,%u,%u) fits neither cluster nor grid (kernel '%s')",
                 preferred[0], preferred[1], preferred[2], view.kernel->name.c_str());
        }
    }
}

} // namespace cudamod::emulator
