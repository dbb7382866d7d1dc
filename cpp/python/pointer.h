#pragma once

#include "python/argument.h"
#include "python/dlpack_abi.h"

namespace cudamod::python {

/// Device addresses from other libraries' arrays. Each writes the address or fails with a Python
/// error set: host memory and memory of another device are refused.

/// A tensor that DLPack describes as lying elsewhere than on the launch's device.
bool pointer_elsewhere(PyObject* value, const dlpack::DLDevice& device, std::uint64_t address,
                       std::byte* cell, const ArgumentSite& site);
/// Whether a tensor with the address null has elements on a device, as torch's fake tensors have;
/// an empty one has none.
bool lacks_memory(const dlpack::DLTensor& tensor);
bool without_memory(PyObject* value, const ArgumentSite& site);
/// A tensor that its framework failed to describe; sets an error unless there is one.
bool not_described(PyObject* value, const ArgumentSite& site);
/// CuPy tells address and device of an array apart, in a tenth of the time of its interface, which
/// asks for the current stream as well. False, without a Python error, when the array is not seen
/// to lie on the launch's device.
bool pointer_from_cupy(PyObject* value, std::byte* cell, const ArgumentSite& site);
bool pointer_from_cuda_array(PyObject* value, std::byte* cell, const ArgumentSite& site);
bool pointer_from_buffer(const Buffer& buffer, std::byte* cell, const ArgumentSite& site);

/// The address of an object that only has DLPack's methods; asks for no synchronisation.
bool pointer_from_dlpack_methods(PyObject* value, std::byte* cell, const ArgumentSite& site);

/// The DLPack C exchange table that a type publishes, or null. Never fails.
const void* dlpack_exchange_api(PyTypeObject* type);

} // namespace cudamod::python
