#pragma once

#include "emulator/api.h"
#include "emulator/graph.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Event;
struct Stream;

/// A capture in progress: what its streams do becomes nodes of its graph. All functions here are
/// called under the driver's lock unless they say otherwise.
struct Capture {
    cuuint64_t id = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::uint64_t thread = 0; ///< that began it
    std::shared_ptr<Graph> graph;
    bool given_graph = false; ///< cuStreamBeginCaptureToGraph: the graph is the caller's
    bool invalidated = false;
    Stream* origin = nullptr;
    std::vector<std::weak_ptr<Stream>> streams; ///< that ever took part
};

/// A stream's part in a capture: what its next node depends on.
struct StreamCapture {
    std::shared_ptr<Capture> capture;
    std::vector<Dependency> tail;
    std::vector<CUgraphNode> reported; ///< what cuStreamGetCaptureInfo gave out
    std::vector<CUgraphEdgeData> reported_edges;
};

/// An event's last recording, when that was inside a capture.
struct EventCapture {
    std::weak_ptr<Capture> capture; ///< empty: it has ended
    std::vector<Dependency> tail;
};

/// Begins a capture of a stream that is not captured; null: into a new graph.
void begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                   std::shared_ptr<Graph> graph, std::vector<Dependency> tail);

/// The capture is over: its streams are ordinary ones again.
void finish_capture(const std::shared_ptr<Capture>& capture);

/// Adds those that are not there yet.
void extend(std::vector<Dependency>& tail, const std::vector<Dependency>& more);

/// The capture of a blocking stream of the context, for which the legacy stream would wait; or
/// null.
std::shared_ptr<Capture> implicit_capture(const Context& context);

/// What cuThreadExchangeStreamCaptureMode changes.
extern thread_local CUstreamCaptureMode thread_capture_mode;

/// The one decision of every asynchronous operation: true when the stream captures and the
/// operation has become a node of its graph; false when it is to be enqueued. Fails with
/// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, and with CUDA_ERROR_STREAM_CAPTURE_IMPLICIT in the legacy
/// stream while a blocking stream of its context captures (which invalidates that capture).
bool capture_into(Stream& stream, Operation operation);

/// Whether capture_into() would capture; fails as it does.
bool captures(const Stream& stream);

/// The same for a launch, with the events that its attributes record.
bool capture_launch(const ValidLaunch& launch, const LaunchRequest& request);

/// The same for the recording of an event and for a wait. A wait on an event of a capture makes the
/// stream part of it. `external`: a node of its own for the graph's launches.
bool capture_record(Stream& stream, const std::shared_ptr<Event>& event, bool external);
bool capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external);

/// For calls that no capture permits: fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and
/// invalidates the stream's capture.
void require_not_capturing(const Stream& stream);
void require_not_capturing(const Context& context);

/// Fails with CUDA_ERROR_CAPTURED_EVENT when the event was last recorded in a capture.
void require_not_captured(const Event& event);

/// Whether this thread may make the call now, by the capture modes: CUDA_SUCCESS, or
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED after invalidating the captures that forbid it. Takes the
/// driver's lock itself.
CUresult admit_in_captures(const char* call);

/// The stream ends: it leaves its capture, which ends with it when it began there.
void abandon_capture(Stream& stream);

/// Whether a capture in progress builds the graph.
bool under_capture(const Graph& graph);

} // namespace cudamod::emulator
