#include "handles/host_function.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/capture.h"
#include "handles/context.h"
#include "handles/destruction.h"

namespace cudamod::handles {

std::atomic<long> pending_host_functions{0};

void enqueue(const StreamHandle& stream, const HostFunction& function, bool& captured) {
    ContextScope scope(box_of<StreamBox>(stream).context);
    auto capture = capture_of(*stream);
    pending_host_functions.fetch_add(1, std::memory_order_relaxed);
    try {
        if (capture) {
            retain(capture->graph, function.data, function.release);
            captured = true;
        }
        driver::check(driver::table.cuLaunchHostFunc(*stream, function.run, function.data),
                      "cuLaunchHostFunc",
                      [&] { return describe(StreamBox::kKind, value_of(*stream)); });
    } catch (...) {
        if (!captured) finished();
        throw;
    }
}

} // namespace cudamod::handles
