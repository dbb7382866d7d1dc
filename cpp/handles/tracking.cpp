#include "handles/tracking.h"

#include "handles/report.h"

#include <atomic>
#include <chrono>
#include <mutex>

namespace cudamod::handles {

/// The live boxes in order of creation, and the events that nobody has taken.
struct TrackedList {
    std::mutex mutex;
    Tracked* first = nullptr;
    Tracked* last = nullptr;
    std::uint64_t serial = 0;
    std::vector<TraceEvent> events;

    void append(Tracked& entry) {
        entry.serial_ = ++serial;
        entry.previous_ = last;
        (last ? last->next_ : first) = &entry;
        last = &entry;
    }

    void remove(Tracked& entry) {
        (entry.previous_ ? entry.previous_->next_ : first) = entry.next_;
        (entry.next_ ? entry.next_->previous_ : last) = entry.previous_;
    }

    void note(bool created, const Tracked& entry) {
        events.push_back({created, entry.kind_, entry.value_, entry.serial_,
                          entry.site_ ? *entry.site_ : std::string()});
        attention.fetch_or(kReportsPending, std::memory_order_relaxed);
    }

    std::vector<Live> observe(std::vector<std::shared_ptr<const void>>& held) {
        std::int64_t now = nanoseconds();
        std::vector<Live> found;
        for (const Tracked* entry = first; entry; entry = entry->next_) {
            std::shared_ptr<const void> box = entry->box_.lock();
            if (!box) continue; // its last handle is going just now
            found.push_back({entry->kind_, entry->value_, entry->serial_, box.use_count() - 1,
                             now - entry->born_, entry->lifetime_, entry->dependencies_(box.get()),
                             entry->site_ ? *entry->site_ : std::string()});
            held.push_back(std::move(box));
        }
        return found;
    }

    static std::int64_t nanoseconds() {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
};

namespace {

std::atomic<bool> tracing{false}, noting_sites{false};
std::atomic<CreationSite> creation_site{nullptr};

// Never destroyed: boxes die after static destruction has begun, too.
TrackedList& list() {
    static auto* instance = new TrackedList;
    return *instance;
}

} // namespace

void Tracked::enter(const char* kind, std::uint64_t value, Lifetime lifetime,
                    std::weak_ptr<const void> box, Dependencies dependencies) {
    kind_ = kind;
    value_ = value;
    lifetime_ = lifetime;
    box_ = std::move(box);
    dependencies_ = dependencies;
    born_ = TrackedList::nanoseconds();
    if (noting_sites.load(std::memory_order_relaxed)) {
        if (CreationSite site = creation_site.load(std::memory_order_relaxed))
            site_ = std::make_unique<std::string>(site());
    }
    TrackedList& all = list();
    std::lock_guard lock(all.mutex);
    all.append(*this);
    if (tracing.load(std::memory_order_relaxed)) all.note(true, *this);
}

Tracked::~Tracked() {
    if (!kind_) return;
    TrackedList& all = list();
    std::lock_guard lock(all.mutex);
    if (!serial_) return;
    all.remove(*this);
    try {
        if (tracing.load(std::memory_order_relaxed)) all.note(false, *this);
    } catch (...) {
        // Out of memory while telling of a destruction: the object goes all the same.
    }
}

std::vector<Live> live() {
    std::vector<std::shared_ptr<const void>> held; // dropped when the lock is free again
    TrackedList& all = list();
    std::lock_guard lock(all.mutex);
    return all.observe(held);
}

void note_sites(bool on) noexcept {
    noting_sites.store(on, std::memory_order_relaxed);
}

void trace(bool on) noexcept {
    tracing.store(on, std::memory_order_relaxed);
    if (on) note_sites(true);
}

std::vector<TraceEvent> take_trace_events() {
    TrackedList& all = list();
    std::lock_guard lock(all.mutex);
    return std::exchange(all.events, {});
}

void set_creation_site(CreationSite site) noexcept {
    creation_site.store(site, std::memory_order_relaxed);
}

} // namespace cudamod::handles
