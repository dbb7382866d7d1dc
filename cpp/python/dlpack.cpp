#include "python/dlpack.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/event.h"
#include "python/dlpack_abi.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"

#include <memory>
#include <optional>

namespace cudamod::python {

namespace {

using namespace dlpack;

/// A tensor of the buffer's bytes and what their memory lives by: closing the buffer doesn't take
/// it from the consumer. `Managed` is one of DLPack's two.
template <class Managed>
struct Export {
    Managed managed{};
    std::int64_t shape;
    std::int64_t stride = 1;
    handles::DeviceMemoryHandle memory;
    PyObject* owner;

    explicit Export(const Buffer& buffer) : shape(static_cast<std::int64_t>(buffer.size)) {
        auto [type, id] = dlpack_device(buffer);
        managed.dl_tensor.data = reinterpret_cast<void*>(buffer.address);
        managed.dl_tensor.device = {type, id};
        managed.dl_tensor.ndim = 1;
        managed.dl_tensor.dtype = {kDLUInt, 8, 1};
        managed.dl_tensor.shape = &shape;
        managed.dl_tensor.strides = &stride;
        if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
        managed.manager_ctx = this;
        managed.deleter = release;
        memory = buffer.memory;
        owner = nb::object(buffer.owner).release().ptr();
    }

    /// The consumer calls this from any thread, perhaps when the interpreter is gone.
    static void release(Managed* managed) {
        auto* self = static_cast<Export*>(managed->manager_ctx);
        if (Py_IsInitialized() && (!finalizing() || PyGILState_Check())) {
            PyGILState_STATE state = PyGILState_Ensure();
            Py_DECREF(self->owner);
            PyGILState_Release(state);
        }
        delete self;
    }
};

template <class Managed>
nb::object capsule(const Buffer& buffer, const char* name, PyCapsule_Destructor unused) {
    auto made = std::make_unique<Export<Managed>>(buffer);
    PyObject* object = PyCapsule_New(&made->managed, name, unused);
    if (!object) {
        Export<Managed>::release(&made.release()->managed);
        throw nb::python_error();
    }
    made.release();
    return nb::steal(object);
}

/// A capsule that nobody consumed still owns its tensor.
void release_unused(PyObject* object) {
    if (void* managed = PyCapsule_IsValid(object, "dltensor")
                            ? PyCapsule_GetPointer(object, "dltensor")
                            : nullptr)
        Export<DLManagedTensor>::release(static_cast<DLManagedTensor*>(managed));
}

void release_unused_versioned(PyObject* object) {
    if (void* managed = PyCapsule_IsValid(object, "dltensor_versioned")
                            ? PyCapsule_GetPointer(object, "dltensor_versioned")
                            : nullptr)
        Export<DLManagedTensorVersioned>::release(static_cast<DLManagedTensorVersioned*>(managed));
}

/// Lets the consumer's stream wait for the one that the memory was allocated on.
void order(const Buffer& buffer, nb::handle stream) {
    std::uintptr_t consumer = 1; // None stands for the legacy default stream
    if (!stream.is_none()) {
        if (stream.equal(nb::int_(-1))) return; // the consumer wants no synchronisation
        consumer = raw_argument(stream, "__dlpack__: stream");
        if (consumer == 0)
            throw nb::value_error("__dlpack__: stream must be -1 or a positive handle, not 0");
    }
    if (!buffer.memory) return;
    handles::StreamHandle freed_on =
        handles::box_of<handles::DeviceMemoryBox>(buffer.memory).free_on;
    if (!freed_on) return; // memory of no stream
    const handles::StreamBox& producer = handles::box_of<handles::StreamBox>(freed_on);
    if (reinterpret_cast<std::uintptr_t>(producer.raw) == consumer) return;
    handles::ContextScope scope(producer.context);
    handles::EventHandle event =
        handles::create_event(producer.context, producer.device, CU_EVENT_DISABLE_TIMING);
    driver::check(driver::table.cuEventRecord(*event, producer.raw), "cuEventRecord", "__dlpack__");
    driver::check(driver::table.cuStreamWaitEvent(reinterpret_cast<CUstream>(consumer), *event, 0),
                  "cuStreamWaitEvent", "__dlpack__");
}

} // namespace

std::pair<int, int> dlpack_device(const Buffer& buffer) {
    if (buffer.device >= 0) return {kDLCUDA, buffer.device};
    if (buffer.device == kNoDevice) return {kDLCPU, 0};
    return {buffer.managed ? kDLCUDAManaged : kDLCUDAHost, 0};
}

nb::object export_dlpack(const Buffer& buffer, nb::handle stream, nb::handle max_version,
                         nb::handle device, nb::handle copy) {
    if (!copy.is_none() && nb::bool_(copy))
        throw nb::buffer_error("__dlpack__: copy=True is not supported");
    if (!device.is_none()) {
        auto [type, id] = dlpack_device(buffer);
        if (!device.equal(nb::make_tuple(type, id)))
            throw nb::buffer_error("__dlpack__: the buffer can't be moved to another device");
    }
    bool versioned = !max_version.is_none() &&
                     int_argument(nb::object(max_version[0]), "__dlpack__: max_version[0]") >= 1;
    order(buffer, stream);
    return versioned ? capsule<DLManagedTensorVersioned>(buffer, "dltensor_versioned",
                                                         release_unused_versioned)
                     : capsule<DLManagedTensor>(buffer, "dltensor", release_unused);
}

} // namespace cudamod::python
