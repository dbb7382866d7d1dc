/* Control over cudamod's emulated CUDA driver, for tests: what it was called with, what it
 * launched, what shall fail, what is still alive. Exported by libcudamod_emulated_driver.so beside
 * the driver's own functions. Strings and arrays that are handed out live until the same thread
 * asks for the next record. Python has the same as cudamod.emulator. */
#ifndef CUDAMOD_EMULATOR_CONTROL_H
#define CUDAMOD_EMULATOR_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of this interface; it grows with each incompatible change. */
#define CUDAMOD_EMULATOR_CONTROL_VERSION 1
int cudamodEmulatorControlVersion(void);

/* One driver call. */
typedef struct {
    uint64_t index;   /* counts from 0 since the last clear */
    uint64_t thread;  /* the operating system's thread id */
    const char* call; /* name without version suffix */
    const char* arguments;
    int status;
} CudamodEmulatorCall;

/* The journal: off until started, the newest million calls are kept. */
void cudamodEmulatorJournal(int on);
void cudamodEmulatorClearJournal(void);
size_t cudamodEmulatorJournalSize(void);
/* Call `position`, counted from the oldest that is kept; 0 when there is none. */
int cudamodEmulatorReadCall(size_t position, CudamodEmulatorCall* call);

/* One accepted launch. Sizes and offsets are bytes in `parameters`. */
typedef struct {
    uint64_t index; /* counts from 0 since the last clear */
    const char* kernel;
    int device;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* zeros without cluster */
    uint32_t dynamic_shared;
    int cooperative;
    uint64_t stream; /* as the caller gave it */
    const unsigned char* parameters;
    size_t parameter_bytes;
    const uint32_t* offsets;
    const uint32_t* sizes;
    size_t parameter_count;
} CudamodEmulatorLaunch;

/* The launch recorder: off until started, the newest 65,536 launches are kept. */
void cudamodEmulatorRecordLaunches(int on);
void cudamodEmulatorClearLaunches(void);
size_t cudamodEmulatorLaunchCount(void);
int cudamodEmulatorReadLaunch(size_t position, CudamodEmulatorLaunch* launch);
/* Attribute `index` of launch `position`: its number and the 64 bytes of its value; 0 past the
 * last. */
int cudamodEmulatorReadLaunchAttribute(size_t position, size_t index, int* id,
                                       const unsigned char** value);

/* Makes the nth call of `call` from now on (1: the next one) answer `status` without running. "*"
 * is any call. 0 when an argument is wrong. */
int cudamodEmulatorInject(const char* call, uint64_t nth, int status);
void cudamodEmulatorClearInjections(void);
/* How many injected failures have not happened yet. */
size_t cudamodEmulatorInjectionsLeft(void);

/* Live objects: family `position` in a fixed order, its name and count; 0 past the last. Variables
 * of modules are not counted as memory. */
int cudamodEmulatorLiveCount(size_t position, const char** family, size_t* count);

/* Null-launch mode: launches are counted and return at once. Set by CUDAMOD_EMULATOR_NULL_LAUNCH=1
 * before the driver is opened, cuGetProcAddress gives out entry points that do nothing else. */
void cudamodEmulatorNullLaunch(int on);
uint64_t cudamodEmulatorNullLaunches(void);

/* Devices as CUDAMOD_EMULATOR_DEVICES chose them; before cuInit there are none. 0 past the last. */
int cudamodEmulatorDevice(size_t ordinal, const char** architecture, const char** name);

/* Architecture `position` that a device may have; 0 past the last. Works before cuInit. */
int cudamodEmulatorProfile(size_t position, const char** architecture);

/* What kernels did wrong: their faults, and what checks found. `address` is a device address, or an
 * offset in shared memory; it is there if `has_address`. `line` 0: no single instruction is at
 * fault. The newest 10,000 are kept. */
typedef struct {
    const char *kind, *kernel, *instruction, *text;
    int line; /* of the PTX */
    uint32_t block[3], thread[3];
    int has_address;
    uint64_t address;
} CudamodEmulatorFinding;
int cudamodEmulatorReadFinding(size_t position, CudamodEmulatorFinding* finding);
void cudamodEmulatorClearFindings(void);

/* The checks of launches from now on, by name: "uninitialized", "races", "barriers", "streams",
 * "all", with commas; "" for none. 0 when a name is unknown. In the strict manner a finding is a
 * fault. */
int cudamodEmulatorChecks(const char* names);

/* Back to a fresh start as far as control goes: journal, recorder, injections and findings off and
 * empty, checks as the environment has them, faults of contexts forgotten. Objects stay alive. */
void cudamodEmulatorReset(void);

/* Row `position` of the table of behaviours: what the driver does, and how it is known (measured on
 * a card, documented, assumed). 0 past the last. */
int cudamodEmulatorBehaviour(size_t position, const char** topic, const char** basis,
                             const char** behaviour);

#ifdef __cplusplus
}
#endif

#endif
