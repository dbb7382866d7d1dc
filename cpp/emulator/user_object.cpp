#include "emulator/user_object.h"

#include "emulator/call.h"
#include "emulator/objects.h"

#include <climits>

using namespace cudamod::emulator;

namespace {

std::shared_ptr<UserObject> find(CUuserObject handle) {
    auto object = objects().user_objects.find(handle);
    if (!object)
        fail(CUDA_ERROR_INVALID_VALUE, "User object %p does not exist", static_cast<void*>(handle));
    return object;
}

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
            find(handle)->references += count;
        },
        handle, count);
}

CUDAMOD_API cuUserObjectRelease(CUuserObject handle, unsigned int count) {
    return unlocked_call(
        "cuUserObjectRelease",
        [&] {
            std::unique_lock lock(driver_mutex());
            require_count(count);
            const auto object = find(handle);
            if (count > object->references) {
                fail(CUDA_ERROR_INVALID_VALUE, "%u references were given back of %llu", count,
                     object->references);
            }
            object->references -= count;
            if (object->references) return;
            objects().user_objects.erase(handle);
            lock.unlock();
            const CallbackScope inside;
            object->destroy(object->pointer);
        },
        handle, count);
}
