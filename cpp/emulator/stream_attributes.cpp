#include "emulator/call.h"
#include "emulator/stream.h"

#include <cstring>

using namespace cudamod::emulator;

namespace {

void require_attribute(CUstreamAttrID attribute) {
    switch (attribute) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_STREAM_ATTRIBUTE_PRIORITY:
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return;
    default:
        fail(CUDA_ERROR_INVALID_VALUE, "Attribute %d is none of a stream",
             static_cast<int>(attribute));
    }
}

} // namespace

CUDAMOD_API cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                 CUstreamAttrValue* value) {
    return locked_call(
        "cuStreamGetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto stream = find_stream(handle);
            require_attribute(attribute);
            std::memset(value, 0, sizeof *value);
            if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
            if (attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY)
                value->syncPolicy = CU_SYNC_POLICY_AUTO;
        },
        handle, static_cast<int>(attribute), value);
}

CUDAMOD_API cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                 const CUstreamAttrValue* value) {
    return locked_call(
        "cuStreamSetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto stream = find_stream(handle);
            require_attribute(attribute);
            if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY) {
                if (value->priority > kLeastPriority || value->priority < kGreatestPriority) {
                    fail(CUDA_ERROR_INVALID_VALUE, "Priority %d is out of range [%d, %d]",
                         value->priority, kGreatestPriority, kLeastPriority);
                }
                stream->priority = value->priority;
            }
        },
        handle, static_cast<int>(attribute), value);
}

CUDAMOD_API cuStreamCopyAttributes(CUstream destination, CUstream source) {
    return locked_call(
        "cuStreamCopyAttributes",
        [&] {
            const int priority = find_stream(source)->priority;
            find_stream(destination)->priority = priority;
        },
        destination, source);
}
