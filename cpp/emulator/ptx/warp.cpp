#include "emulator/ptx/warp.h"

#include "emulator/ptx/block_check.h"
#include "emulator/ptx/worker.h"

#include <algorithm>
#include <cstring>

namespace cudamod::emulator::ptx {
namespace {

constexpr std::size_t kMaxFrameBytes = std::size_t{64} << 20;
constexpr std::uint32_t kMaxCallDepth = 20000;
const Instruction* const kNoLimit = reinterpret_cast<const Instruction*>(~std::uintptr_t{0});

bool runs_before(const Group& a, const Group& b) {
    if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
    return a.pc < b.pc;
}

} // namespace

Frame* Warp::take_frame(const FunctionCode& code) {
    std::unique_ptr<Frame> frame;
    if (free_frames_.empty()) {
        frame = std::make_unique<Frame>();
    } else {
        frame = std::move(free_frames_.back());
        free_frames_.pop_back();
    }
    constexpr std::size_t kAlignment = 64;
    const std::size_t bytes = code.register_bytes + kAlignment;
    if (frame->storage.size() < bytes) frame->storage.resize(bytes);
    const auto start = reinterpret_cast<std::uintptr_t>(frame->storage.data());
    frame->registers = frame->storage.data() + (kAlignment - start % kAlignment) % kAlignment;
    std::memset(frame->registers, 0, code.register_bytes);
    frame->code = &code;
    frame->parent = nullptr;
    frame->local_base = 0;
    frame->depth = 0;
    frame->return_to = nullptr;
    frame->site = nullptr;
    frame_bytes_ += bytes;
    frames_.push_back(std::move(frame));
    return frames_.back().get();
}

void Warp::drop_frame(Frame* frame) {
    frame_bytes_ -= frame->code->register_bytes + 64;
    const auto found = std::find_if(frames_.rbegin(), frames_.rend(),
                                    [&](const auto& held) { return held.get() == frame; });
    std::swap(*found, frames_.back());
    free_frames_.push_back(std::move(frames_.back()));
    frames_.pop_back();
}

void Warp::grow_local(std::uint32_t bytes) {
    if (bytes <= local_stride) return;
    const std::uint32_t stride =
        std::min(std::max((bytes + 15) / 16 * 16, local_stride * 2), kMaxLocalBytes + 16);
    std::vector<std::byte> grown(std::size_t{stride} * kLanes);
    for (unsigned l = 0; local_stride != 0 && l < kLanes; ++l) {
        std::memcpy(grown.data() + std::size_t{l} * stride, local + std::size_t{l} * local_stride,
                    local_stride);
    }
    local_storage_ = std::move(grown);
    local = local_storage_.data();
    local_stride = stride;
}

void Warp::enter(Frame* into) {
    frame = into;
    bases[0] = into->registers;
    local_limit = into->local_base + into->code->local_bytes;
}

void Warp::start(const FunctionCode& entry, std::uint32_t lanes) {
    for (auto& held : frames_)
        free_frames_.push_back(std::move(held));
    frames_.clear();
    frame_bytes_ = 0;
    groups_.clear();
    live = lanes;
    active = 0;
    carry = 0;
    cluster_arrived = 0;
    rotate_ = false;
    Frame* root = take_frame(entry);
    root->lanes = lanes;
    grow_local(entry.local_bytes);
    if (local != nullptr) std::memset(local, 0, std::size_t{local_stride} * kLanes);
    groups_.push_back({root, entry.instructions.data(), lanes, GroupState::Runnable});
}

void Warp::park() {
    if (active == 0) return;
    groups_.push_back({frame, pc, active, GroupState::Runnable});
    active = 0;
}

bool Warp::select_group(bool rotate) {
    Group* best = nullptr;
    if (groups_.size() == 1) {
        if (groups_[0].state == GroupState::Runnable) best = &groups_[0];
    } else {
        for (std::size_t a = 0; a < groups_.size(); ++a) {
            if (groups_[a].state != GroupState::Runnable) continue;
            for (std::size_t b = groups_.size() - 1; b > a; --b) {
                const bool meets = groups_[b].state == GroupState::Runnable &&
                                   groups_[b].frame == groups_[a].frame &&
                                   groups_[b].pc == groups_[a].pc;
                if (!meets) continue;
                groups_[a].mask |= groups_[b].mask;
                groups_[b] = groups_.back();
                groups_.pop_back();
            }
        }
        std::size_t runnable = 0;
        for (Group& group : groups_) {
            if (group.state != GroupState::Runnable) continue;
            ++runnable;
            if (best == nullptr || runs_before(group, *best)) best = &group;
        }
        if (rotate && runnable > 1) {
            std::size_t chosen = turn_++ % runnable;
            for (Group& group : groups_) {
                if (group.state == GroupState::Runnable && chosen-- == 0) best = &group;
            }
        }
    }
    if (best == nullptr) return false;
    const Group chosen = *best;
    *best = groups_.back();
    groups_.pop_back();
    enter(chosen.frame);
    pc = chosen.pc;
    active = chosen.mask;
    limit = kNoLimit;
    if (rotate) return true;
    for (const Group& group : groups_) {
        if (group.state == GroupState::Runnable && group.frame == frame && group.pc > pc)
            limit = std::min(limit, group.pc);
    }
    return true;
}

Warp::Status Warp::run(std::uint32_t steps) {
    return block->check ? run_groups<true>(steps) : run_groups<false>(steps);
}

template <bool Checked>
Warp::Status Warp::run_groups(std::uint32_t steps) {
    way_given_ = false;
    if (!select_group(rotate_)) return live == 0 ? Status::Exited : Status::Blocked;
    rotate_ = false;
    for (;;) {
        const Instruction* i = pc++;
        std::uint32_t mask = active;
        if (i->guard != kNoSlot) mask &= *at<std::uint32_t>(i->guard) ^ i->guard_xor;
        if (mask != 0) {
            if (Checked && i->cache != 0) block->check->access(*this, *i, mask);
            i->handler(*this, *i, mask);
        }
        if (pc < limit && --steps != 0) [[likely]]
            continue;
        park();
        if (steps == 0 || way_given_) {
            rotate_ = groups_.size() > 1;
            return live == 0 ? Status::Exited : Status::Ready;
        }
        if (!select_group(false)) return live == 0 ? Status::Exited : Status::Ready;
    }
}

void Warp::branch(const Instruction* target, std::uint32_t mask) {
    if (mask == active) {
        pc = target;
        return;
    }
    const std::uint32_t others = active & ~mask;
    const bool forward = target > pc;
    groups_.push_back(
        {frame, forward ? target : pc, forward ? mask : others, GroupState::Runnable});
    limit = std::min(limit, forward ? target : pc);
    active = forward ? others : mask;
    if (!forward) pc = target;
}

void Warp::separate(std::uint32_t mask, const Instruction* others_at) {
    if (mask == active) return;
    groups_.push_back({frame, others_at, active & ~mask, GroupState::Runnable});
    active = mask;
    limit = std::min(limit, others_at);
}

void Warp::wait(const Instruction& i, GroupState state, std::uint32_t members,
                std::uint32_t barrier) {
    groups_.push_back({frame, pc, active, state, &i, members, barrier, nullptr});
    active = 0;
    limit = nullptr;
}

void Warp::synchronize(const Instruction& i, std::uint32_t mask, Slot slot, Evaluate evaluate) {
    separate(mask, pc);
    const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
    const auto* masks = at<std::uint32_t>(slot);
    const std::uint32_t members = masks[lane];
    std::uint32_t same = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        same |= masks[l] == members ? 1u << l : 0u;
    separate(mask & same, &i);
    if ((members & live & ~active) == 0) {
        const Part part{frame, &i, active};
        evaluate(*this, &part, 1);
        return;
    }
    wait(i, GroupState::AtWarpSync, members, 0);
    groups_.back().evaluate = evaluate;
    check_synchronized();
}

void Warp::check_synchronized() {
    for (std::size_t first = 0; first < groups_.size(); ++first) {
        const Group leader = groups_[first];
        if (leader.state != GroupState::AtWarpSync) continue;
        Part parts[kLanes];
        std::size_t count = 0;
        std::uint32_t here = 0;
        const auto meets = [leader](const Group& group) {
            return group.state == GroupState::AtWarpSync && group.members == leader.members &&
                   group.evaluate == leader.evaluate &&
                   group.waiting->extra == leader.waiting->extra;
        };
        for (const Group& group : groups_) {
            if (!meets(group)) continue;
            parts[count++] = {group.frame, group.waiting, group.mask};
            here |= group.mask;
        }
        if ((leader.members & live & ~here) != 0) continue;
        leader.evaluate(*this, parts, count);
        for (Group& group : groups_) {
            if (meets(group)) group.state = GroupState::Runnable;
        }
    }
}

void Warp::exit(std::uint32_t mask) {
    live &= ~mask;
    active &= ~mask;
    for (Frame* at = frame; at != nullptr; at = at->parent)
        at->lanes &= ~mask;
    if (active == 0) limit = nullptr;
    check_synchronized();
    block->check_barriers();
}

void Warp::hand_over(const Transfer& from, const Frame& from_frame, const Transfer& to,
                     const Frame& to_frame, std::uint32_t mask) {
    if (to.in_register && to.place == kNoSlot) return;
    const auto place = [&](const Transfer& transfer, const Frame& at, unsigned l) -> std::byte* {
        if (!transfer.in_register)
            return local + std::size_t{l} * local_stride + at.local_base + transfer.place;
        std::byte* base = (transfer.place & kConstantBit) != 0 ? bases[1] : at.registers;
        return base + (transfer.place & ~kConstantBit) + std::size_t{l} * transfer.size;
    };
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        std::memcpy(place(to, to_frame, l), place(from, from_frame, l), to.size);
    }
}

void Warp::call(const Instruction& i, const CallSite& site, const FunctionCode& callee,
                std::uint32_t mask) {
    const std::uint32_t base = (frame->local_base + frame->code->local_bytes + 15) / 16 * 16;
    if (frame->depth >= kMaxCallDepth ||
        base + std::uint64_t{callee.local_bytes} > kMaxLocalBytes ||
        frame_bytes_ + callee.register_bytes > kMaxFrameBytes) {
        fault(FaultKind::StackOverflow, i, static_cast<unsigned>(__builtin_ctz(mask)),
              "call of '" + callee.name + "' at depth " + std::to_string(frame->depth + 1) +
                  " exceeds the stack");
    }
    if (mask != active) {
        groups_.push_back({frame, pc, active & ~mask, GroupState::Runnable});
    }
    Frame* inner = take_frame(callee);
    inner->parent = frame;
    inner->depth = frame->depth + 1;
    inner->local_base = base;
    inner->lanes = mask;
    inner->return_to = pc;
    inner->site = &site;
    grow_local(base + callee.local_bytes);
    for (std::size_t n = 0; n < site.arguments.size(); ++n) {
        hand_over(site.arguments[n], *frame, callee.parameters[n], *inner, mask);
    }
    if (callee.frame_base != kNoSlot) {
        auto* lanes = reinterpret_cast<std::uint64_t*>(inner->registers + callee.frame_base);
        for (unsigned l = 0; l < kLanes; ++l)
            lanes[l] = base;
    }
    enter(inner);
    active = mask;
    pc = callee.instructions.data();
    limit = kNoLimit;
}

void Warp::leave(std::uint32_t mask) {
    if (frame->parent == nullptr) {
        exit(mask);
        return;
    }
    Frame* inner = frame;
    for (std::size_t n = 0; n < inner->site->results.size(); ++n) {
        hand_over(inner->code->results[n], *inner, inner->site->results[n], *inner->parent, mask);
    }
    groups_.push_back({inner->parent, inner->return_to, mask, GroupState::Runnable});
    active &= ~mask;
    inner->lanes &= ~mask;
    if (active == 0) limit = nullptr;
    if (inner->lanes == 0) drop_frame(inner);
}

} // namespace cudamod::emulator::ptx
