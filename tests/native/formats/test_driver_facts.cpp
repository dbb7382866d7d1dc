// Cubin metadata and occupancy against what the driver answered on a card: data/h200/driver.json,
// as lines of words. Usage: test_driver_facts DATA FACTS
#include "check.h"

#include "emulator/occupancy.h"
#include "formats/cubin.h"
#include "formats/ptx_header.h"

#include <optional>

using namespace cudamod;

namespace {

constexpr std::uint32_t kMultiprocessors = 132;

struct Subject {
    std::string image;
    std::string name;
    std::optional<formats::CubinKernel>
        kernel; ///< nothing for PTX: its resources are up to the compiler
    std::optional<formats::PtxEntry> entry;
    int sm = 0;
    int virtual_sm = 0;
    std::size_t parameters = 0; ///< seen so far
};

std::string show(const Subject& subject, const std::string& what) {
    return subject.image + " " + subject.name + ": " + what;
}

void expect(const Subject& subject, const std::string& what, long long found, long long expected) {
    if (found == expected) return;
    check::report(__FILE__, __LINE__,
                  show(subject, what + " is " + std::to_string(found) + ", the driver says " +
                                    std::to_string(expected)));
}

Subject find_subject(const std::string& data, const std::string& image, const std::string& name) {
    Subject subject{image, name, {}, {}};
    const std::string content = check::read_file(data + "/h200/" + image);
    if (image.ends_with(".ptx")) {
        auto header = formats::read_ptx_header(content);
        CHECK_OK(header);
        if (header && header->find_entry(name)) subject.entry = *header->find_entry(name);
        if (!subject.entry) check::report(__FILE__, __LINE__, show(subject, "not found"));
        return subject;
    }
    auto cubin = formats::read_cubin(formats::as_bytes(content));
    CHECK_OK(cubin);
    if (cubin && cubin->find_kernel(name)) {
        subject.kernel = *cubin->find_kernel(name);
        subject.sm = cubin->sm;
        subject.virtual_sm = cubin->virtual_sm;
    }
    if (!subject.kernel) check::report(__FILE__, __LINE__, show(subject, "not found"));
    return subject;
}

void check_attribute(const Subject& subject, int attribute, long long value) {
    const formats::CubinKernel& kernel = *subject.kernel;
    const auto mp = *emulator::multiprocessor(subject.sm);
    const std::string what = "attribute " + std::to_string(attribute);
    switch (attribute) {
    case 0:
        return expect(subject, what, kernel.max_threads_per_block, value);
    case 1:
        return expect(subject, what, kernel.static_shared_bytes, value);
    case 2:
        return expect(subject, what, kernel.constant_bytes, value);
    case 3:
        return expect(subject, what, kernel.local_bytes, value);
    case 4:
        return expect(subject, what, kernel.registers, value);
    case 5:
        return expect(subject, what, subject.virtual_sm, value);
    case 6:
        return expect(subject, what, subject.sm, value);
    case 8:
        return expect(subject, what,
                      emulator::default_max_dynamic_shared(mp, kernel.static_shared_bytes), value);
    case 10:
        return expect(subject, what, kernel.required_cluster[0] != 0, value);
    case 11:
    case 12:
    case 13:
        return expect(subject, what,
                      kernel.required_cluster[static_cast<std::size_t>(attribute - 11)], value);
    default:
        return; // the driver's own settings
    }
}

void check_parameter(Subject& subject, std::uint64_t offset, std::uint64_t size) {
    const std::size_t i = subject.parameters++;
    const std::string what = "parameter " + std::to_string(i);
    const std::size_t count =
        subject.kernel ? subject.kernel->parameters.size() : subject.entry->parameters.size();
    if (i >= count) return expect(subject, "number of parameters", count, i + 1);
    if (subject.kernel) {
        expect(subject, what + " offset", subject.kernel->parameters[i].offset, offset);
        expect(subject, what + " size", subject.kernel->parameters[i].size, size);
    } else {
        expect(subject, what + " offset", subject.entry->parameters[i].offset, offset);
        expect(subject, what + " size", subject.entry->parameters[i].size, size);
    }
}

void check_end(const Subject& subject) {
    const std::size_t count = subject.kernel  ? subject.kernel->parameters.size()
                              : subject.entry ? subject.entry->parameters.size()
                                              : 0;
    expect(subject, "number of parameters", static_cast<long long>(count),
           static_cast<long long>(subject.parameters));
}

} // namespace

int main(int, char** arguments) {
    const std::string data = arguments[1];
    std::ifstream facts(arguments[2]);
    std::optional<Subject> subject;
    emulator::KernelUse use;
    const auto mp = *emulator::multiprocessor(90);
    int lines = 0;
    for (std::string word; facts >> word; ++lines) {
        if (word == "kernel") {
            if (subject) check_end(*subject);
            std::string image, name;
            facts >> image >> name;
            subject = find_subject(data, image, name);
            if (!subject->kernel && !subject->entry) return check::failures();
            if (const auto& kernel = subject->kernel) {
                use = {kernel->registers, kernel->static_shared_bytes,
                       emulator::default_max_dynamic_shared(mp, kernel->static_shared_bytes),
                       kernel->max_threads_per_block, kernel->barriers};
            }
            continue;
        }
        long long a = 0, b = 0, c = 0;
        facts >> a >> b;
        if (word == "occupancy") facts >> c;
        if (word == "parameter") {
            check_parameter(*subject, static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
        } else if (!subject->kernel) {
            continue;
        } else if (word == "attribute") {
            check_attribute(*subject, static_cast<int>(a), b);
        } else if (word == "occupancy") {
            const int blocks = emulator::max_active_blocks(mp, use, static_cast<std::uint32_t>(a),
                                                           static_cast<std::uint64_t>(b));
            expect(*subject, "occupancy of " + std::to_string(a) + "," + std::to_string(b), blocks,
                   c);
        } else if (word == "potential") {
            const auto best =
                emulator::potential_block_size(mp, use, kMultiprocessors, [](int) { return 0; });
            expect(*subject, "potential grid size", best.grid_size, a);
            expect(*subject, "potential block size", best.block_size, b);
        } else if (word == "available") {
            const auto bytes =
                emulator::available_dynamic_shared(mp, use, static_cast<int>(a), 128);
            expect(*subject, "available dynamic shared memory for " + std::to_string(a),
                   bytes ? static_cast<long long>(*bytes) : -1, b);
        } else {
            check::report(__FILE__, __LINE__, "unknown fact '" + word + "'");
        }
    }
    if (subject) check_end(*subject);
    CHECK(lines > 1000);
    return check::failures();
}
