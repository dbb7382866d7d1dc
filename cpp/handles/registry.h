#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace cudamod::handles {

/// One family's map from raw value to weak box: a raw handle that comes back finds its owner again.
/// The lock is a leaf: nothing is called while it is held, and strong references taken under it are
/// dropped after it is released, since the last one runs a destructor.
template <class Box>
class Registry {
  public:
    using Raw = typename Box::Raw;

    std::shared_ptr<const Box> find(Raw raw) const {
        std::lock_guard lock(mutex_);
        auto it = boxes_.find(raw);
        return it == boxes_.end() ? nullptr : it->second.lock();
    }

    void insert(const std::shared_ptr<const Box>& box) {
        std::lock_guard lock(mutex_);
        boxes_[box->raw] = box;
    }

    /// The box that is registered for `box->raw`: an earlier live one, or else `box` itself.
    std::shared_ptr<const Box> find_or_insert(std::shared_ptr<const Box> box) {
        std::lock_guard lock(mutex_);
        std::weak_ptr<const Box>& entry = boxes_[box->raw];
        if (auto earlier = entry.lock()) return earlier;
        entry = box;
        return box;
    }

    /// Called by a box's destructor before the driver's object is destroyed: the driver reuses
    /// values, and a successor may already stand under this one.
    void erase_expired(Raw raw) {
        std::lock_guard lock(mutex_);
        auto it = boxes_.find(raw);
        if (it != boxes_.end() && it->second.expired()) boxes_.erase(it);
    }

  private:
    mutable std::mutex mutex_;
    std::unordered_map<Raw, std::weak_ptr<const Box>> boxes_;
};

/// The registry of a family. Never destroyed: boxes die after static destruction has begun, too.
template <class Box>
Registry<Box>& registry() {
    static auto* instance = new Registry<Box>;
    return *instance;
}

} // namespace cudamod::handles
