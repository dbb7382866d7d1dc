#include "launch/attributes.h"

#include "driver/library.h"
#include "driver/status.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace cudamod::launch {

namespace {

constexpr KnownAttribute kKnown[] = {
    {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, "access_policy_window", 0, false},
    {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, "is_cooperative", 0, true},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, "cluster", 0, true},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
     "cluster_scheduling_policy_preference", 0, false},
    {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, "programmatic_stream_serialization", 0,
     false},
    {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, "programmatic_event", 0, true},
    {CU_LAUNCH_ATTRIBUTE_PRIORITY, "priority", 0, false},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, "mem_sync_domain_map", 0, false},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, "mem_sync_domain", 0, false},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, "preferred_cluster", 12080, true},
    {CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, "launch_completion_event", 12030, true},
    {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, "preferred_shared_memory_carveout",
     12050, false},
};

CUlaunchAttribute& add(std::vector<CUlaunchAttribute>& native, int id) {
    CUlaunchAttribute& attribute = native.emplace_back();
    std::memset(&attribute, 0, sizeof attribute);
    attribute.id = static_cast<CUlaunchAttributeID>(id);
    return attribute;
}

} // namespace

const KnownAttribute* known_attribute(int id) {
    for (const KnownAttribute& known : kKnown)
        if (known.id == id) return &known;
    return nullptr;
}

void append_native(const Attributes& given, std::vector<CUlaunchAttribute>& native) {
    if (given.preferred_cluster) {
        auto& value = add(native, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION).value;
        value.preferredClusterDim.x = given.preferred_cluster->x;
        value.preferredClusterDim.y = given.preferred_cluster->y;
        value.preferredClusterDim.z = given.preferred_cluster->z;
    }
    if (given.cluster_scheduling_policy_preference)
        add(native, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
            .value.clusterSchedulingPolicyPreference =
            static_cast<CUclusterSchedulingPolicy>(*given.cluster_scheduling_policy_preference);
    if (const auto& recorded = given.programmatic_event) {
        auto& value = add(native, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT).value.programmaticEvent;
        value.event = *recorded->event;
        value.flags = recorded->flags;
        value.triggerAtBlockStart = recorded->trigger_at_block_start;
    }
    if (const auto& recorded = given.launch_completion_event) {
        auto& value =
            add(native, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT).value.launchCompletionEvent;
        value.event = *recorded->event;
        value.flags = recorded->flags;
    }
    if (given.priority) add(native, CU_LAUNCH_ATTRIBUTE_PRIORITY).value.priority = *given.priority;
    if (given.mem_sync_domain)
        add(native, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).value.memSyncDomain =
            static_cast<CUlaunchMemSyncDomain>(*given.mem_sync_domain);
    if (const auto& map = given.mem_sync_domain_map) {
        auto& value = add(native, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).value.memSyncDomainMap;
        value.default_ = map->default_;
        value.remote = map->remote;
    }
    if (const auto& window = given.access_policy_window) {
        auto& value =
            add(native, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).value.accessPolicyWindow;
        value.base_ptr = reinterpret_cast<void*>(window->base_ptr);
        value.num_bytes = window->num_bytes;
        value.hitRatio = window->hit_ratio;
        value.hitProp = static_cast<CUaccessProperty>(window->hit_prop);
        value.missProp = static_cast<CUaccessProperty>(window->miss_prop);
    }
    if (given.preferred_shared_memory_carveout)
        add(native, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).value.sharedMemCarveout =
            *given.preferred_shared_memory_carveout;
    for (const RawAttribute& raw : given.raw)
        std::memcpy(&add(native, raw.id).value, raw.bytes.data(), raw.size);
}

void require_driver_for(const Attributes& given) {
    auto require = [](int id) {
        const KnownAttribute* known = known_attribute(id);
        if (known && known->needed > driver::version())
            driver::raise_too_old(std::string("launch attribute '") + known->name + "'",
                                  known->needed);
    };
    if (given.preferred_cluster) require(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
    if (given.launch_completion_event) require(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
    if (given.preferred_shared_memory_carveout)
        require(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    for (const RawAttribute& raw : given.raw)
        require(raw.id);
}

void require_context_of(const Attributes& given, CUcontext context) {
    auto require = [&](const std::optional<RecordedEvent>& recorded, const char* name) {
        if (!recorded) return;
        const auto& box = handles::box_of<handles::EventBox>(recorded->event);
        if (box.context != context)
            throw std::invalid_argument(std::string("LaunchConfig.") + name +
                                        ": the event belongs to another context than the stream "
                                        "(device " +
                                        std::to_string(box.device) + ")");
    };
    require(given.programmatic_event, "programmatic_event");
    require(given.launch_completion_event, "launch_completion_event");
}

} // namespace cudamod::launch
