/* Tensors of a framework in C, for benchmarks: DLPack's C exchange API over a plain Python object.
   Every tensor lies at the same address of device 0, and the current stream is the one last set. */
#include <stdint.h>
#include <string.h>

struct tensor {
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t dtype[4];
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

static void* address;
static void* stream;

void set_tensor(void* data, void* work_stream) {
    address = data;
    stream = work_stream;
}

int describe(void* object, struct tensor* out) {
    (void)object;
    memset(out, 0, sizeof *out);
    out->data = address;
    out->device_type = 2;
    return 0;
}

int current_work_stream(int32_t device_type, int32_t device_id, void** out) {
    (void)device_type, (void)device_id;
    *out = stream;
    return 0;
}

/* torch's own functions, for a stand-in of its tensors: the place is that of a slot which holds a
   bytes object, whose bytes (address, kind and number of the device) begin behind a header of 32.
 */
struct innards {
    void* data;
    int32_t kind, index;
};

static struct innards* innards(char** place) {
    return (struct innards*)(*place + 32);
}

int32_t aoti_torch_device_type_cuda(void) {
    return 1;
}

int32_t aoti_torch_get_device_type(char** place, int32_t* kind) {
    *kind = innards(place)->kind;
    return 0;
}

int32_t aoti_torch_get_device_index(char** place, int32_t* index) {
    *index = innards(place)->index;
    return 0;
}

int32_t aoti_torch_get_data_ptr(char** place, void** out) {
    *out = innards(place)->data;
    return 0;
}
