#pragma once

#include "python/argument.h"

namespace cudamod::python {

/// Device addresses from other libraries' arrays. Each writes the address or fails with a Python
/// error set: host memory and memory of another device are refused.

bool pointer_from_dlpack(PyObject* value, const void* exchange_api, std::byte* cell,
                         const ArgumentSite& site);
bool pointer_from_cuda_array(PyObject* value, std::byte* cell, const ArgumentSite& site);
bool pointer_from_buffer(const Buffer& buffer, std::byte* cell, const ArgumentSite& site);

/// The address of an object that only has DLPack's methods; asks for no synchronisation.
bool pointer_from_dlpack_methods(PyObject* value, std::byte* cell, const ArgumentSite& site);

/// The DLPack C exchange table that a type publishes, or null. Never fails.
const void* dlpack_exchange_api(PyTypeObject* type);

} // namespace cudamod::python
