#include "python/stream_capture.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/deferred_frees.h"
#include "handles/destruction.h"
#include "python/gil_released.h"
#include "python/graph.h"
#include "python/public_call.h"
#include "python/text.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

namespace cudamod::python {

namespace {

constexpr std::pair<const char*, CUstreamCaptureMode> kModes[] = {
    {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
    {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
    {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED}};

CUstreamCaptureMode mode_of(nb::handle name) {
    if (PyUnicode_Check(name.ptr())) {
        std::string text = utf8_of(name.ptr());
        for (auto [known, mode] : kModes)
            if (text == known) return mode;
    }
    PyErr_Format(PyExc_ValueError,
                 "Stream.begin_capture: mode must be 'global', 'thread_local' or 'relaxed', not %R",
                 name.ptr());
    throw nb::python_error();
}

std::string capture_subject(const handles::StreamHandle& stream) {
    return handles::describe(handles::StreamBox::kKind, handles::value_of(*stream));
}

void begin_capture(const Stream& self, nb::handle mode) {
    begin_public_call();
    handles::StreamHandle stream = open_handle(self);
    CUstreamCaptureMode wanted = mode_of(mode);
    handles::ContextScope scope(handles::box_of<handles::StreamBox>(stream).context);
    driver::check(driver::table.cuStreamBeginCapture(*stream, wanted), "cuStreamBeginCapture",
                  [&] { return capture_subject(stream); });
}

nb::object end_capture(const Stream& self) {
    begin_public_call();
    handles::StreamHandle stream = open_handle(self);
    const handles::StreamBox& box = handles::box_of<handles::StreamBox>(stream);
    handles::ContextScope scope(box.context);
    CUgraph graph = nullptr;
    CUresult status;
    {
        GilReleased unlocked;
        status = driver::table.cuStreamEndCapture(*stream, &graph);
    }
    driver::check(status, "cuStreamEndCapture", [&] { return capture_subject(stream); });
    nb::object made = new_graph(handles::adopt_graph(graph, box.context));
    handles::free_deferred();
    return made;
}

bool is_capturing(const Stream& self) {
    begin_public_call();
    handles::StreamHandle stream = open_handle(self);
    if (*stream == CU_STREAM_LEGACY) return false;
    handles::ContextScope scope(handles::box_of<handles::StreamBox>(stream).context);
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    driver::check(driver::table.cuStreamIsCapturing(*stream, &capture), "cuStreamIsCapturing",
                  [&] { return capture_subject(stream); });
    return capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace

void define_capture(nb::class_<Stream>& type) {
    type.def("begin_capture", begin_capture, nb::arg("mode").none() = "relaxed",
             nb::sig("def begin_capture(self, mode: Literal['global', 'thread_local', 'relaxed'] = "
                     "'relaxed') -> None"),
             "From here on the stream's work becomes nodes of a graph instead of running; streams "
             "that wait for it\n"
             "take part. `mode` says which threads must meanwhile make no call that may wait for "
             "the device: all of\n"
             "them, this one, or none.\n\n"
             "Raises ValueError for another mode, CUDAError for the legacy default stream and for "
             "one that captures.");
    type.def("end_capture", end_capture, nb::sig("def end_capture(self) -> Graph"),
             "Ends the capture and answers its graph. Raises CUDAError when the capture was "
             "invalidated, and when a\n"
             "stream that took part was not joined again.");
    type.def_prop_ro("is_capturing", is_capturing,
                     "Whether the stream is part of a capture that has not ended.");
}

} // namespace cudamod::python
