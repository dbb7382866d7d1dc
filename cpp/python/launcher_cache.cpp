#include "python/launcher_cache.h"

#include "python/current_stream.h"
#include "python/integer.h"
#include "python/launch.h"
#include "python/launch_config.h"
#include "python/launcher.h"
#include "python/public_call.h"
#include "python/stream.h"

#include <limits>
#include <utility>

namespace cudamod::python {

namespace {

/// A dimension that is an exact int in range; everything else is for `dimensions` to take or
/// refuse.
bool plain_dimension(PyObject* value, unsigned& dimension) {
    std::uint64_t magnitude;
    bool negative;
    if (!PyLong_CheckExact(value) || !read_long(value, magnitude, negative) || negative ||
        magnitude - 1 >= std::numeric_limits<unsigned>::max())
        return false;
    dimension = static_cast<unsigned>(magnitude);
    return true;
}

launch::Dim3 quick_dimensions(PyObject* value, const char* what) {
    launch::Dim3 result;
    if (plain_dimension(value, result.x)) return result;
    if (PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) <= 3) {
        unsigned* axes[] = {&result.x, &result.y, &result.z};
        Py_ssize_t axis = 0;
        while (axis < PyTuple_GET_SIZE(value) &&
               plain_dimension(PyTuple_GET_ITEM(value, axis), *axes[axis]))
            ++axis;
        if (axis == PyTuple_GET_SIZE(value)) return result;
    }
    return dimensions(value, what);
}

} // namespace

std::size_t LauncherCache::start_of(const Key& key) {
    std::size_t value = key.grid.x;
    for (std::size_t part :
         {std::size_t{key.grid.y}, std::size_t{key.grid.z}, std::size_t{key.block.x},
          std::size_t{key.block.y}, std::size_t{key.block.z}, std::size_t{key.shmem_size},
          reinterpret_cast<std::size_t>(key.stream) >> 4})
        value = value * 31 + part;
    return value;
}

LauncherCache::Entry LauncherCache::look_up(const Key& key) {
    nb::ft_lock_guard lock(mutex_);
    if (!entries_) return {};
    std::size_t start = start_of(key);
    for (std::size_t i = 0; i < kProbes; ++i) {
        const Entry& entry = (*entries_)[(start + i) % kSlots];
        if (entry.config.is_valid() && entry.key == key) return entry;
    }
    return {};
}

void LauncherCache::remember(Entry entry) {
    // What is forgotten goes after the lock: its end may run Python.
    nb::ft_lock_guard lock(mutex_);
    if (!entries_) entries_ = std::make_unique<std::array<Entry, kSlots>>();
    std::size_t start = start_of(entry.key), chosen = (start + next_++ % kProbes) % kSlots;
    for (std::size_t i = 0; i < kProbes; ++i)
        if (!(*entries_)[(start + i) % kSlots].config.is_valid()) {
            chosen = (start + i) % kSlots;
            break;
        }
    std::swap((*entries_)[chosen], entry);
}

nb::object LauncherCache::find(const std::shared_ptr<const launch::Kernel>& kernel,
                               nb::handle key_object) {
    PyObject* parts = key_object.ptr();
    Py_ssize_t size = PyTuple_Check(parts) ? PyTuple_GET_SIZE(parts) : 0;
    if (size < 2 || size > 4) {
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s': kernel[grid, block, stream, shmem_size] takes 2 to 4 parts, "
                     "got %R",
                     kernel->name().c_str(), parts);
        throw nb::python_error();
    }
    Key key{quick_dimensions(PyTuple_GET_ITEM(parts, 0), "grid"),
            quick_dimensions(PyTuple_GET_ITEM(parts, 1), "block"),
            size == 4 ? shared_bytes(PyTuple_GET_ITEM(parts, 3)) : 0, nullptr, nullptr};
    nb::object stream = nb::borrow(size > 2 ? PyTuple_GET_ITEM(parts, 2) : current_mark);
    bool owned = false;
    if (stream.ptr() != current_mark) {
        if (!exactly<Stream>(stream.ptr(), Stream::python_type)) stream = stream_argument(stream);
        const auto& box = handles::box_of<handles::StreamBox>(
            open_handle(*instance_or_exact<Stream>(stream.ptr())));
        key.stream = box.raw;
        key.context = box.context;
        owned = box.owned;
    }
    Entry entry = look_up(key);
    if (entry.launcher.is_valid()) return entry.launcher;
    begin_public_call();
    bool known = entry.config.is_valid();
    if (!known) {
        launch::Shape shape;
        shape.grid = key.grid;
        shape.block = key.block;
        shape.shmem_size = key.shmem_size;
        entry = {key, make<LaunchConfig>(shape), {}};
    }
    auto layout = layout_for(kernel, nb::none(), context_for_layout(stream));
    nb::object launcher = make_launcher(kernel, std::move(layout), entry.config, std::move(stream),
                                        default_gil_manner(), nb::none());
    if (!owned) entry.launcher = launcher;
    if (!known) remember(std::move(entry));
    return launcher;
}

} // namespace cudamod::python
