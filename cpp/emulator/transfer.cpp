#include "emulator/transfer.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/scheduler.h"
#include "emulator/stream.h"

#include <cstring>
#include <vector>

namespace cudamod::emulator {
namespace {

bool pageable(const Transfer::Side& side) {
    return !side.span.allocation;
}

bool on_device(const Transfer::Side& side) {
    return side.span.allocation && side.span.allocation->kind == MemoryKind::device;
}

void move(const Transfer& transfer) {
    for (std::size_t row = 0; row < transfer.height; ++row) {
        std::byte* const to = transfer.to.span.host + row * transfer.to.pitch;
        const std::byte* const from = transfer.from.span.host + row * transfer.from.pitch;
        std::memmove(to, from, transfer.width);
        note_copied(transfer.to.span.allocation.get(), to, transfer.from.span.allocation.get(),
                    from, transfer.width);
    }
}

/// The same transfer from a copy of its source, which is owned by it.
std::shared_ptr<std::vector<std::byte>> stage(Transfer& transfer) {
    auto staged = std::make_shared<std::vector<std::byte>>(transfer.width * transfer.height);
    Transfer copy = transfer;
    copy.to = {{nullptr, staged->data()}, transfer.width};
    move(copy);
    transfer.from = copy.to;
    return staged;
}

} // namespace

bool require_live(const Span& span, Context& context, const char* what) {
    if (!span.allocation || span.allocation->live()) return true;
    std::lock_guard lock(driver_mutex());
    record_fault(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                 std::string(what) + " touches memory that was freed before: " +
                     address_space().explain(span.allocation->begin));
    return false;
}

void enqueue(Transfer transfer, const std::shared_ptr<Stream>& stream, HostOrder order) {
    const bool asynchronous = order == HostOrder::asynchronous;
    const bool waits =
        asynchronous ? pageable(transfer.to) : !on_device(transfer.to) || !on_device(transfer.from);
    std::shared_ptr<std::vector<std::byte>> staged;
    if (!waits && pageable(transfer.from)) staged = stage(transfer);
    Work work;
    work.what = "copy";
    work.task = [transfer, staged, context = stream->context] {
        if (require_live(transfer.to.span, *context, "A copy") &&
            require_live(transfer.from.span, *context, "A copy"))
            move(transfer);
    };
    if (!waits) {
        stream->push(std::move(work));
        stream->make_room();
        return;
    }
    scheduler().run(stream, std::move(work));
    std::lock_guard lock(driver_mutex());
    require_healthy(*stream->context);
}

} // namespace cudamod::emulator
