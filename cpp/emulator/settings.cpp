#include "emulator/settings.h"

#include "emulator/findings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cudamod::emulator {
namespace {

const char* variable(const char* name) {
    const char* text = std::getenv(name);
    return text && *text ? text : nullptr;
}

void complain(const char* name, const char* text, const char* wanted) {
    std::fprintf(stderr, "cudamod: emulated driver: %s='%s' ignored: %s\n", name, text, wanted);
}

bool read_switch(const char* name, bool otherwise = false) {
    const char* text = variable(name);
    if (!text) return otherwise;
    if (std::string_view(text) == "0") return false;
    if (std::string_view(text) == "1") return true;
    complain(name, text, "0 or 1 wanted");
    return otherwise;
}

std::uint64_t read_number(const char* name, std::uint64_t otherwise, std::uint64_t least) {
    const char* text = variable(name);
    if (!text) return otherwise;
    char* end = nullptr;
    std::uint64_t value = std::strtoull(text, &end, 0);
    const std::string_view suffix(end);
    if (suffix == "K")
        value <<= 10;
    else if (suffix == "M")
        value <<= 20;
    else if (suffix == "G")
        value <<= 30;
    else if (!suffix.empty() || end == text) {
        complain(name, text, "a number wanted, with an optional suffix K, M or G");
        return otherwise;
    }
    if (value < least) {
        complain(name, text, "the number is too small");
        return otherwise;
    }
    return value;
}

Manner read_manner(const char* name) {
    const char* text = variable(name);
    if (text && std::string_view(text) == "faithful") return Manner::faithful;
    if (text && std::string_view(text) != "strict")
        complain(name, text, "strict or faithful wanted");
    return Manner::strict;
}

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        if (comma) parts.emplace_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return parts;
}

unsigned read_checks(const char* name) {
    unsigned checks = 0;
    const char* text = variable(name);
    for (const std::string& part : split(text ? text : "")) {
        if (const auto check = findings::check_named(part))
            checks |= *check;
        else
            complain(name, part.c_str(), "uninitialized, races, barriers, streams or all wanted");
    }
    return checks;
}

Settings read_environment() {
    Settings read;
    read.driver_version =
        static_cast<int>(read_number("CUDAMOD_EMULATOR_DRIVER_VERSION", 13000, 1000));
    if (const char* text = std::getenv("CUDAMOD_EMULATOR_DEVICES")) {
        read.devices = std::string_view(text) == "none" ? std::vector<std::string>{} : split(text);
    }
    read.memory_bytes = read_number("CUDAMOD_EMULATOR_MEMORY", read.memory_bytes, 1 << 20);
    read.poison_bytes = read_number("CUDAMOD_EMULATOR_POISON", read.poison_bytes, 0);
    read.null_launch = read_switch("CUDAMOD_EMULATOR_NULL_LAUNCH");
    read.quiet = read_switch("CUDAMOD_EMULATOR_QUIET");
    if (const char* text = variable("CUDAMOD_EMULATOR_JOURNAL")) {
        if (std::string_view(text) != "0") read.journal = text;
    }
    read.leak_report = read_switch("CUDAMOD_EMULATOR_LEAKS");
    read.manner = read_manner("CUDAMOD_EMULATOR_MANNER");
    read.seed = read_number("CUDAMOD_EMULATOR_SEED", 0, 0);
    read.queue_depth = read_number("CUDAMOD_EMULATOR_QUEUE_DEPTH", read.queue_depth, 1);
    read.launch_seconds = read_number("CUDAMOD_EMULATOR_LAUNCH_SECONDS", 0, 0);
    read.interruptible = read_switch("CUDAMOD_EMULATOR_INTERRUPT", true);
    read.threads = static_cast<unsigned>(read_number("CUDAMOD_EMULATOR_THREADS", 1, 1));
    read.checks = read_checks("CUDAMOD_EMULATOR_CHECKS");
    if (const char* text = variable("CUDAMOD_EMULATOR_FAIL")) read.failures = text;
    return read;
}

} // namespace

const Settings& settings() {
    static const Settings* const read = new Settings(read_environment());
    return *read;
}

} // namespace cudamod::emulator
