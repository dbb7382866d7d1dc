/// The driver library: which one, opened when, and what was searched.
///
/// The choice is `auto` (the installed libcuda), `emulated` (the emulated driver that ships beside
/// this extension) or a path. It is what select() said, else the environment's CUDAMOD_DRIVER, else
/// `auto`. A library that cannot serve (no driver, older than CUDA 12.0, a stub, no device) counts
/// as none, and the reason is kept.
///
/// Everything here may be called from any thread. After a fork the child inherits an open driver,
/// whose calls then answer CUDA_ERROR_NOT_INITIALIZED; forking while another thread opens the
/// driver leaves the child unable to open it.
#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

namespace cudamod::driver {

inline constexpr int kOldestVersion = 12000;

/// One place where a driver was looked for, and what was wrong with it.
struct Attempt {
    std::string where;
    std::string reason;
};

/// The driver that is open.
struct Opened {
    std::string choice;
    std::string path;              ///< the file, as the loader names it
    int version = 0;               ///< 13000 for CUDA 13.0
    std::vector<Attempt> rejected; ///< what was tried before, and why not
    void* handle = nullptr;
    int process = 0; ///< the process that opened it; a fork inherits handles that are not usable
};

/// No usable driver.
class DriverNotFound : public std::exception {
  public:
    DriverNotFound(std::string choice, std::vector<Attempt> searched);

    const char* what() const noexcept override { return message_.c_str(); }
    const std::string& choice() const noexcept { return choice_; }
    const std::vector<Attempt>& searched() const noexcept { return searched_; }

  private:
    std::string choice_;
    std::vector<Attempt> searched_;
    std::string message_;
};

/// A choice that comes too late, or no choice at all.
class SelectionError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Chooses the driver. Throws SelectionError when another one is open already.
void select(std::string choice);

/// The choice in force.
std::string selection();

/// The driver, opened and initialised (cuInit) by the first call. Throws DriverNotFound; the next
/// call tries again.
const Opened& open();

/// Whether open() has succeeded. Opens nothing.
bool opened() noexcept;

/// The same, and by this process, not by one that it was forked from.
bool opened_here() noexcept;

/// The driver's CUDA version, 13000 for 13.0. Opens the driver.
int version();

/// Whether the driver has the function of that slot, with the header's signature. Opens the driver.
/// Throws DriverError where the driver can't be asked.
bool has(std::size_t slot);

/// The same for the function that CUDA's documentation calls `name`; false for one that is not in
/// the list.
bool has(std::string_view name);

/// The entry point of a slot in the open driver, or null: the driver lacks it, or could not be
/// asked, which `status` tells then.
void* find_entry(const Opened& driver, std::size_t slot, CUresult& status) noexcept;

/// "13.0" for 13000.
std::string version_text(int version);

} // namespace cudamod::driver
