/// The functions that the driver provides: vprintf, malloc, free, __assertfail.
#include "emulator/ptx/heap.h"
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/worker.h"

#include <cstdio>
#include <cstring>

namespace cudamod::emulator::ptx {
namespace {

class Call {
  public:
    Call(Warp& w, const Instruction& i, const CallSite& site, unsigned lane)
        : w_(w), i_(i), site_(site), lane_(lane) {}

    template <class T>
    T argument(std::size_t n) const {
        T value{};
        std::memcpy(&value, place(site_.arguments[n]),
                    std::min<std::size_t>(sizeof value, site_.arguments[n].size));
        return value;
    }
    template <class T>
    void result(T value) const {
        if (site_.results.empty() ||
            (site_.results[0].in_register && site_.results[0].place == kNoSlot))
            return;
        std::memcpy(place(site_.results[0]), &value,
                    std::min<std::size_t>(sizeof value, site_.results[0].size));
    }
    template <class T>
    T read(std::uint64_t address) const {
        T value{};
        std::memcpy(&value, w_.worker->find_generic(w_, i_, lane_, address, sizeof value, false),
                    sizeof value);
        return value;
    }
    std::string text(std::uint64_t address) const {
        std::string result;
        if (address == 0) return "(null)";
        while (result.size() < 65536) {
            const char c = read<char>(address++);
            if (c == '\0') break;
            result += c;
        }
        return result;
    }

  private:
    std::byte* place(const Transfer& transfer) const {
        if (!transfer.in_register) {
            return w_.local + std::size_t{lane_} * w_.local_stride + w_.frame->local_base +
                   transfer.place;
        }
        return w_.bases[transfer.place & kConstantBit] + (transfer.place & ~kConstantBit) +
               std::size_t{lane_} * transfer.size;
    }

    Warp& w_;
    const Instruction& i_;
    const CallSite& site_;
    unsigned lane_;
};

/// One conversion of a printf format.
struct Conversion {
    std::string spec;  ///< "%-8.3"
    bool wide = false; ///< 64-bit integer
    char letter = 0;
};

template <class... T>
std::string formatted(const std::string& spec, T... values) {
    char buffer[512];
    const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), values...);
    if (length < static_cast<int>(sizeof buffer))
        return std::string(buffer, static_cast<std::size_t>(std::max(length, 0)));
    std::string large(static_cast<std::size_t>(length) + 1, '\0');
    std::snprintf(large.data(), large.size(), spec.c_str(), values...);
    large.pop_back();
    return large;
}

class Formatter {
  public:
    Formatter(const Call& call, std::string format, std::uint64_t arguments)
        : call_(call), format_(std::move(format)), next_(arguments) {}

    std::string run() {
        std::size_t at = 0;
        while (at < format_.size()) {
            if (format_[at] != '%') {
                out_ += format_[at++];
                continue;
            }
            conversion(at);
        }
        return std::move(out_);
    }
    int conversions() const { return count_; }

  private:
    template <class T>
    T take() {
        next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        const T value = call_.read<T>(next_);
        next_ += sizeof(T);
        return value;
    }

    /// A width or precision beyond reason is cut, so that a kernel can't ask for gigabytes.
    void number(std::size_t& at, Conversion& c) {
        int value = 0;
        bool any = false;
        if (at < format_.size() && format_[at] == '*') {
            value = take<int>();
            any = true;
            ++at;
        }
        while (at < format_.size() && format_[at] >= '0' && format_[at] <= '9') {
            value = std::min(value * 10 + (format_[at++] - '0'), 4096);
            any = true;
        }
        if (any) c.spec += std::to_string(std::max(std::min(value, 4096), -4096));
    }

    void conversion(std::size_t& at) {
        const std::size_t start = at++;
        Conversion c;
        c.spec = "%";
        while (at < format_.size() && std::strchr("-+ #0", format_[at]) != nullptr &&
               c.spec.size() < 8)
            c.spec += format_[at++];
        number(at, c);
        if (at < format_.size() && format_[at] == '.') {
            c.spec += '.';
            ++at;
            number(at, c);
        }
        while (at < format_.size() && std::strchr("hlLjzt", format_[at]) != nullptr) {
            c.wide |= format_[at] != 'h' && format_[at] != 'L';
            ++at;
        }
        if (at < format_.size()) c.letter = format_[at++];
        if (!convert(c)) out_ += format_.substr(start, at - start);
    }

    bool convert(Conversion& c) {
        if (c.letter == '%') return out_ += '%', true;
        ++count_;
        switch (c.letter) {
        case 'd':
        case 'i':
            out_ += formatted(c.spec + "lld",
                              c.wide ? take<long long>() : static_cast<long long>(take<int>()));
            return true;
        case 'u':
        case 'o':
        case 'x':
        case 'X':
            out_ += formatted(c.spec + "ll" + c.letter,
                              c.wide ? take<unsigned long long>()
                                     : static_cast<unsigned long long>(take<unsigned>()));
            return true;
        case 'c':
            out_ += formatted(c.spec + 'c', take<int>());
            return true;
        case 'p':
            out_ += formatted(c.spec + 'p', reinterpret_cast<void*>(take<std::uint64_t>()));
            return true;
        case 's':
            out_ += formatted(c.spec + 's', call_.text(take<std::uint64_t>()).c_str());
            return true;
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            out_ += formatted(c.spec + c.letter, take<double>());
            return true;
        default:
            --count_;
            return false;
        }
    }

    const Call& call_;
    std::string format_;
    std::uint64_t next_;
    std::string out_;
    int count_ = 0;
};

void print(const Call& call, Grid& grid) {
    Formatter formatter(call, call.text(call.argument<std::uint64_t>(0)),
                        call.argument<std::uint64_t>(1));
    const std::string text = formatter.run();
    if (grid.print) {
        const std::lock_guard lock(grid.print_mutex);
        grid.print(text);
    }
    call.result(formatter.conversions());
}

} // namespace

void call_builtin(Warp& w, const Instruction& i, std::uint32_t mask) {
    Grid& grid = w.worker->grid;
    const CallSite& site = grid.code.calls[i.extra];
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
        const Call call(w, i, site, lane);
        switch (site.builtin) {
        case Builtin::Printf:
            print(call, grid);
            break;
        case Builtin::Malloc:
            call.result(DeviceHeap::instance().allocate(call.argument<std::uint64_t>(0)));
            break;
        case Builtin::Free:
            if (!DeviceHeap::instance().release(call.argument<std::uint64_t>(0))) {
                w.fault(FaultKind::IllegalAddress, i, lane,
                        "free of memory that malloc did not give, or that is free already");
            }
            break;
        default:
            w.fault(FaultKind::Assert, i, lane,
                    call.text(call.argument<std::uint64_t>(1)) + ":" +
                        std::to_string(call.argument<std::uint32_t>(2)) + ": " +
                        call.text(call.argument<std::uint64_t>(3)) + ": assertion `" +
                        call.text(call.argument<std::uint64_t>(0)) + "` failed");
        }
    }
}

} // namespace cudamod::emulator::ptx
