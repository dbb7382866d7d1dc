/// Host functions that the driver has yet to call, whoever in this process gave them to it through
/// the table: a Python callback among them needs the interpreter lock before its stream goes on.
#pragma once

#include <atomic>
#include <string_view>

namespace cudamod::driver {

/// How many are pending. A host function inside a graph runs whenever that graph does, and stays
/// pending; so does one whose stream has died.
extern std::atomic<int> pending_host_callbacks;

/// While one lives, its thread is inside of a host function, where the driver refuses every call.
class InHostCallback {
  public:
    InHostCallback() noexcept;
    ~InHostCallback();
    InHostCallback(const InHostCallback&) = delete;
    InHostCallback& operator=(const InHostCallback&) = delete;
};

/// Whether this thread is inside of a host function that the driver got through the table.
bool in_host_callback() noexcept;

/// The function to store in a slot: for those that take a host function one that counts it and
/// calls `entry`, else `entry` itself.
void* counting_host_callbacks(std::string_view function, void* entry) noexcept;

} // namespace cudamod::driver
