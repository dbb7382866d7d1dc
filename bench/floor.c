/* The C floors: driver calls in a loop, without Python. Compiled by conftest.py when benchmarks
 * run. */
#include <stdint.h>
#include <time.h>

/* Eleven are what cuLaunchKernel takes; a function of fewer doesn't look at the rest. */
typedef int (*Call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                    uintptr_t, uintptr_t, uintptr_t, uintptr_t);
typedef int (*GetKernel)(uintptr_t*, uintptr_t, const char*);
typedef int (*Load)(uintptr_t*, const void*, void*, void*, unsigned, void*, void*, unsigned);
typedef int (*Unload)(uintptr_t);

static int apply(Call call, const uintptr_t* a) {
    return call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Nanoseconds per call of a function with up to eleven integer or pointer arguments, or -status. */
double floor_call(Call call, long times, const uintptr_t* a) {
    double begin = now();
    for (long i = 0; i < times; ++i) {
        int status = apply(call, a);
        if (status) return -status;
    }
    return (now() - begin) / times;
}

/* The same for two calls in turn, such as a launch and the wait for it. */
double floor_pair(Call first, const uintptr_t* a, Call second, const uintptr_t* b, long times) {
    double begin = now();
    for (long i = 0; i < times; ++i) {
        int status = apply(first, a);
        if (!status) status = apply(second, b);
        if (status) return -status;
    }
    return (now() - begin) / times;
}

/* A library loaded, one of its kernels asked for, the library unloaded. */
double floor_library(Load load, GetKernel get_kernel, Unload unload, const void* image,
                     const char* name, long times) {
    double begin = now();
    for (long i = 0; i < times; ++i) {
        uintptr_t library = 0, kernel = 0;
        int status = load(&library, image, 0, 0, 0, 0, 0, 0);
        if (!status) status = get_kernel(&kernel, library, name);
        if (!status) status = unload(library);
        if (status) return -status;
    }
    return (now() - begin) / times;
}
