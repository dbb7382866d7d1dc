#include "python/kernel_attributes.h"

#include "python/bindings.h"

#include "handles/context.h"
#include "python/device.h"
#include "python/gil_released.h"
#include "python/integer_argument.h"
#include "python/public_call.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <string>

namespace cudamod::python {

namespace {

struct Named {
    const char* name;
    CUfunction_attribute id;
    bool is_bool;
    const char* meaning;
};

constexpr Named kNamed[] = {
    {"max_threads_per_block", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, false,
     "The largest block that the kernel can be launched with."},
    {"shared_size_bytes", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, false,
     "Static shared memory per block, in bytes."},
    {"const_size_bytes", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, false,
     "User constant memory, in bytes."},
    {"local_size_bytes", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, false,
     "Local memory per thread, in bytes."},
    {"num_regs", CU_FUNC_ATTRIBUTE_NUM_REGS, false, "Registers per thread."},
    {"ptx_version", CU_FUNC_ATTRIBUTE_PTX_VERSION, false,
     "The architecture of the PTX: 10 * major + minor."},
    {"binary_version", CU_FUNC_ATTRIBUTE_BINARY_VERSION, false,
     "The architecture of the machine code: 10 * major + minor."},
    {"cache_mode_ca", CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, true,
     "Whether global loads are cached in L1 (--dlcm=ca)."},
    {"max_dynamic_shared_size_bytes", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, false,
     "The most dynamic shared memory that a launch may ask for now, in bytes."},
    {"preferred_shared_memory_carveout", CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, false,
     "Percent of L1 wanted as shared memory; -1 is the driver's choice."},
    {"cluster_size_must_be_set", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, true,
     "Whether the kernel needs a cluster size, at compile time or at launch."},
    {"required_cluster_width", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, false,
     "Compile-time cluster dimension x in blocks; 0 for none."},
    {"required_cluster_height", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, false,
     "Compile-time cluster dimension y in blocks; 0 for none."},
    {"required_cluster_depth", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, false,
     "Compile-time cluster dimension z in blocks; 0 for none."},
    {"non_portable_cluster_size_allowed", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, true,
     "Whether a launch may use a cluster size that not every device has."},
    {"cluster_scheduling_policy_preference", CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
     false, "A CUclusterSchedulingPolicy."},
};

/// What the driver lets anybody set; never kept here, since others set it too.
bool is_settable(CUfunction_attribute attribute) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return true;
    default:
        return false;
    }
}

int device_of(const KernelAttributes& self) {
    if (self.device >= 0) return self.device;
    int current = handles::current_device();
    return current < 0 ? 0 : current;
}

/// The value to set: an int, or a bool for what is a truth value.
int value_argument(nb::handle value, const Named& named) {
    const std::string what = std::string("KernelAttributes.") + named.name;
    if (!named.is_bool) return int_argument(value, what.c_str());
    if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
    PyErr_Format(PyExc_TypeError, "%s must be a bool, not %s", what.c_str(),
                 Py_TYPE(value.ptr())->tp_name);
    throw nb::python_error();
}

/// What the stub says of a setter; lives as long as the module.
const char* setter_signature(const Named& named) {
    static std::deque<std::string> signatures;
    return signatures
        .emplace_back(std::string("def ") + named.name +
                      "(self, value: " + (named.is_bool ? "bool" : "int") + ", /) -> None")
        .c_str();
}

template <class Get>
void define(nb::class_<KernelAttributes>& type, const Named& named, Get&& get) {
    if (!is_settable(named.id)) {
        type.def_prop_ro(named.name, get, named.meaning);
        return;
    }
    type.def_prop_rw(
        named.name, get,
        [&named](const KernelAttributes& self, nb::handle value) {
            begin_public_call();
            const int wanted = value_argument(value, named), device = device_of(self);
            std::shared_ptr<const launch::Kernel> kernel = self.kernel;
            GilReleased unlocked;
            kernel->set_attribute(named.id, named.name, wanted, device);
        },
        nb::for_setter(nb::arg("value").none()), nb::for_setter(nb::sig(setter_signature(named))),
        named.meaning);
}

constexpr const char* kOrigin = "Use Kernel.attributes.";
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new<kOrigin>)},
                       {Py_tp_init, reinterpret_cast<void*>(ignore_init)},
                       {0, nullptr}};

} // namespace

AttributeCache::PerDevice& AttributeCache::of(int device) {
    if (device == 0)
        if (PerDevice* known = first_.load(std::memory_order_acquire)) return *known;
    std::lock_guard lock(mutex_);
    auto& slot = devices_[device];
    if (!slot) slot = std::make_unique<PerDevice>();
    if (device == 0) first_.store(slot.get(), std::memory_order_release);
    return *slot;
}

int AttributeCache::read(const launch::Kernel& kernel, CUfunction_attribute attribute, int device) {
    if (is_settable(attribute)) return kernel.attribute(attribute, device);
    PerDevice& cached = of(device);
    auto index = static_cast<std::size_t>(attribute);
    if (cached.known[index].load(std::memory_order_acquire))
        return cached.values[index].load(std::memory_order_relaxed);
    int value = kernel.attribute(attribute, device);
    cached.values[index].store(value, std::memory_order_relaxed);
    cached.known[index].store(true, std::memory_order_release);
    return value;
}

void bind_kernel_attributes(nb::module_& module) {
    auto type = nb::class_<KernelAttributes>(
        module, "KernelAttributes", nb::type_slots(slots), nb::is_weak_referenceable(),
        "What the driver knows of a kernel on the current device, or on another: "
        "`attributes[device]`.\n"
        "Every read raises CUDAError when the kernel can't be loaded there. What the driver lets "
        "be "
        "set can be\n"
        "assigned, for that device; it is never kept here, since others set it too.");
    for (const Named& named : kNamed) {
        if (named.is_bool)
            define(type, named, [id = named.id](const KernelAttributes& self) {
                return self.cache->read(*self.kernel, id, device_of(self)) != 0;
            });
        else
            define(type, named, [id = named.id](const KernelAttributes& self) {
                return self.cache->read(*self.kernel, id, device_of(self));
            });
    }
    type.def(
            "__getitem__",
            [](const KernelAttributes& self, nb::handle device) {
                begin_public_call();
                return make<KernelAttributes>(self.kernel, self.cache, ordinal_of(device));
            },
            nb::arg("device"),
            nb::sig("def __getitem__(self, device: Device | int, /) -> KernelAttributes"),
            "The attributes on another device. Raises ValueError when there is no such device.")
        .def("__repr__", [](const KernelAttributes& self) {
            return "<KernelAttributes kernel='" + self.kernel->name() + "' device=" +
                   (self.device < 0 ? std::string("current") : std::to_string(self.device)) + ">";
        });
}

} // namespace cudamod::python
