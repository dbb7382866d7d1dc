#include "emulator/link.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/image.h"
#include "emulator/objects.h"
#include "emulator/ptx/diagnostics.h"
#include "emulator/ptx/lexer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace cudamod::emulator {
namespace {

/// The directives that a PTX text begins with, and where its declarations begin.
struct Header {
    std::string version, target;
    std::size_t end = 0;
};

Header header_of(const std::string& text) {
    using ptx::TokenKind;
    const std::vector<ptx::Token> tokens = ptx::tokenize(text);
    if (tokens.size() < 5 || tokens[0].text != ".version" || tokens[2].text != ".target")
        throw ptx::LoadError(tokens[0].line, "Missing .version directive at start of file");
    Header header;
    header.version = tokens[1].text;
    std::size_t next = 3;
    while (tokens[next].kind != TokenKind::End && tokens[next].kind != TokenKind::Dotted)
        header.target += tokens[next++].text;
    if (tokens[next].text == ".address_size") next += 2;
    header.end = next < tokens.size() ? tokens[next].begin : text.size();
    return header;
}

} // namespace

std::string joined(const std::vector<std::string>& modules) {
    if (modules.size() == 1) return modules.front();
    std::string version, target, body;
    for (const std::string& text : modules) {
        const Header header = header_of(text);
        if (version.empty() ||
            std::strtod(header.version.c_str(), nullptr) > std::strtod(version.c_str(), nullptr)) {
            version = header.version;
        }
        if (target.empty()) target = header.target;
        body.append(text, header.end).append("\n");
    }
    return ".version " + version + "\n.target " + target + "\n.address_size 64\n" + body;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

std::shared_ptr<Link> find_link(CUlinkState handle) {
    auto link = objects().links.find(handle);
    if (!link) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Link %p %s", static_cast<void*>(handle),
             objects().links.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    return link;
}

void write_log(const Link& link, const std::string& log) {
    Code code;
    code.error_log = log;
    std::vector<void*> values = link.values;
    write_logs(code, static_cast<unsigned>(values.size()), link.options.data(), values.data());
    for (std::size_t index = 0; index < values.size(); ++index) {
        if (link.options[index] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
            link.options[index] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            link.caller_values[index] = values[index];
    }
}

/// Fails with what is wrong with a PTX text on the current device, which the log tells as well.
void require_compilable(const Link& link, const std::string& text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    Image image({first, first + text.size()});
    const auto code = image.code_for(*current_context()->device->profile);
    write_log(link, code->error_log);
    if (code->status != CUDA_SUCCESS) fail(code->status, "%s", code->sentence.c_str());
}

std::string joined_for(const Link& link) {
    try {
        return joined(link.modules);
    } catch (const ptx::LoadError& error) {
        write_log(link, error.what());
        fail(CUDA_ERROR_INVALID_PTX, "A module cannot be read: %s", error.what());
    }
}

void add(Link& link, CUjitInputType type, const void* data, std::size_t size) {
    if (link.image) fail(CUDA_ERROR_INVALID_VALUE, "The link was completed");
    require_pointer(data, "the data");
    if (type != CU_JIT_INPUT_PTX) {
        write_log(link, "the emulated driver links PTX alone");
        fail(CUDA_ERROR_NOT_SUPPORTED, "Input of type %d: only PTX is linked here", type);
    }
    std::string text(static_cast<const char*>(data), size);
    text.erase(std::min(text.find('\0'), text.size()));
    // What another module is to define is looked for when the link is completed.
    if (text.find(".extern") == std::string::npos) require_compilable(link, text);
    link.modules.push_back(std::move(text));
}

} // namespace

CUDAMOD_API cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                            CUlinkState* handle) {
    return locked_call(
        "cuLinkCreate",
        [&] {
            require_pointer(handle, "the link");
            if (count && (!options || !values))
                fail(CUDA_ERROR_INVALID_VALUE, "%u options were announced and none given", count);
            current_context();
            auto link = std::make_shared<Link>();
            link->options.assign(options, options + count);
            link->values.assign(values, values + count);
            link->caller_values = values;
            *handle = objects().links.insert(link);
        },
        count, options, values, handle);
}
CUDAMOD_API_ALIAS(cuLinkCreate, cuLinkCreate_v2);

CUDAMOD_API cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t size,
                             const char* name, unsigned int count, CUjit_option* options,
                             void** values) {
    return locked_call(
        "cuLinkAddData", [&] { add(*find_link(handle), type, data, size); }, handle, type, data,
        size, name, count, options, values);
}
CUDAMOD_API_ALIAS(cuLinkAddData, cuLinkAddData_v2);

CUDAMOD_API cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path,
                             unsigned int count, CUjit_option* options, void** values) {
    return locked_call(
        "cuLinkAddFile",
        [&] {
            const auto link = find_link(handle);
            require_pointer(path, "the path");
            const auto content = read_file(path);
            add(*link, type, content.data(), content.size());
        },
        handle, type, path, count, options, values);
}
CUDAMOD_API_ALIAS(cuLinkAddFile, cuLinkAddFile_v2);

CUDAMOD_API cuLinkComplete(CUlinkState handle, void** image, size_t* size) {
    return locked_call(
        "cuLinkComplete",
        [&] {
            require_pointer(image, "the image");
            const auto link = find_link(handle);
            if (link->modules.empty()) fail(CUDA_ERROR_INVALID_VALUE, "Nothing was added");
            if (!link->image) {
                std::string text = joined_for(*link);
                require_compilable(*link, text);
                link->image = std::move(text);
            }
            *image = link->image->data();
            if (size) *size = link->image->size() + 1;
        },
        handle, image, size);
}

CUDAMOD_API cuLinkDestroy(CUlinkState handle) {
    return locked_call(
        "cuLinkDestroy",
        [&] {
            find_link(handle);
            objects().links.erase(handle);
        },
        handle);
}
