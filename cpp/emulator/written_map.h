#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cudamod::emulator {

struct Allocation;

/// Which bytes of an allocation were ever written: a byte for each, 0 while it was not. There is
/// one for device memory that is allocated while reads of unwritten memory are checked.
class WrittenMap {
  public:
    /// Null when nobody checks, or when there is no memory for it.
    static std::unique_ptr<WrittenMap> make(std::size_t bytes);
    ~WrittenMap();
    WrittenMap(const WrittenMap&) = delete;
    WrittenMap& operator=(const WrittenMap&) = delete;

    std::uint8_t* data() const { return data_; }

  private:
    WrittenMap(std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

    std::uint8_t* data_;
    std::size_t bytes_;
};

/// [at, at + bytes) of the allocation, which may be null, as the driver sees it, was written by the
/// work that runs. Streams are checked as well.
void note_written(Allocation* memory, const std::byte* at, std::size_t bytes);

/// The same after a copy: what was not written in its source is not in its destination.
void note_copied(Allocation* to_memory, const std::byte* to, Allocation* from_memory,
                 const std::byte* from, std::size_t bytes);

} // namespace cudamod::emulator
