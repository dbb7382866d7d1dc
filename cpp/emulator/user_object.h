#pragma once

#include "emulator/api.h"

#include <map>
#include <memory>

namespace cudamod::emulator {

/// A reference count with a destructor, for graphs that keep what they use.
struct UserObject {
    void* pointer = nullptr;
    CUhostFn destroy = nullptr;
    unsigned long long references = 0;
};

/// References that a graph or an executable holds. Ending it gives them back; where that was the
/// last of an object, the object's destructor runs at the end of a call, without the driver's lock.
class UserReferences {
  public:
    UserReferences() = default;
    ~UserReferences();
    UserReferences(const UserReferences&) = delete;
    UserReferences& operator=(const UserReferences&) = delete;

    /// `move`: the caller's own references become these.
    void retain(CUuserObject object, unsigned count, bool move);

    /// Fails with CUDA_ERROR_INVALID_VALUE when there are not so many.
    void release(CUuserObject object, unsigned count);

    /// As many of the same objects for another holder.
    std::shared_ptr<UserReferences> again() const;

  private:
    std::map<CUuserObject, unsigned long long> counts_;
};

/// Runs the destructors that are due. The caller holds no lock.
void end_user_objects();

} // namespace cudamod::emulator
