#pragma once

#include "handles/destruction.h"

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cudamod::handles {

/// Who ends a driver object: its last handle, somebody else, nobody before the process ends, or
/// this library, whose own it is.
enum class Lifetime { Owned, Borrowed, Process, Internal };

/// What a box depends on, as kind and raw value.
struct Dependency {
    const char* kind;
    std::uint64_t value;
};

template <class Raw>
std::uint64_t value_of(Raw raw) {
    if constexpr (std::is_pointer_v<Raw>)
        return reinterpret_cast<std::uintptr_t>(raw);
    else
        return raw;
}

/// A box's entry in the process's list of live boxes; the last member of every box, so that the
/// entry goes before anything that it tells of. O(1) to enter and to leave; the list's lock is a
/// leaf like the registries'.
class Tracked {
  public:
    Tracked() = default;
    ~Tracked();
    Tracked(const Tracked&) = delete;
    Tracked& operator=(const Tracked&) = delete;

    using Dependencies = std::vector<Dependency> (*)(const void* box);
    void enter(const char* kind, std::uint64_t value, Lifetime lifetime,
               std::weak_ptr<const void> box, Dependencies dependencies);

  private:
    friend struct TrackedList;
    Tracked *previous_ = nullptr, *next_ = nullptr;
    const char* kind_ = nullptr;
    std::uint64_t value_ = 0, serial_ = 0;
    std::int64_t born_ = 0; // nanoseconds of the steady clock
    Lifetime lifetime_ = Lifetime::Owned;
    std::weak_ptr<const void> box_;
    Dependencies dependencies_ = nullptr;
    std::unique_ptr<std::string> site_; // only while tracing
};

/// The one way to make a box: it is in the list of live ones from here on. A box tells its `kKind`,
/// its `lifetime()` and its `dependencies()`.
template <class Box, class... Arguments>
std::shared_ptr<const Box> make_box(Arguments&&... arguments) {
    std::shared_ptr<Box> box(new Box(std::forward<Arguments>(arguments)...), [](Box* last) {
        end_box(last, [](void* ended) { delete static_cast<Box*>(ended); });
    });
    box->tracked.enter(Box::kKind, value_of(box->raw), box->lifetime(), box, [](const void* raw) {
        return static_cast<const Box*>(raw)->dependencies();
    });
    return box;
}

/// One live box, as observed.
struct Live {
    const char* kind;
    std::uint64_t value, serial;
    long references;
    std::int64_t age; // nanoseconds
    Lifetime lifetime;
    std::vector<Dependency> dependencies;
    std::string site; // file:line of the Python code that made it, if it was traced
};
std::vector<Live> live();

/// Creation or destruction of a box, told after the fact.
struct TraceEvent {
    bool created;
    const char* kind;
    std::uint64_t value, serial;
    std::string site;
};

/// Sites are noted: for `live`, and for the report at exit.
void note_sites(bool on) noexcept;

/// Events are queued until taken. Queueing sets `kReportsPending`. Implies the noting of sites.
void trace(bool on) noexcept;
std::vector<TraceEvent> take_trace_events();

/// Tells where in Python the calling thread is, "file:line" or nothing. The layer above installs
/// it.
using CreationSite = std::string (*)();
void set_creation_site(CreationSite site) noexcept;

} // namespace cudamod::handles
