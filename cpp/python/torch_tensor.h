#pragma once

#include "python/dlpack_abi.h"

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// Reads torch's tensors by the C functions that torch keeps stable for compiled models. They cost
/// a tenth of its DLPack table, which takes the interpreter lock and counts references for each
/// tensor. What they are given is the place of the C++ tensor inside the Python object, which torch
/// doesn't promise: `decide` compares it, and every answer, with what torch says otherwise, and
/// without that proof nothing is read.
class TorchReader {
  public:
    /// Address and device of a tensor in a CUDA device's memory. False, without a Python error, for
    /// any other tensor and for what torch can't tell. `tensor` is of a type that derives from
    /// torch's.
    bool read(PyObject* tensor, std::uint64_t& address, int& device) const noexcept {
        if (state_.load(std::memory_order_acquire) != State::Proven) return false;
        return ask(reinterpret_cast<char*>(tensor) + kPlace, address, device);
    }

    bool undecided() const noexcept {
        return state_.load(std::memory_order_relaxed) == State::Undecided;
    }

    /// Decides whether tensors are read from now on, by what DLPack says of this one; only a plain
    /// `torch.Tensor` with memory of a CUDA device decides. Leaves no Python error.
    void decide(PyObject* tensor, const void* exchange_api) noexcept;

  private:
    enum class State : std::uint8_t { Undecided, Deciding, Proven, Refused };
    static constexpr std::size_t kPlace = sizeof(PyObject);

    bool find_functions() noexcept;
    bool proven_by(PyObject* tensor, const dlpack::DLTensor& described) noexcept;
    bool ask(const void* place, std::uint64_t& address, int& device) const noexcept {
        std::int32_t kind = 0, index = 0;
        void* data = nullptr;
        if (device_type_(place, &kind) != 0 || kind != cuda_ || device_index_(place, &index) != 0 ||
            data_ptr_(place, &data) != 0)
            return false;
        address = reinterpret_cast<std::uint64_t>(data);
        device = index;
        return true;
    }

    using Ask = std::int32_t (*)(const void* place, std::int32_t* answer);
    std::atomic<State> state_{State::Undecided};
    std::int32_t cuda_ = 0; // torch's number for the kind of device
    Ask device_type_ = nullptr, device_index_ = nullptr;
    std::int32_t (*data_ptr_)(const void* place, void** answer) = nullptr;
};

inline constinit TorchReader torch_reader;

/// Whether values of the type are torch's tensors.
bool is_torch_tensor(PyTypeObject* type);

} // namespace cudamod::python
