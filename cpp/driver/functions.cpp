#include "driver/functions.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include <cuda.h>
#include <cudaTypedefs.h>

namespace cudamod::driver {
namespace {

template <class Default, class Candidate>
constexpr int version_if_same(int version) {
    return std::is_same_v<Default, Candidate> ? version : 0;
}

constexpr Function kFunctions[] = {
#include "driver_facts.inc"
};

static_assert(std::ranges::all_of(kFunctions, [](const Function& f) { return f.needed() != 0; }),
              "a function of the list has no version whose type is the header's");

} // namespace

std::span<const Function> functions() {
    return kFunctions;
}

std::optional<std::size_t> find_function(std::string_view name) {
    const auto found = std::ranges::find(kFunctions, name, &Function::name);
    if (found == std::end(kFunctions)) return std::nullopt;
    return static_cast<std::size_t>(found - std::begin(kFunctions));
}

} // namespace cudamod::driver
