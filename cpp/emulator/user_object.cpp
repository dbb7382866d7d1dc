#include "emulator/user_object.h"

#include "emulator/call.h"
#include "emulator/graph.h"
#include "emulator/objects.h"

#include <algorithm>
#include <climits>
#include <deque>

namespace cudamod::emulator {
namespace {

/// References to give back, by handle: whoever ends a holder may hold the driver's lock.
struct Returned {
    std::mutex mutex;
    std::deque<std::pair<CUuserObject, unsigned long long>> references;
};

Returned& returned() {
    static Returned* const all = new Returned;
    return *all;
}

void give_back(CUuserObject object, unsigned long long count) {
    std::lock_guard lock(returned().mutex);
    returned().references.emplace_back(object, count);
    set_attention(kUserObjects, true);
}

} // namespace

std::shared_ptr<UserObject> find_user_object(CUuserObject handle) {
    auto object = objects().user_objects.find(handle);
    if (!object)
        fail(CUDA_ERROR_INVALID_VALUE, "User object %p does not exist", static_cast<void*>(handle));
    return object;
}

UserReferences::~UserReferences() {
    for (const auto& [object, count] : counts_)
        give_back(object, count);
}

void UserReferences::retain(CUuserObject handle, unsigned count, bool move) {
    const auto object = find_user_object(handle);
    if (!move) object->references += count;
    counts_[handle] += count;
}

void UserReferences::release(CUuserObject handle, unsigned count) {
    const auto held = counts_.find(handle);
    if (held == counts_.end() || held->second < count) {
        fail(CUDA_ERROR_INVALID_VALUE, "The graph has no %u references to user object %p", count,
             static_cast<void*>(handle));
    }
    if (!(held->second -= count)) counts_.erase(held);
    give_back(handle, count);
}

std::shared_ptr<UserReferences> UserReferences::again() const {
    auto copy = std::make_shared<UserReferences>();
    for (const auto& [object, count] : counts_) {
        find_user_object(object)->references += count;
        copy->counts_[object] = count;
    }
    return copy;
}

void end_user_objects() {
    for (;;) {
        std::unique_lock queue(returned().mutex);
        if (returned().references.empty()) {
            set_attention(kUserObjects, false);
            return;
        }
        const auto [handle, count] = returned().references.front();
        returned().references.pop_front();
        queue.unlock();
        std::unique_lock lock(driver_mutex());
        const auto object = objects().user_objects.find(handle);
        if (!object || (object->references -= std::min(object->references, count))) continue;
        objects().user_objects.erase(handle);
        lock.unlock();
        const CallbackScope inside;
        object->destroy(object->pointer);
    }
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void require_count(unsigned count) {
    if (!count || count > INT_MAX)
        fail(CUDA_ERROR_INVALID_VALUE, "%u references cannot be taken or given back", count);
}

} // namespace

CUDAMOD_API cuUserObjectCreate(CUuserObject* handle, void* pointer, CUhostFn destroy,
                               unsigned int references, unsigned int flags) {
    return locked_call(
        "cuUserObjectCreate",
        [&] {
            require_pointer(handle, "the object");
            if (!destroy) fail(CUDA_ERROR_INVALID_VALUE, "The destructor must not be NULL");
            require_count(references);
            if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
                fail(CUDA_ERROR_INVALID_VALUE,
                     "User object flags 0x%x are not CU_USER_OBJECT_NO_DESTRUCTOR_SYNC", flags);
            *handle = objects().user_objects.insert(
                std::make_shared<UserObject>(UserObject{pointer, destroy, references}));
        },
        handle, pointer, destroy, references, flags);
}

CUDAMOD_API cuUserObjectRetain(CUuserObject handle, unsigned int count) {
    return locked_call(
        "cuUserObjectRetain",
        [&] {
            require_count(count);
            find_user_object(handle)->references += count;
        },
        handle, count);
}

CUDAMOD_API cuUserObjectRelease(CUuserObject handle, unsigned int count) {
    return locked_call(
        "cuUserObjectRelease",
        [&] {
            require_count(count);
            const auto object = find_user_object(handle);
            if (count > object->references) {
                fail(CUDA_ERROR_INVALID_VALUE, "%u references were given back of %llu", count,
                     object->references);
            }
            give_back(handle, count);
        },
        handle, count);
}

CUDAMOD_API cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                    unsigned int flags) {
    return locked_call(
        "cuGraphRetainUserObject",
        [&] {
            require_count(count);
            if (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE))
                fail(CUDA_ERROR_INVALID_VALUE, "Flags 0x%x are unknown", flags);
            find_graph(graph)->references->retain(object, count, flags != 0);
        },
        graph, object, count, flags);
}

CUDAMOD_API cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    return locked_call(
        "cuGraphReleaseUserObject",
        [&] {
            require_count(count);
            find_graph(graph)->references->release(object, count);
        },
        graph, object, count);
}
