#include "python/launch_attributes.h"

#include "python/buffer.h"
#include "python/event.h"
#include "python/integer.h"
#include "python/launch_config.h"
#include "python/options.h"
#include "python/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>

namespace cudamod::python {

namespace {

using launch::Attributes;

enum Index : std::size_t {
    kPreferredCluster,
    kClusterSchedulingPolicy,
    kProgrammaticEvent,
    kLaunchCompletionEvent,
    kPriority,
    kMemSyncDomain,
    kMemSyncDomainMap,
    kAccessPolicyWindow,
    kCarveout,
    kRaw,
};

constexpr const char* kPolicies[] = {"default", "spread", "load_balancing"};
constexpr const char* kDomains[] = {"default", "remote"};
constexpr const char* kProperties[] = {"normal", "streaming", "persisting"};

/// "LaunchConfig.priority" and, for a part of a value,
/// "LaunchConfig.access_policy_window.hit_prop".
std::string path(Index index, const char* part = nullptr) {
    std::string text = std::string("LaunchConfig.") + kLaunchAttributeNames[index];
    return part ? text + "." + part : text;
}

[[noreturn]] void refuse_attribute(PyObject* error, const std::string& what,
                                   const std::string& wanted, nb::handle got) {
    PyErr_Format(error, "%s must be %s (got %s)", what.c_str(), wanted.c_str(),
                 text_of(got.ptr()).c_str());
    throw nb::python_error();
}

/// An integer, but no bool, within bounds.
std::int64_t attribute_integer(nb::handle value, const std::string& what, std::int64_t low,
                               std::int64_t high) {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()) || PySequence_Check(value.ptr()))
        refuse_attribute(PyExc_TypeError, what, "an int", value);
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow || number < low || number > high)
        refuse_attribute(PyExc_ValueError, what,
                         "in " + std::to_string(low) + " .. " + std::to_string(high), index);
    return number;
}

std::uint64_t unsigned_integer(nb::handle value, const std::string& what) {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()) || PySequence_Check(value.ptr()))
        refuse_attribute(PyExc_TypeError, what, "an int", value);
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    std::uint64_t magnitude = 0;
    bool negative = false;
    if (!read_long(index.ptr(), magnitude, negative) || (negative && magnitude))
        refuse_attribute(PyExc_ValueError, what, "in 0 .. 2**64 - 1", index);
    return magnitude;
}

/// One of a few names, or the driver's number for it.
int choice(nb::handle value, const std::string& what, std::span<const char* const> names) {
    std::string known;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (PyUnicode_Check(value.ptr()) &&
            PyUnicode_CompareWithASCIIString(value.ptr(), names[i]) == 0)
            return static_cast<int>(i);
        known += std::string(i ? ", " : "") + "'" + names[i] + "'";
    }
    if (PyUnicode_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
        refuse_attribute(PyUnicode_Check(value.ptr()) ? PyExc_ValueError : PyExc_TypeError, what,
                         "one of " + known, value);
    return static_cast<int>(
        attribute_integer(value, what, 0, static_cast<std::int64_t>(names.size()) - 1));
}

launch::RecordedEvent recorded_event(nb::handle value, Index index) {
    launch::RecordedEvent recorded;
    bool programmatic = index == kProgrammaticEvent;
    nb::object event = nb::borrow(value);
    if (!instance<Event>(value.ptr())) {
        const char* type = programmatic ? "an Event or a ProgrammaticEvent"
                                        : "an Event or a LaunchCompletionEvent";
        if (!nb::isinstance<nb::dict>(value) && !nb::hasattr(value, "event"))
            refuse_attribute(PyExc_TypeError, path(index), type, value);
        if (programmatic)
            check_options(value, "ProgrammaticEvent", {"event", "flags", "trigger_at_block_start"});
        else
            check_options(value, "LaunchCompletionEvent", {"event", "flags"});
        event = option(value, "event", nb::none());
        recorded.flags = static_cast<int>(attribute_integer(option(value, "flags", nb::int_(0)),
                                                            path(index, "flags"), 0,
                                                            std::numeric_limits<int>::max()));
        if (programmatic)
            recorded.trigger_at_block_start = nb::cast<bool>(
                nb::bool_(option(value, "trigger_at_block_start", nb::bool_(false))));
        if (recorded.flags & CU_EVENT_RECORD_EXTERNAL)
            refuse_attribute(PyExc_ValueError, path(index, "flags"),
                             "without CU_EVENT_RECORD_EXTERNAL", nb::int_(recorded.flags));
    }
    const Event* native = instance<Event>(event.ptr());
    if (!native) refuse_attribute(PyExc_TypeError, path(index, "event"), "an Event", event);
    if (native->timing)
        refuse_attribute(PyExc_ValueError, path(index, "event"), "made without timing", event);
    if (native->shared)
        refuse_attribute(PyExc_ValueError, path(index, "event"), "made without ipc_enabled", event);
    recorded.event = open_handle(*native);
    recorded.blocking_sync = native->blocking_sync;
    return recorded;
}

launch::MemSyncDomainMap domain_map(nb::handle value) {
    if (!PyTuple_Check(value.ptr()) || PyTuple_GET_SIZE(value.ptr()) != 2)
        refuse_attribute(PyExc_TypeError, path(kMemSyncDomainMap),
                         "a tuple (default, remote) of ints", value);
    auto domain = [&](Py_ssize_t i) {
        return static_cast<unsigned char>(
            attribute_integer(PyTuple_GET_ITEM(value.ptr(), i), path(kMemSyncDomainMap), 0, 255));
    };
    return {domain(0), domain(1)};
}

launch::AccessPolicyWindow window(nb::handle value) {
    launch::AccessPolicyWindow result;
    constexpr Index kWindow = kAccessPolicyWindow;
    if (!nb::isinstance<nb::dict>(value) && !nb::hasattr(value, "base_ptr"))
        refuse_attribute(PyExc_TypeError, path(kWindow), "an AccessPolicyWindow or a dict", value);
    check_options(value, "AccessPolicyWindow",
                  {"base_ptr", "num_bytes", "hit_ratio", "hit_prop", "miss_prop"});
    nb::object base = option(value, "base_ptr", nb::none());
    nb::object size = option(value, "num_bytes", nb::none());
    if (const Buffer* buffer = instance<Buffer>(base.ptr())) {
        if (buffer->closed) throw std::runtime_error("Buffer has been closed");
        result.base_ptr = buffer->address;
        result.num_bytes =
            size.is_none() ? buffer->size : unsigned_integer(size, path(kWindow, "num_bytes"));
        if (result.num_bytes > buffer->size)
            refuse_attribute(PyExc_ValueError, path(kWindow, "num_bytes"),
                             "at most the buffer's " + std::to_string(buffer->size), size);
    } else {
        result.base_ptr = unsigned_integer(base, path(kWindow, "base_ptr"));
        result.num_bytes = unsigned_integer(size, path(kWindow, "num_bytes"));
    }
    nb::object ratio = option(value, "hit_ratio", nb::float_(1.0));
    double hit_ratio = PyFloat_AsDouble(ratio.ptr());
    if (hit_ratio == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        refuse_attribute(PyExc_TypeError, path(kWindow, "hit_ratio"), "a float", ratio);
    }
    if (!(hit_ratio >= 0 && hit_ratio <= 1))
        refuse_attribute(PyExc_ValueError, path(kWindow, "hit_ratio"), "in 0 .. 1", ratio);
    result.hit_ratio = static_cast<float>(hit_ratio);
    result.hit_prop = choice(option(value, "hit_prop", nb::str("persisting")),
                             path(kWindow, "hit_prop"), kProperties);
    result.miss_prop = choice(option(value, "miss_prop", nb::str("streaming")),
                              path(kWindow, "miss_prop"), std::span(kProperties).first(2));
    return result;
}

launch::RawAttribute raw_attribute(nb::handle pair) {
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
        refuse_attribute(PyExc_TypeError, path(kRaw), "pairs (id, bytes)", pair);
    launch::RawAttribute raw;
    raw.id =
        static_cast<int>(attribute_integer(PyTuple_GET_ITEM(pair.ptr(), 0), path(kRaw) + ": an id",
                                           0, std::numeric_limits<int>::max()));
    nb::handle value(PyTuple_GET_ITEM(pair.ptr(), 1));
    Py_buffer view;
    if (PyObject_GetBuffer(value.ptr(), &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        refuse_attribute(PyExc_TypeError,
                         path(kRaw) + ": the value of id " + std::to_string(raw.id), "bytes",
                         value);
    }
    auto size = static_cast<std::size_t>(view.len);
    bool fits = size <= raw.kMaxBytes;
    if (fits) std::memcpy(raw.bytes.data(), view.buf, size);
    PyBuffer_Release(&view);
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "%s: the value of id %d has %zu bytes, more than %zu",
                     path(kRaw).c_str(), raw.id, size, raw.kMaxBytes);
        throw nb::python_error();
    }
    raw.size = size;
    return raw;
}

std::vector<launch::RawAttribute> raw_attributes(nb::handle value) {
    std::vector<launch::RawAttribute> result;
    nb::object pairs = nb::borrow(value);
    if (nb::isinstance<nb::dict>(value))
        pairs = nb::steal(PyDict_Items(value.ptr()));
    else if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr()))
        refuse_attribute(PyExc_TypeError, path(kRaw), "a dict or pairs (id, bytes)", value);
    for (nb::handle pair : pairs)
        result.push_back(raw_attribute(pair));
    std::sort(result.begin(), result.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < result.size(); ++i)
        if (result[i].id == result[i - 1].id)
            throw nb::value_error(
                (path(kRaw) + ": id " + std::to_string(result[i].id) + " is given twice").c_str());
    return result;
}

/// Raw attributes may not be what a parameter says too, nor what must be said by a parameter.
void require_free_ids(const Attributes& attributes, bool stream_serialization) {
    auto given_by_name = [&](int id) {
        switch (id) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            return attributes.access_policy_window.has_value();
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            return attributes.cluster_scheduling_policy_preference.has_value();
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            return stream_serialization;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            return attributes.priority.has_value();
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            return attributes.mem_sync_domain_map.has_value();
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            return attributes.mem_sync_domain.has_value();
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return attributes.preferred_shared_memory_carveout.has_value();
        default:
            return false;
        }
    };
    for (const launch::RawAttribute& raw : attributes.raw) {
        const launch::KnownAttribute* known = launch::known_attribute(raw.id);
        if (!known) continue;
        if (known->by_name_only)
            throw nb::value_error((path(kRaw) + ": id " + std::to_string(raw.id) +
                                   " can't be given raw; use the parameter " + known->name)
                                      .c_str());
        if (given_by_name(raw.id))
            throw nb::value_error((path(kRaw) + ": id " + std::to_string(raw.id) +
                                   " is given twice, as the parameter " + known->name + " too")
                                      .c_str());
    }
}

nb::object options_class(const char* name) {
    return nb::module_::import_("cudamod.launch_attributes").attr(name);
}

nb::object event_of(const launch::RecordedEvent& recorded) {
    return make<Event>(recorded.event, false, recorded.blocking_sync, false);
}

} // namespace

std::shared_ptr<const Attributes>
launch_attributes_from(const std::array<PyObject*, kLaunchAttributes>& values,
                       bool stream_serialization) {
    bool any = false;
    for (PyObject* value : values)
        any |= value != Py_None;
    if (!any) return nullptr;
    Attributes result;
    auto given = [&](Index index, auto&& read) {
        if (values[index] != Py_None) read(nb::handle(values[index]));
    };
    given(kPreferredCluster, [&](nb::handle v) {
        result.preferred_cluster = dimensions(v, kLaunchAttributeNames[kPreferredCluster]);
    });
    given(kClusterSchedulingPolicy, [&](nb::handle v) {
        result.cluster_scheduling_policy_preference =
            choice(v, path(kClusterSchedulingPolicy), kPolicies);
    });
    given(kProgrammaticEvent,
          [&](nb::handle v) { result.programmatic_event = recorded_event(v, kProgrammaticEvent); });
    given(kLaunchCompletionEvent, [&](nb::handle v) {
        result.launch_completion_event = recorded_event(v, kLaunchCompletionEvent);
    });
    if (result.programmatic_event && result.launch_completion_event &&
        *result.programmatic_event->event == *result.launch_completion_event->event)
        throw nb::value_error("LaunchConfig.programmatic_event and launch_completion_event must be "
                              "two events");
    given(kPriority, [&](nb::handle v) {
        result.priority = static_cast<int>(attribute_integer(
            v, path(kPriority), std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
    });
    given(kMemSyncDomain, [&](nb::handle v) {
        result.mem_sync_domain = choice(v, path(kMemSyncDomain), kDomains);
    });
    given(kMemSyncDomainMap, [&](nb::handle v) { result.mem_sync_domain_map = domain_map(v); });
    given(kAccessPolicyWindow, [&](nb::handle v) { result.access_policy_window = window(v); });
    given(kCarveout, [&](nb::handle v) {
        result.preferred_shared_memory_carveout =
            static_cast<unsigned>(attribute_integer(v, path(kCarveout), 0, 100));
    });
    given(kRaw, [&](nb::handle v) { result.raw = raw_attributes(v); });
    require_free_ids(result, stream_serialization);
    if (result == Attributes{}) return nullptr; // raw attributes, but none in them
    return std::make_shared<const Attributes>(std::move(result));
}

nb::object launch_attribute(const Attributes* given, std::size_t index) {
    if (index == kRaw) {
        nb::list pairs;
        if (given)
            for (const launch::RawAttribute& raw : given->raw)
                pairs.append(nb::make_tuple(raw.id, nb::bytes(raw.bytes.data(), raw.size)));
        return nb::tuple(pairs);
    }
    if (!given) return nb::none();
    switch (index) {
    case kPreferredCluster:
        if (const auto& d = given->preferred_cluster) return nb::make_tuple(d->x, d->y, d->z);
        break;
    case kClusterSchedulingPolicy:
        if (const auto& policy = given->cluster_scheduling_policy_preference)
            return nb::str(kPolicies[*policy]);
        break;
    case kProgrammaticEvent:
        if (const auto& recorded = given->programmatic_event)
            return options_class("ProgrammaticEvent")(event_of(*recorded), recorded->flags,
                                                      recorded->trigger_at_block_start);
        break;
    case kLaunchCompletionEvent:
        if (const auto& recorded = given->launch_completion_event)
            return options_class("LaunchCompletionEvent")(event_of(*recorded), recorded->flags);
        break;
    case kPriority:
        if (given->priority) return nb::int_(*given->priority);
        break;
    case kMemSyncDomain:
        if (given->mem_sync_domain) return nb::str(kDomains[*given->mem_sync_domain]);
        break;
    case kMemSyncDomainMap:
        if (const auto& map = given->mem_sync_domain_map)
            return nb::make_tuple(static_cast<int>(map->default_), static_cast<int>(map->remote));
        break;
    case kAccessPolicyWindow:
        if (const auto& w = given->access_policy_window)
            return options_class("AccessPolicyWindow")(w->base_ptr, w->num_bytes, w->hit_ratio,
                                                       kProperties[w->hit_prop],
                                                       kProperties[w->miss_prop]);
        break;
    case kCarveout:
        if (given->preferred_shared_memory_carveout)
            return nb::int_(*given->preferred_shared_memory_carveout);
        break;
    default:
        break;
    }
    return nb::none();
}

std::size_t hash_of(const Attributes& given) {
    std::size_t value = 31;
    auto mix = [&](std::uint64_t part) {
        value = value * 1000003 ^ std::hash<std::uint64_t>()(part);
    };
    auto mix_event = [&](const std::optional<launch::RecordedEvent>& recorded) {
        mix(recorded ? reinterpret_cast<std::uintptr_t>(*recorded->event) : 0);
        if (recorded)
            mix(2 * static_cast<unsigned>(recorded->flags) + recorded->trigger_at_block_start);
    };
    const launch::Dim3 preferred = given.preferred_cluster.value_or(launch::Dim3{0, 0, 0});
    for (unsigned part : {preferred.x, preferred.y, preferred.z})
        mix(part);
    mix(static_cast<std::uint64_t>(given.cluster_scheduling_policy_preference.value_or(-1)));
    mix_event(given.programmatic_event);
    mix_event(given.launch_completion_event);
    mix(given.priority ? static_cast<unsigned>(*given.priority) : std::uint64_t{1} << 32);
    mix(static_cast<std::uint64_t>(given.mem_sync_domain.value_or(-1)));
    mix(given.mem_sync_domain_map
            ? given.mem_sync_domain_map->default_ + 256u * given.mem_sync_domain_map->remote
            : 65536u);
    if (const auto& window = given.access_policy_window) {
        mix(window->base_ptr);
        mix(window->num_bytes);
        mix(std::hash<float>()(window->hit_ratio));
        mix(static_cast<std::uint64_t>(4 * window->hit_prop + window->miss_prop));
    }
    mix(given.preferred_shared_memory_carveout.value_or(101));
    for (const launch::RawAttribute& raw : given.raw) {
        mix(static_cast<std::uint64_t>(raw.id));
        mix(std::hash<std::string_view>()(
            {reinterpret_cast<const char*>(raw.bytes.data()), raw.size}));
    }
    return value;
}

void refuse_pickled_events(const Attributes& given) {
    if (!given.programmatic_event && !given.launch_completion_event) return;
    PyErr_Format(PyExc_TypeError,
                 "cannot pickle a LaunchConfig with a %s: an event belongs to this process",
                 kLaunchAttributeNames[given.programmatic_event ? kProgrammaticEvent
                                                                : kLaunchCompletionEvent]);
    throw nb::python_error();
}

} // namespace cudamod::python
