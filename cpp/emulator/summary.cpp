#include "emulator/summary.h"

#include <cinttypes>
#include <cstdio>

namespace cudamod::emulator {

std::string Argument::summary() const {
    char text[32];
    switch (kind_) {
    case Kind::text:
        return text_ ? "'" + std::string(text_) + "'" : "NULL";
    case Kind::verbatim:
        return text_;
    case Kind::address:
        if (!number_) return "NULL";
        std::snprintf(text, sizeof text, "0x%" PRIx64, number_);
        return text;
    case Kind::real:
        std::snprintf(text, sizeof text, "%g", real_);
        return text;
    case Kind::integer:
        std::snprintf(text, sizeof text, "%" PRId64, static_cast<std::int64_t>(number_));
        return text;
    }
    return {};
}

std::string summarize(const Argument* arguments, std::size_t count) {
    std::string all;
    for (std::size_t index = 0; index < count; ++index) {
        if (index) all += ", ";
        all += arguments[index].summary();
    }
    return all;
}

} // namespace cudamod::emulator
