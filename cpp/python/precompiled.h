/// What most of this folder reads, compiled once. No source includes it: each includes what it
/// uses.
#pragma once

#include <nanobind/nanobind.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>
