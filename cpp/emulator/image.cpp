#include "emulator/image.h"

#include "emulator/failure.h"
#include "formats/fatbin.h"
#include "formats/image.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cudamod::emulator {
namespace {

constexpr std::size_t kHostPage = 4096;
constexpr std::size_t kLargestImage = std::size_t{1} << 32;

/// Up to `bytes` bytes from `data`: fewer when the memory ends before.
std::vector<std::byte> read_memory(const std::byte* data, std::size_t bytes) {
    std::vector<std::byte> read(bytes);
    std::size_t done = 0;
    while (done < bytes) {
        // Page by page where a bigger piece fails, so that the last readable byte is found.
        const std::size_t in_page =
            kHostPage - (reinterpret_cast<std::uintptr_t>(data) + done) % kHostPage;
        for (std::size_t piece : {bytes - done, std::min(in_page, bytes - done)}) {
            const iovec to{read.data() + done, piece},
                from{const_cast<std::byte*>(data) + done, piece};
            const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
            if (got > 0) {
                done += static_cast<std::size_t>(got);
                break;
            }
            if (errno == EPERM || errno == ENOSYS) {
                // The system forbids it; what the headers promise has to be believed.
                std::memcpy(read.data() + done, data + done, piece);
                done += piece;
                break;
            }
            if (piece <= in_page) {
                read.resize(done);
                return read;
            }
        }
    }
    return read;
}

} // namespace

std::shared_ptr<const Code> Image::code_for(const Profile& device) {
    auto& code = codes_[&device];
    if (!code) code = decode(bytes_, device, max_registers_);
    return code;
}

std::vector<std::byte> copy_image(const void* data) {
    const auto* begin = static_cast<const std::byte*>(data);
    for (std::size_t bytes = kHostPage; bytes <= kLargestImage; bytes *= 4) {
        auto read = read_memory(begin, bytes);
        const formats::ImageKind kind = formats::sniff(read);
        if (kind == formats::ImageKind::FatbinWrapper) {
            const auto inner = formats::unwrap_fatbin(data);
            return inner ? copy_image(*inner) : std::move(read);
        }
        if (kind == formats::ImageKind::Cubin || kind == formats::ImageKind::Fatbin) {
            if (const auto size = formats::image_size(read)) {
                read.resize(std::min(*size, read.size()));
                return read;
            }
        } else if (const void* end = std::memchr(read.data(), 0, read.size())) {
            read.resize(static_cast<std::size_t>(static_cast<const std::byte*>(end) - read.data()));
            return read;
        }
        if (read.size() < bytes) return read;
    }
    fail(CUDA_ERROR_INVALID_IMAGE, "The image has no end within %zu bytes", kLargestImage);
}

std::vector<std::byte> read_file(const char* path) {
    struct stat about{};
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen(path, "rb"), [](std::FILE* open) { return open ? std::fclose(open) : 0; });
    if (!file || fstat(fileno(file.get()), &about) != 0 || !S_ISREG(about.st_mode)) {
        fail(CUDA_ERROR_FILE_NOT_FOUND, "File '%s' cannot be read", path);
    }
    std::vector<std::byte> content(static_cast<std::size_t>(about.st_size));
    content.resize(std::fread(content.data(), 1, content.size(), file.get()));
    return content;
}

std::uint32_t max_registers_of(unsigned count, const CUjit_option* options, void** values) {
    for (unsigned index = 0; index < count; ++index) {
        if (options[index] == CU_JIT_MAX_REGISTERS)
            return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[index]));
    }
    return UINT32_MAX;
}

void write_logs(const Code& code, unsigned count, const CUjit_option* options, void** values) {
    const auto write = [&](CUjit_option buffer_option, CUjit_option size_option,
                           const std::string& log) {
        char* buffer = nullptr;
        std::size_t room = 0;
        void** written = nullptr;
        for (unsigned index = 0; index < count; ++index) {
            if (options[index] == buffer_option) buffer = static_cast<char*>(values[index]);
            if (options[index] == size_option) {
                room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[index]));
                written = &values[index];
            }
        }
        if (!buffer || !room) return;
        const std::size_t length = std::min(log.size(), room - 1);
        std::memcpy(buffer, log.data(), length);
        buffer[length] = 0;
        *written = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length ? length + 1 : 0));
    };
    write(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, {});
    write(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, code.error_log);
}

} // namespace cudamod::emulator
