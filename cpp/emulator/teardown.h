#pragma once

#include "emulator/context.h"

namespace cudamod::emulator {

/// A context that is not current anywhere yet.
std::shared_ptr<Context> make_context(Device& device);

/// Gives the context a fresh id and its default state.
void activate(Context& context);

/// Ends everything that lives in the context: streams, events, modules, functions and memory. It is
/// inactive afterwards. Its streams are idle.
void tear_down(Context& context);

/// Fails with CUDA_ERROR_INVALID_VALUE for flags that no context has.
void require_context_flags(unsigned flags);

} // namespace cudamod::emulator
