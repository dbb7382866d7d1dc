#include "handles/host_function.h"

#include "driver/status.h"
#include "driver/table.h"
#include "handles/capture.h"
#include "handles/context.h"
#include "handles/destruction.h"

namespace cudamod::handles {

void enqueue(const StreamHandle& stream, const HostFunction& function, bool& captured) {
    ContextScope scope(box_of<StreamBox>(stream).context);
    if (auto capture = capture_of(*stream)) {
        retain(capture->graph, function.data, function.release);
        captured = true;
    }
    driver::check(driver::table.cuLaunchHostFunc(*stream, function.run, function.data),
                  "cuLaunchHostFunc",
                  [&] { return describe(StreamBox::kKind, value_of(*stream)); });
}

} // namespace cudamod::handles
