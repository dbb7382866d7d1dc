#include "emulator/device.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/pool.h"
#include "emulator/settings.h"

#include <cstdio>
#include <cstring>

namespace cudamod::emulator {
namespace {

std::vector<std::unique_ptr<Device>>& device_list() {
    static auto* const devices = new std::vector<std::unique_ptr<Device>>;
    return *devices;
}

// Recognisable, stable, different for each ordinal and architecture.
CUuuid make_uuid(int ordinal, const Profile& profile) {
    CUuuid uuid{};
    std::memcpy(uuid.bytes, "cudamod-emul", 12);
    uuid.bytes[13] = static_cast<char>(profile.capability() >> 8);
    uuid.bytes[14] = static_cast<char>(profile.capability());
    uuid.bytes[15] = static_cast<char>(ordinal);
    return uuid;
}

/// Each device has a bus of its own and the profile's place on it.
int pci_bus(const Device& device) {
    return device.profile->attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) + device.ordinal;
}

int pci_slot(const Device& device) {
    return device.profile->attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}

} // namespace

const std::vector<std::unique_ptr<Device>>& devices() {
    return device_list();
}

void create_devices() {
    std::vector<std::unique_ptr<Device>> made;
    for (const std::string& architecture : settings().devices) {
        const Profile* profile = find_profile(architecture);
        if (!profile) {
            std::fprintf(stderr, "cudamod: emulated driver: no profile of a device '%s'\n",
                         architecture.c_str());
            fail(CUDA_ERROR_NO_DEVICE, "There is no profile of a device '%s'",
                 architecture.c_str());
        }
        auto device = std::make_unique<Device>();
        device->ordinal = static_cast<int>(made.size());
        device->profile = profile;
        device->uuid = make_uuid(device->ordinal, *profile);
        device->total_bytes = settings().memory_bytes;
        made.push_back(std::move(device));
    }
    for (const auto& device : made) {
        device->primary = make_primary_context(*device);
        device->default_pool = device->current_pool = make_default_pool(*device);
    }
    device_list() = std::move(made);
}

Device& device_at(CUdevice ordinal) {
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= device_list().size()) {
        fail(CUDA_ERROR_INVALID_DEVICE, "There is no device %d; this driver has %zu", ordinal,
             device_list().size());
    }
    return *device_list()[static_cast<std::size_t>(ordinal)];
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuDeviceGet(CUdevice* device, int ordinal) {
    return locked_call(
        "cuDeviceGet",
        [&] {
            require_pointer(device, "the device");
            *device = device_at(ordinal).ordinal;
        },
        device, ordinal);
}

CUDAMOD_API cuDeviceGetCount(int* count) {
    return locked_call(
        "cuDeviceGetCount",
        [&] {
            require_pointer(count, "the count");
            *count = static_cast<int>(devices().size());
        },
        count);
}

CUDAMOD_API cuDeviceGetName(char* name, int length, CUdevice device) {
    return locked_call(
        "cuDeviceGetName",
        [&] {
            require_pointer(name, "the name");
            if (length <= 0)
                fail(CUDA_ERROR_INVALID_VALUE, "The name has no room: length %d", length);
            std::snprintf(name, static_cast<std::size_t>(length), "%s",
                          device_at(device).profile->name.c_str());
        },
        static_cast<const void*>(name), length, device);
}

CUDAMOD_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return locked_call(
        "cuDeviceGetUuid",
        [&] {
            require_pointer(uuid, "the uuid");
            *uuid = device_at(device).uuid;
        },
        uuid, device);
}
CUDAMOD_API_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

CUDAMOD_API cuDeviceGetLuid(char* luid, unsigned int* node_mask, CUdevice device) {
    return locked_call(
        "cuDeviceGetLuid",
        [&] {
            device_at(device);
            fail(CUDA_ERROR_NOT_SUPPORTED, "Locally unique ids exist on Windows alone");
        },
        static_cast<const void*>(luid), node_mask, device);
}

CUDAMOD_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    return locked_call(
        "cuDeviceTotalMem",
        [&] {
            require_pointer(bytes, "the size");
            *bytes = device_at(device).total_bytes;
        },
        bytes, device);
}

CUDAMOD_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
    return locked_call(
        "cuDeviceGetAttribute",
        [&] {
            require_pointer(value, "the value");
            const Device& device = device_at(ordinal);
            const auto found = device.profile->attributes.find(static_cast<int>(attribute));
            if (found == device.profile->attributes.end()) {
                fail(CUDA_ERROR_INVALID_VALUE, "Device attribute %d is unknown to this driver",
                     static_cast<int>(attribute));
            }
            *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? pci_bus(device) : found->second;
        },
        value, static_cast<int>(attribute), ordinal);
}

CUDAMOD_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    return locked_call(
        "cuDeviceComputeCapability",
        [&] {
            require_pointer(major, "the major number");
            require_pointer(minor, "the minor number");
            *major = device_at(device).profile->major;
            *minor = device_at(device).profile->minor;
        },
        major, minor, device);
}

CUDAMOD_API cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    return locked_call(
        "cuDeviceGetPCIBusId",
        [&] {
            require_pointer(text, "the bus id");
            if (length < 13)
                fail(CUDA_ERROR_INVALID_VALUE, "A bus id takes 13 bytes, not %d", length);
            std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:%02x.0",
                          pci_bus(device_at(device)), pci_slot(device_at(device)));
        },
        static_cast<const void*>(text), length, device);
}

CUDAMOD_API cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
    return locked_call(
        "cuDeviceGetByPCIBusId",
        [&] {
            require_pointer(device, "the device");
            require_pointer(text, "the bus id");
            unsigned domain = 0, bus = 0, slot = 0;
            if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
                std::sscanf(text, "%x:%x", &bus, &slot) != 2) {
                fail(CUDA_ERROR_INVALID_VALUE, "'%s' is no bus id", text);
            }
            for (const auto& candidate : devices()) {
                if (!domain && static_cast<int>(slot) == pci_slot(*candidate) &&
                    static_cast<int>(bus) == pci_bus(*candidate)) {
                    *device = candidate->ordinal;
                    return;
                }
            }
            fail(CUDA_ERROR_INVALID_DEVICE, "No device has the bus id '%s'", text);
        },
        device, text);
}

CUDAMOD_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return locked_call(
        "cuDeviceCanAccessPeer",
        [&] {
            require_pointer(can, "the answer");
            *can = device_at(device).ordinal != device_at(peer).ordinal;
        },
        can, device, peer);
}

CUDAMOD_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                    CUdevice destination) {
    return locked_call(
        "cuDeviceGetP2PAttribute",
        [&] {
            require_pointer(value, "the value");
            if (device_at(source).ordinal == device_at(destination).ordinal) {
                fail(CUDA_ERROR_INVALID_DEVICE, "Device %d is no peer of itself", source);
            }
            *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
        },
        value, static_cast<int>(attribute), source, destination);
}

CUDAMOD_API cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type,
                                           CUdevice device) {
    return locked_call(
        "cuDeviceGetExecAffinitySupport",
        [&] {
            require_pointer(supported, "the answer");
            device_at(device);
            *supported = 0;
        },
        supported, static_cast<int>(type), device);
}
