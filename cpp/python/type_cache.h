#pragma once

#include "python/argument.h"

#include <Python.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// How values of one Python type become arguments. `data` is whatever the converter wants to know
/// of the type.
struct Conversion {
    bool (*convert)(PyObject*, const launch::Parameter&, std::byte*, const ArgumentSite&,
                    const void* data);
    const void* data;
};

/// Remembers for each Python type how its values are converted. An entry is immutable once it is
/// published and lives for ever, with a reference to its type, so a reader needs no lock; a full
/// table resolves anew.
class TypeCache {
  public:
    using Resolve = Conversion (*)(PyTypeObject*);
    explicit TypeCache(Resolve resolve) : resolve_(resolve) {}

    Conversion find(PyTypeObject* type) {
        std::size_t start = reinterpret_cast<std::uintptr_t>(type) / alignof(std::max_align_t);
        for (std::size_t i = 0; i < kProbes; ++i) {
            const Entry* entry = slots_[(start + i) % kSlots].load(std::memory_order_acquire);
            if (!entry) break;
            if (entry->type == type) return entry->conversion;
        }
        return add(type, start);
    }

  private:
    struct Entry {
        PyTypeObject* type;
        Conversion conversion;
    };
    static constexpr std::size_t kSlots = 256, kProbes = 8;

    Conversion add(PyTypeObject* type, std::size_t start) {
        Conversion conversion = resolve_(type);
        auto* fresh = new Entry{type, conversion};
        for (std::size_t i = 0; i < kProbes; ++i) {
            const Entry* empty = nullptr;
            if (slots_[(start + i) % kSlots].compare_exchange_strong(empty, fresh,
                                                                     std::memory_order_acq_rel)) {
                Py_INCREF(type);
                return conversion;
            }
            if (empty->type == type) break;
        }
        delete fresh;
        return conversion;
    }

    Resolve resolve_;
    std::array<std::atomic<const Entry*>, kSlots> slots_{};
};

} // namespace cudamod::python
