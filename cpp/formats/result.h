#pragma once

#include <optional>
#include <string>
#include <utility>

namespace cudamod::formats {

/// Why a reader has no answer: one sentence that names the object and the offending value.
struct Failure {
    std::string reason;
};

/// A value, or the reason why there is none. Readers never throw for bad bytes; they answer this.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(Failure failure) : reason_(std::move(failure.reason)) {}

    bool ok() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return ok(); }

    /// Only when ok().
    T& value() & { return *value_; }
    const T& value() const& { return *value_; }
    T&& value() && { return std::move(*value_); }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }
    T& operator*() & { return *value_; }
    const T& operator*() const& { return *value_; }

    /// Empty when ok().
    const std::string& reason() const noexcept { return reason_; }
    Failure failure() const { return Failure{reason_}; }

  private:
    std::optional<T> value_;
    std::string reason_;
};

} // namespace cudamod::formats
