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

/// Remembers what was found out of a Python type, as how its values are converted. It keeps no type
/// alive: an entry holds for one version of its type, and no other type ever has that version. So a
/// class that is changed, or another one at the address of a dead one, is resolved anew. Readers
/// need no lock.
template <class Found>
class TypeCache {
  public:
    using Resolve = Found (*)(PyTypeObject*);
    explicit constexpr TypeCache(Resolve resolve) : resolve_(resolve) {}

    Found find(PyTypeObject* type) {
        std::size_t start = start_of(type);
        for (std::size_t i = 0; i < kProbes; ++i) {
            const Entry* entry = slots_[(start + i) % kSlots].load(std::memory_order_acquire);
            if (!entry) break;
            if (entry->type == type && entry->version == type->tp_version_tag) return entry->found;
        }
        return add(type);
    }

  private:
    struct Entry {
        PyTypeObject* type;
        unsigned version;
        Found found;
    };
    static constexpr std::size_t kSlots = 256, kProbes = 8;

    static std::size_t start_of(PyTypeObject* type) {
        return reinterpret_cast<std::uintptr_t>(type) / alignof(std::max_align_t);
    }

    /// The type's version, or 0 where Python has no number left for it.
    static unsigned version_of(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
        PyUnstable_Type_AssignVersionTag(type);
#else
        // A look-up gives the type its version.
        if (PyObject* found =
                PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__index__"))
            Py_DECREF(found);
        else
            PyErr_Clear();
        if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
        return type->tp_version_tag;
    }

    /// Where the type's entry goes: in place of its earlier one, else where nothing is, else in the
    /// place of another.
    std::atomic<const Entry*>& slot_for(PyTypeObject* type) {
        std::size_t start = start_of(type);
        for (std::size_t i = 0; i < kProbes; ++i) {
            auto& slot = slots_[(start + i) % kSlots];
            const Entry* entry = slot.load(std::memory_order_acquire);
            if (!entry || entry->type == type) return slot;
        }
        return slots_[start % kSlots];
    }

    [[gnu::noinline]] Found add(PyTypeObject* type) {
        Found found = resolve_(type);
        if (unsigned version = version_of(type)) {
            const Entry* before =
                slot_for(type).exchange(new Entry{type, version, found}, std::memory_order_acq_rel);
#ifdef Py_GIL_DISABLED
            (void)before; // another thread may be reading it
#else
            delete before;
#endif
        }
        return found;
    }

    Resolve resolve_;
    std::array<std::atomic<const Entry*>, kSlots> slots_{};
};

} // namespace cudamod::python
