#include "python/launch_log.h"

#include "python/tracking.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace cudamod::python {

namespace {

std::atomic<unsigned> kept{0};

struct Log {
    std::mutex mutex; // a leaf
    std::map<int, std::deque<std::string>> by_device;
};

Log& log() {
    static auto* instance = new Log;
    return *instance;
}

template <class Number>
Number read(const void* cell) {
    Number number;
    std::memcpy(&number, cell, sizeof number);
    return number;
}

/// A packed argument in the words of its type; bytes where it has none.
std::string text_of_argument(const launch::Type& type, const void* cell) {
    char text[64];
    bool is_float = type.type_class == launch::TypeClass::Float;
    if (is_float && type.size == 4)
        std::snprintf(text, sizeof text, "%.9g", static_cast<double>(read<float>(cell)));
    else if (is_float && type.size == 8)
        std::snprintf(text, sizeof text, "%.17g", read<double>(cell));
    else if (type.takes_pointer())
        std::snprintf(text, sizeof text, "0x%llx", read<unsigned long long>(cell));
    else if (type.size <= 8 && (type.type_class == launch::TypeClass::Integer ||
                                type.type_class == launch::TypeClass::Bool)) {
        unsigned unused = 64 - 8 * type.size;
        unsigned long long bits = read<unsigned long long>(cell) << unused;
        if (type.low && type.signedness_known)
            std::snprintf(text, sizeof text, "%lld", static_cast<long long>(bits) >> unused);
        else
            std::snprintf(text, sizeof text, "%llu", bits >> unused);
    } else {
        std::string bytes = "0x";
        for (std::uint32_t i = 0; i < type.size && i < 16; ++i) {
            std::snprintf(text, sizeof text, "%02x", static_cast<const unsigned char*>(cell)[i]);
            bytes += text;
        }
        return type.size > 16 ? bytes + "..." : bytes;
    }
    return text;
}

std::string text_of_launch(const LaunchParts& parts, void* const* pointers) {
    const launch::Shape& shape = parts.config.shape();
    std::string text = parts.kernel.name() + "(";
    for (std::size_t i = 0; i < parts.layout.parameters.size(); ++i) {
        const launch::Type& type = parts.layout.parameters[i].type;
        text += (i ? ", " : "") + launch::name_of(type) + " " + text_of_argument(type, pointers[i]);
    }
    text += "), grid " + shape.grid.text() + ", block " + shape.block.text();
    if (shape.cluster) text += ", cluster " + shape.cluster->text();
    if (shape.shmem_size) text += ", shmem_size " + std::to_string(shape.shmem_size);
    char where[64];
    std::snprintf(where, sizeof where, ", stream 0x%llx of device %d",
                  static_cast<unsigned long long>(handles::value_of(parts.stream.raw)),
                  parts.stream.device);
    return text + where + ", " + creation_site();
}

} // namespace

unsigned launch_log_length() {
    return kept.load(std::memory_order_relaxed);
}

void set_launch_log_length(unsigned length) {
    kept.store(length, std::memory_order_relaxed);
}

void note_in_launch_log(const LaunchParts& parts, void* const* pointers) noexcept {
    unsigned most = launch_log_length();
    if (!most) return;
    try {
        std::string text = text_of_launch(parts, pointers), forgotten;
        Log& all = log();
        std::lock_guard lock(all.mutex);
        std::deque<std::string>& entries = all.by_device[parts.stream.device];
        entries.push_back(std::move(text));
        while (entries.size() > most)
            entries.pop_front();
    } catch (...) {
        // Out of memory for an entry: the launch goes on without one.
    }
}

nb::tuple launch_log() {
    std::vector<std::string> copied;
    {
        Log& all = log();
        std::lock_guard lock(all.mutex);
        for (const auto& [device, entries] : all.by_device)
            copied.insert(copied.end(), entries.begin(), entries.end());
    }
    nb::list texts;
    for (const std::string& text : copied)
        texts.append(nb::steal(PyUnicode_DecodeUTF8(
            text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace")));
    return nb::tuple(texts);
}

} // namespace cudamod::python
