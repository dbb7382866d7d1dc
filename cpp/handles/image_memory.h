#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cudamod::handles {

/// An image's bytes, with zeros behind them: the driver is told no length, reads PTX up to a NUL
/// and a header whole. Nobody in this process can change them.
class ImageMemory {
  public:
    static std::shared_ptr<const ImageMemory> copy_of(std::span<const char> bytes);

    /// The bytes of an open regular file where they lie in the page cache, without a copy. A file
    /// that is replaced (renamed over, removed) meanwhile stays what it was; one that is cut short
    /// leaves memory that faults, which no process can prevent. Throws std::system_error.
    static std::shared_ptr<const ImageMemory> map(int file);

    ~ImageMemory();
    ImageMemory(const ImageMemory&) = delete;
    ImageMemory& operator=(const ImageMemory&) = delete;

    std::span<const char> bytes() const { return bytes_; }

  private:
    ImageMemory() = default;

    std::span<const char> bytes_;
    std::string copy_;
    void* mapping_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

} // namespace cudamod::handles
