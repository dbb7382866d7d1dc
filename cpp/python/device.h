#pragma once

#include "python/instance.h"

namespace cudamod::python {

/// Python's `Device`: one object per ordinal and process.
struct Device {
    int ordinal;
};

/// Python's `DeviceProperties`: the driver's attributes by name.
struct DeviceProperties {
    int ordinal;
};

/// The object of an ordinal. Throws ValueError when there is no such device.
nb::object device_object(int ordinal);

/// The ordinal that a `Device`, an int or None (the current device, else 0) stands for.
int ordinal_of(nb::handle device);

} // namespace cudamod::python
