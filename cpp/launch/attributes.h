#pragma once

#include "handles/event.h"
#include "launch/dim3.h"

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudamod::launch {

/// An event that the launch records: when all blocks have triggered it, or have begun.
struct RecordedEvent {
    handles::EventHandle event;
    bool blocking_sync = false; // how the event was made
    int flags = 0;              // of cuEventRecordWithFlags
    bool trigger_at_block_start = false;

    bool operator==(const RecordedEvent& other) const {
        return *event == *other.event && flags == other.flags &&
               trigger_at_block_start == other.trigger_at_block_start;
    }
};

/// How the L2 cache treats a range of memory.
struct AccessPolicyWindow {
    std::uint64_t base_ptr = 0, num_bytes = 0;
    float hit_ratio = 0;
    int hit_prop = 0, miss_prop = 0; // CUaccessProperty

    bool operator==(const AccessPolicyWindow&) const = default;
};

struct MemSyncDomainMap {
    unsigned char default_ = 0, remote = 0;

    bool operator==(const MemSyncDomainMap&) const = default;
};

/// An attribute by the driver's number and the bytes of its value, the rest of which are zeros.
struct RawAttribute {
    static constexpr std::size_t kMaxBytes = sizeof(CUlaunchAttributeValue);
    int id = 0;
    std::size_t size = 0;
    std::array<std::byte, kMaxBytes> bytes{};

    bool operator==(const RawAttribute&) const = default;
};

/// The attributes of a launch beyond cluster, cooperation and stream serialisation, which `Shape`
/// has itself. Each is absent unless it was asked for.
struct Attributes {
    std::optional<Dim3> preferred_cluster;
    std::optional<int> cluster_scheduling_policy_preference; // CUclusterSchedulingPolicy
    std::optional<RecordedEvent> programmatic_event, launch_completion_event;
    std::optional<int> priority;
    std::optional<int> mem_sync_domain; // CUlaunchMemSyncDomain
    std::optional<MemSyncDomainMap> mem_sync_domain_map;
    std::optional<AccessPolicyWindow> access_policy_window;
    std::optional<unsigned> preferred_shared_memory_carveout; // percent
    std::vector<RawAttribute> raw;                            // by rising id

    bool operator==(const Attributes&) const = default;
};

/// A launch attribute that has a name here.
struct KnownAttribute {
    int id;
    const char* name;  // the parameter of LaunchConfig
    int needed;        // the CUDA version that has it (12080 for 12.8); 0: every supported one
    bool by_name_only; // its value is a handle, or decides what the grid counts
};

/// The attribute of that number, or null for one that is only known to the driver.
const KnownAttribute* known_attribute(int id);

/// Appends the driver's form of every attribute that is present.
void append_native(const Attributes& attributes, std::vector<CUlaunchAttribute>& native);

/// Throws DriverError for an attribute that is newer than the driver, naming both versions.
void require_driver_for(const Attributes& attributes);

/// Throws std::invalid_argument when an event belongs to another context than the launch.
void require_context_of(const Attributes& attributes, CUcontext context);

} // namespace cudamod::launch
