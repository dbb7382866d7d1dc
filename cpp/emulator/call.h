#pragma once

#include "emulator/api.h"
#include "emulator/failure.h"
#include "emulator/process.h"
#include "emulator/summary.h"

#include <cstddef>
#include <mutex>
#include <type_traits>

namespace cudamod::emulator {

/// What an entry point needs around its body.
struct CallTraits {
    const char* name; ///< without version suffix
    bool before_init; ///< works before cuInit
    bool locked;      ///< holds the driver's lock throughout
};

/// A body by reference: what it answers, CUDA_SUCCESS when it answers nothing.
class Body {
  public:
    template <class Callable>
    explicit Body(Callable& callable)
        : callable_(&callable), run_([](void* target) -> CUresult {
              auto& body = *static_cast<Callable*>(target);
              if constexpr (std::is_void_v<decltype(body())>) {
                  body();
                  return CUDA_SUCCESS;
              } else {
                  return body();
              }
          }) {}

    CUresult operator()() const { return run_(callable_); }

  private:
    void* callable_;
    CUresult (*run_)(void*);
};

/// What every entry point runs through: the gate (initialised, not forked, not in a callback),
/// fault injection, the lock, the journal, and the one place where a Failure becomes a status.
CUresult run_call(const CallTraits& traits, Body body, const Argument* arguments,
                  std::size_t count) noexcept;

/// A call that holds the driver's lock throughout. A body returns nothing, or a status that is no
/// failure (CUDA_ERROR_NOT_READY).
template <class Callable, class... Arguments>
CUresult locked_call(const char* name, Callable&& body, const Arguments&... arguments) noexcept {
    const Argument all[] = {Argument(arguments)..., Argument()};
    return run_call({name, false, true}, Body(body), all, sizeof...(arguments));
}

/// A call that takes the lock itself, for as long as it validates.
template <class Callable, class... Arguments>
CUresult unlocked_call(const char* name, Callable&& body, const Arguments&... arguments) noexcept {
    const Argument all[] = {Argument(arguments)..., Argument()};
    return run_call({name, false, false}, Body(body), all, sizeof...(arguments));
}

/// A call that works before cuInit; it holds no lock.
template <class Callable, class... Arguments>
CUresult early_call(const char* name, Callable&& body, const Arguments&... arguments) noexcept {
    const Argument all[] = {Argument(arguments)..., Argument()};
    return run_call({name, true, false}, Body(body), all, sizeof...(arguments));
}

} // namespace cudamod::emulator
