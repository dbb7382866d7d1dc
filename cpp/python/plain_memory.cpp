#include "python/memory_resource.h"

#include "python/bindings.h"

#include "handles/context.h"
#include "handles/device_memory.h"
#include "python/buffer.h"
#include "python/integer_argument.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <string>
#include <utility>

namespace cudamod::python {

namespace {

/// A resource without a pool, whose memory comes at once: pinned, or a device's that has no pools.
struct PlainMemory : MemoryResource {
    int device; // -1: pinned
};

constexpr const char* kPlainMemoryOrigin = "Use DeviceMemoryResource or Device.memory_resource.";
PyType_Slot plain_memory_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(refuse_new<kPlainMemoryOrigin>)},
    {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
    {0, nullptr}};

handles::StreamHandle plain_memory_stream(nb::handle stream) {
    return open_handle(*instance<Stream>(stream_argument(stream).ptr()));
}

nb::object allocate_plain(nb::handle self, nb::handle size_object, nb::handle stream) {
    begin_public_call();
    const PlainMemory& resource = self_of<PlainMemory>(self);
    std::size_t size =
        size_argument(size_object, (std::string(class_name(self)) + ".allocate: size").c_str());
    handles::StreamHandle order;
    if (!stream.is_none()) order = plain_memory_stream(stream);
    handles::DeviceMemoryHandle memory;
    if (size && resource.device >= 0) {
        if (!order) order = handles::default_stream(resource.device, false);
        memory = handles::allocate_at_once(order, size);
    } else if (size) {
        CUcontext context =
            order ? handles::box_of<handles::StreamBox>(order).context : handles::current_context();
        if (!context)
            throw std::runtime_error(std::string(class_name(self)) +
                                     ".allocate: no context is current; call Device.set_current() "
                                     "first, or pass a stream");
        memory = handles::allocate_pinned(context, order, size);
    }
    return buffer_of(std::move(memory), resource.device, false, nb::borrow(self));
}

void deallocate_plain(nb::handle self, nb::handle ptr, nb::handle size, nb::handle stream) {
    begin_public_call();
    const PlainMemory& resource = self_of<PlainMemory>(self);
    std::string what = std::string(class_name(self)) + ".deallocate: ";
    std::uint64_t raw = raw_argument(ptr, (what + "ptr").c_str());
    size_argument(size, (what + "size").c_str());
    handles::StreamHandle order;
    if (!stream.is_none()) order = plain_memory_stream(stream);
    if (!raw) return;
    refuse_owned(raw, what);
    CUcontext context = order                  ? handles::box_of<handles::StreamBox>(order).context
                        : resource.device >= 0 ? handles::primary_context(resource.device)
                                               : handles::current_context();
    if (!context) throw std::runtime_error(what + "no context is current; pass a stream");
    handles::free_at_once(context, order, raw, resource.device < 0);
}

nb::object new_plain(nb::handle type, int device) {
    return nb::steal(make_in<PlainMemory>(class_of<PlainMemory>(type), PlainMemory{{}, device}));
}

} // namespace

void bind_plain_memory(nb::module_& module) {
    nb::class_<PlainMemory, MemoryResource>(module, "PlainMemory",
                                            nb::type_slots(plain_memory_slots),
                                            "A memory resource without a pool.")
        .def("allocate", allocate_plain, nb::arg("size").none(), nb::kw_only(),
             nb::arg("stream") = nb::none(),
             nb::sig("def allocate(self, size: int, *, stream: object = None) -> Buffer"),
             "`size` bytes, at once. `stream` is waited for before they are freed.")
        .def(
            "deallocate", deallocate_plain, nb::arg("ptr").none(), nb::arg("size").none(),
            nb::kw_only(), nb::arg("stream") = nb::none(),
            nb::sig("def deallocate(self, ptr: int, size: int, *, stream: object = None) -> None"),
            "Frees memory that no Buffer owns, once `stream` has run. Raises ValueError for memory "
            "that one owns.")
        .def_prop_ro("is_device_accessible", [](const PlainMemory&) { return true; })
        .def_prop_ro("is_host_accessible", [](const PlainMemory& self) { return self.device < 0; })
        .def_prop_ro("device_id", [](const PlainMemory& self) { return self.device; })
        .def("__reduce__", refuse_pickling, nb::sig("def __reduce__(self) -> str"));
    module.def("new_plain_memory", new_plain, nb::arg("type"), nb::arg("device"),
               nb::sig("def new_plain_memory(type: type[_Plain], device: int) -> _Plain"));
}

} // namespace cudamod::python
