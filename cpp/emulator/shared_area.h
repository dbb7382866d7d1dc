#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace cudamod::emulator {

/// What stands at the begin of a shared area's file, for the process that imports it.
struct SharedHeader {
    std::uint64_t magic = 0;
    std::uint64_t pool[2] = {0, 0}; ///< random: told again by each exported pointer
    std::uint64_t bytes = 0;        ///< of the whole file
    std::int32_t device = 0;        ///< ordinal, or -1: host memory
    std::int32_t reserved = 0;
};

/// The memory of a pool that other processes may import: a file in memory, mapped by each of them.
/// As with other device memory nothing can be read at a device's address, but at `host`.
class SharedArea {
  public:
    /// A new area of `bytes`; null when there is no room. `device` -1 for host memory, whose
    /// address is `host`.
    static std::shared_ptr<SharedArea> create(std::size_t bytes, int device);

    /// The area behind another process's file; null when the file is none.
    static std::shared_ptr<SharedArea> open(int file);

    ~SharedArea();
    SharedArea(const SharedArea&) = delete;
    SharedArea& operator=(const SharedArea&) = delete;

    const SharedHeader& header() const { return *reinterpret_cast<const SharedHeader*>(host_); }
    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return begin_ + bytes_; }
    std::byte* host() const { return host_; }

    /// A new file descriptor for another process, or -1.
    int export_file() const;

    /// The offset of free room; none when there is none.
    std::optional<std::uint64_t> take(std::size_t bytes);

    /// Ends what `take` gave; its pages go back to the system.
    void give_back(std::uint64_t offset);

  private:
    SharedArea() = default;
    bool map(int file, std::size_t bytes, bool on_host);

    int file_ = -1;
    std::size_t bytes_ = 0;
    std::uint64_t begin_ = 0;
    std::byte* host_ = nullptr;
    std::map<std::uint64_t, std::size_t> taken_; ///< bytes by offset
    std::uint64_t next_ = 0;
};

} // namespace cudamod::emulator
