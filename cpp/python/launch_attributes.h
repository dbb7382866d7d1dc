#pragma once

#include "launch/attributes.h"
#include "python/instance.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace cudamod::python {

/// The keyword arguments of `LaunchConfig` that are launch attributes, in the order of its
/// signature and of its repr.
inline constexpr std::array kLaunchAttributeNames = {"preferred_cluster",
                                                     "cluster_scheduling_policy_preference",
                                                     "programmatic_event",
                                                     "launch_completion_event",
                                                     "priority",
                                                     "mem_sync_domain",
                                                     "mem_sync_domain_map",
                                                     "access_policy_window",
                                                     "preferred_shared_memory_carveout",
                                                     "attributes"};
constexpr std::size_t kLaunchAttributes = kLaunchAttributeNames.size();

/// Attributes from their Python values, each None for none; null when all are. Throws TypeError,
/// ValueError or OverflowError, naming the parameter and the value. `stream_serialization`: whether
/// the configuration has that attribute too.
std::shared_ptr<const launch::Attributes>
launch_attributes_from(const std::array<PyObject*, kLaunchAttributes>& values,
                       bool stream_serialization);

/// The Python value of attribute `index`, as `launch_attributes_from` takes it; None where absent.
nb::object launch_attribute(const launch::Attributes* attributes, std::size_t index);

std::size_t hash_of(const launch::Attributes& attributes);

/// Throws the TypeError of pickling a configuration with events; nothing without.
void refuse_pickled_events(const launch::Attributes& attributes);

} // namespace cudamod::python
