#include "emulator/access_map.h"

#include "emulator/stream_order.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <shared_mutex>

namespace cudamod::emulator {
namespace {

constexpr unsigned kPageShift = 12;
constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageShift;

// Beyond these the older half is forgotten: it is not compared with any more.
constexpr std::size_t kKeptAccesses = std::size_t{1} << 22, kKeptSets = std::size_t{1} << 20;

/// A set of accesses as a number, 0 being empty. Numbers are never used twice.
using SetId = std::uint32_t;

/// All accesses and sets of them that cells name.
struct AccessLog {
    std::shared_mutex mutex;
    std::deque<Accessor> accesses;
    AccessId first_access = 1;
    std::deque<std::vector<AccessId>> sets;
    std::map<std::vector<AccessId>, SetId> numbers;
    SetId first_set = 1;

    const Accessor* find(AccessId id) const {
        const AccessId index = id >> 2;
        return index < first_access || index - first_access >= accesses.size()
                   ? nullptr
                   : &accesses[index - first_access];
    }

    std::vector<AccessId> members(SetId id) const {
        return id < first_set || id - first_set >= sets.size() ? std::vector<AccessId>{}
                                                               : sets[id - first_set];
    }

    SetId number(std::vector<AccessId> members) {
        if (const auto known = numbers.find(members); known != numbers.end()) return known->second;
        if (sets.size() >= kKeptSets) forget_sets();
        const SetId id = first_set + static_cast<SetId>(sets.size());
        sets.push_back(members);
        numbers.emplace(std::move(members), id);
        return id;
    }

    void forget_sets() {
        first_set += static_cast<SetId>(sets.size());
        sets.clear();
        numbers.clear();
    }
};

AccessLog& log() {
    static AccessLog* const only = new AccessLog;
    return *only;
}

/// What a thread found out last, by the access and what it met.
struct Verdict {
    AccessId access = 0;
    std::uint32_t met = 0; ///< an access, or a set
    AccessId conflict = 0;
    SetId next = 0;
};
constexpr std::size_t kVerdicts = 256;
thread_local std::array<Verdict, kVerdicts> writes_met, sets_met;

Verdict& slot(std::array<Verdict, kVerdicts>& of, AccessId access, std::uint32_t met) {
    return of[((access >> 2) * 31 + (access & 3) + met * 7) % kVerdicts];
}

bool ordered(const Accessor* earlier, const WorkRecord& work) {
    return !earlier || earlier->work.get() == &work || work.after(*earlier->work);
}

/// Whether the access conflicts with the plain write that it met.
bool conflicts_with_write(const MemoryUse& use, AccessId write) {
    Verdict& known = slot(writes_met, use.id, write);
    if (known.access != use.id || known.met != write) {
        std::shared_lock lock(log().mutex);
        known = {use.id, write, ordered(log().find(write), *use.work) ? 0 : write, 0};
    }
    return known.conflict != 0;
}

/// What the access leaves of the reads and strong accesses that it met, and with which of them it
/// conflicts.
const Verdict& meet(const MemoryUse& use, SetId set) {
    Verdict& known = slot(sets_met, use.id, set);
    if (known.access == use.id && known.met == set) return known;
    const bool writes = use.id & kAccessWrites, strong = use.id & kAccessStrong;
    std::unique_lock lock(log().mutex);
    known = {use.id, set, 0, 0};
    std::vector<AccessId> left;
    for (const AccessId member : log().members(set)) {
        const bool before = ordered(log().find(member), *use.work);
        const bool one_writes = writes || (member & kAccessWrites) != 0;
        if (!before && one_writes && !(strong && (member & kAccessStrong))) known.conflict = member;
        // Who conflicts with an earlier access of the same kind conflicts with this one as well.
        if (member != use.id && !(before && (member & 3) == (use.id & 3))) left.push_back(member);
    }
    if (writes && !strong) return known;
    left.push_back(use.id);
    std::sort(left.begin(), left.end());
    known.next = log().number(std::move(left));
    return known;
}

} // namespace

AccessId add_access(const Accessor& accessor) {
    AccessLog& all = log();
    std::unique_lock lock(all.mutex);
    if (all.accesses.size() >= kKeptAccesses) {
        const std::size_t half = kKeptAccesses / 2;
        all.accesses.erase(all.accesses.begin(), all.accesses.begin() + half);
        all.first_access += static_cast<AccessId>(half);
    }
    all.accesses.push_back(accessor);
    const auto index = all.first_access + static_cast<AccessId>(all.accesses.size()) - 1;
    return index << 2 | (accessor.strong ? kAccessStrong : 0) |
           (accessor.writes ? kAccessWrites : 0);
}

std::optional<Accessor> accessor_of(AccessId id) {
    std::shared_lock lock(log().mutex);
    const Accessor* const found = log().find(id);
    return found ? std::optional(*found) : std::nullopt;
}

void forget_accesses() {
    AccessLog& all = log();
    std::deque<Accessor> gone; // ends without the lock
    std::unique_lock lock(all.mutex);
    all.first_access += static_cast<AccessId>(all.accesses.size());
    gone.swap(all.accesses);
    all.forget_sets();
    lock.unlock();
}

struct AccessMap::Cell {
    AccessId write = 0;
    SetId others = 0;
    AccessId latest = 0; ///< of the others
    std::uint64_t write_thread = 0, latest_thread = 0;
};

/// How many threads later than the first one of an access the byte is another's.
std::uint64_t thread_of(AccessId id, std::uint64_t bytes) {
    const auto accessor = id && bytes ? accessor_of(id) : std::nullopt;
    return accessor && accessor->bytes_of_each ? bytes / accessor->bytes_of_each : 0;
}

/// Entries for equal parts of a page, which get smaller as accesses do.
struct AccessMap::Page {
    std::mutex mutex;
    unsigned shift = kPageShift; ///< of an entry's bytes
    std::vector<Cell> cells = std::vector<Cell>(1);

    void refine(unsigned to) {
        std::vector<Cell> finer(kPageBytes >> to);
        for (std::size_t n = 0; n < finer.size(); ++n) {
            finer[n] = cells[n >> (shift - to)];
            const std::uint64_t inside = (n << to) & ((std::uint64_t{1} << shift) - 1);
            if (inside == 0) continue;
            finer[n].write_thread += thread_of(finer[n].write, inside);
            finer[n].latest_thread += thread_of(finer[n].latest, inside);
        }
        cells = std::move(finer);
        shift = to;
    }
};

AccessMap::AccessMap(std::uint64_t begin, std::size_t bytes)
    : base_(begin & ~(kPageBytes - 1)), count_((begin + bytes - base_ + kPageBytes - 1) >> 12),
      pages_(new std::atomic<Page*>[count_]()) {}

AccessMap::~AccessMap() {
    for (std::size_t n = 0; n < count_; ++n)
        delete pages_[n].load(std::memory_order_relaxed);
}

AccessMap::Page& AccessMap::page_at(std::size_t index) {
    if (Page* const page = pages_[index].load(std::memory_order_acquire)) return *page;
    std::lock_guard lock(making_);
    Page* page = pages_[index].load(std::memory_order_relaxed);
    if (!page) pages_[index].store(page = new Page, std::memory_order_release);
    return *page;
}

std::optional<Conflict> AccessMap::note(const MemoryUse& use, std::uint64_t address,
                                        std::size_t bytes) {
    std::optional<Conflict> first;
    const auto report = [&](AccessId earlier, std::optional<std::uint64_t> thread,
                            std::uint64_t at) {
        if (!first) first = Conflict{earlier, thread, at};
    };
    const bool plain_write = (use.id & 3) == kAccessWrites;
    for (std::uint64_t at = address - base_, end = at + bytes; at < end;) {
        const std::uint64_t begin_page = at & ~(kPageBytes - 1),
                            stop = std::min(end, begin_page + kPageBytes);
        Page& page = page_at(at >> kPageShift);
        std::lock_guard lock(page.mutex);
        const auto fit = static_cast<unsigned>(
            __builtin_ctzll((at - begin_page) | (stop - begin_page) | kPageBytes));
        if (fit < page.shift) page.refine(fit);
        for (std::uint64_t cell_at = at - begin_page; cell_at < stop - begin_page;
             cell_at += std::uint64_t{1} << page.shift) {
            Cell& cell = page.cells[cell_at >> page.shift];
            const std::uint64_t here = base_ + begin_page + cell_at;
            const std::uint64_t thread =
                use.thread + (use.bytes_of_each ? (here - address) / use.bytes_of_each : 0);
            if (cell.write && cell.write != use.id && conflicts_with_write(use, cell.write))
                report(cell.write, cell.write_thread, here);
            SetId next = 0;
            if (cell.others || !plain_write) {
                const Verdict& met = meet(use, cell.others);
                if (met.conflict) {
                    report(met.conflict,
                           met.conflict == cell.latest ? std::optional(cell.latest_thread)
                                                       : std::nullopt,
                           here);
                }
                next = met.next;
            }
            if (plain_write) {
                cell = {use.id, 0, 0, thread, 0};
            } else {
                cell.others = next;
                cell.latest = use.id;
                cell.latest_thread = thread;
            }
        }
        at = stop;
    }
    return first;
}

} // namespace cudamod::emulator
