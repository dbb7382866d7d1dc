// A stand-in for libcuda, shaped by macros. It knows only the functions that the tests of the
// driver layer call; everything else is unknown to it. Written without cuda.h, as a driver of any
// version.
#include <cstdint>
#include <cstring>

#ifndef STAND_IN_VERSION // 13000 for CUDA 13.0
#define STAND_IN_VERSION 13000
#endif
#ifndef STAND_IN_VERSION_STATUS // what cuDriverGetVersion answers
#define STAND_IN_VERSION_STATUS 0
#endif
#ifndef STAND_IN_INIT_STATUS // what cuInit answers
#define STAND_IN_INIT_STATUS 0
#endif
#ifndef STAND_IN_DEVICES
#define STAND_IN_DEVICES 1
#endif
#ifndef STAND_IN_LACKS // a function that this driver lacks in spite of its version
#define STAND_IN_LACKS ""
#endif

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kFileNotFound = 301;
constexpr int kNotFound = 500;

int initialized = 0;

using LogCallback = void (*)(void* data, int level, char* message, std::size_t length);
LogCallback log_callback = nullptr;
void* log_data = nullptr;

void say(const char* text) {
    if (log_callback == nullptr) return;
    char copy[256];
    std::strcpy(copy, text);
    log_callback(log_data, 0, copy, std::strlen(copy));
}

int log_register(LogCallback callback, void* data, void** handle) {
    log_callback = callback;
    log_data = data;
    *handle = &log_callback;
    return 0;
}

int device_get(int* device, int ordinal) {
    if (ordinal >= STAND_IN_DEVICES) {
        say("Device ordinal is beyond the last device");
        say("Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGet");
        return 101;
    }
    *device = ordinal;
    return 0;
}

int device_count(int* count) {
    *count = STAND_IN_DEVICES;
    return 0;
}

int device_name(char* name, int size, int) {
    std::strncpy(name, "stand-in", static_cast<std::size_t>(size));
    return 0;
}

int device_attribute(int* value, int attribute, int) {
    if (attribute == 1) {
        // Fails silently; an earlier call's words must not be taken for this one's.
        return kInvalidValue;
    }
    *value = attribute * 10;
    return 0;
}

int memory_allocate(std::uint64_t* address, std::size_t size) {
    if (size > 1u << 30) return kOutOfMemory;
    *address = 0x7f0000000000;
    return 0;
}

int memory_info(std::size_t* free, std::size_t* total) {
    *free = 1;
    *total = 2;
    return 0;
}

int library_from_file(void**, const char* path, int*, void**, unsigned, int*, void**, unsigned) {
    return std::strcmp(path, "missing.cubin") == 0 ? kFileNotFound : kInvalidValue;
}

int parameter_info(void*, std::size_t index, std::size_t* offset, std::size_t* size) {
    *offset = index * 8;
    *size = 8;
    return 0;
}

int stream_is_capturing(void*, int* status) {
    *status = 1;
    return 0;
}

int event_elapsed(float* milliseconds, void*, void*) {
    *milliseconds = 1.5f;
    return 0;
}

int context_create_old(void** context, unsigned, int) {
    *context = reinterpret_cast<void*>(0x2);
    return 0;
}

int context_create_new(void** context, void* parameters, unsigned, int) {
    *context = reinterpret_cast<void*>(parameters == nullptr ? 0x4 : 0x5);
    return 0;
}

int error_name(int status, const char** text) {
    *text = status == 4321 ? "CUDA_ERROR_OF_THE_FUTURE" : "SEEN_ONLY_WHEN_THE_HEADER_LACKS_IT";
    return 0;
}

int error_string(int status, const char** text) {
    *text = status == kInvalidValue ? "invalid argument" : "another error";
    return 0;
}

struct Entry {
    const char* name;
    int since;
    void* function;
};

extern "C" int cuInit(unsigned);
extern "C" int cuDriverGetVersion(int*);

template <class Function>
void* address(Function* function) {
    return reinterpret_cast<void*>(function);
}

const Entry entries[] = {
    {"cuInit", 2000, address(cuInit)},
    {"cuDriverGetVersion", 2020, address(cuDriverGetVersion)},
    {"cuDeviceGet", 2000, address(device_get)},
    {"cuDeviceGetCount", 2000, address(device_count)},
    {"cuDeviceGetName", 2000, address(device_name)},
    {"cuDeviceGetAttribute", 2000, address(device_attribute)},
    {"cuMemAlloc", 3020, address(memory_allocate)},
    {"cuMemGetInfo", 3020, address(memory_info)},
    {"cuLibraryLoadFromFile", 12000, address(library_from_file)},
    {"cuKernelGetParamInfo", 12040, address(parameter_info)},
    {"cuStreamIsCapturing", 10000, address(stream_is_capturing)},
    {"cuEventElapsedTime", 2000, address(event_elapsed)},
    {"cuCtxCreate", 3020, address(context_create_old)},
    {"cuCtxCreate", 12050, address(context_create_new)},
    {"cuGetErrorName", 6000, address(error_name)},
    {"cuGetErrorString", 6000, address(error_string)},
    {"cuLogsRegisterCallback", 12080, address(log_register)},
};

} // namespace

extern "C" int cuInit(unsigned flags) {
    initialized = STAND_IN_INIT_STATUS == 0;
    return flags == 0 ? STAND_IN_INIT_STATUS : kInvalidValue;
}

extern "C" int cuDriverGetVersion(int* version) {
    *version = STAND_IN_VERSION;
    return STAND_IN_VERSION_STATUS;
}

extern "C" int cuDeviceGetCount(int* count) {
    return initialized ? device_count(count) : 3;
}

// Like the real one: the newest function that this driver has, up to the version asked for, even
// when a newer one of another type is what the caller thinks of.
extern "C" int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t,
                                   int* status) {
    *function = nullptr;
    if (std::strcmp(name, STAND_IN_LACKS) != 0)
        for (const Entry& entry : entries)
            if (std::strcmp(name, entry.name) == 0 && entry.since <= version &&
                entry.since <= STAND_IN_VERSION)
                *function = entry.function;
    if (status != nullptr) *status = *function == nullptr ? 1 : 0;
    return *function == nullptr ? kNotFound : 0;
}
