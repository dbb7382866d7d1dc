#pragma once

#include <Python.h>

#include <unistd.h>

namespace cudamod::python {

/// Whether the interpreter is on its way out.
inline bool finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/// Takes the interpreter lock back. A daemon thread that comes back while the interpreter finalises
/// never gets it: before 3.14 Python ends such a thread by unwinding its stack, which in C++ ends
/// in std::terminate; here it sleeps until the process is gone, as it does in 3.14.
inline void take_gil(PyThreadState* state) noexcept {
    try {
        PyEval_RestoreThread(state);
    } catch (...) {
        for (;;)
            pause();
    }
}

/// Lets the interpreter lock go for a scope.
class GilReleased {
  public:
    GilReleased() : state_(PyEval_SaveThread()) {}
    ~GilReleased() { take_gil(state_); }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

  private:
    PyThreadState* state_;
};

} // namespace cudamod::python
