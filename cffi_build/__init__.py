"""Build-time generator: the selected functions of ``cuda.h`` as typed CFFI source, driver table and stubs.

Run by CMake as ``python -m cffi_build``; nothing here is installed.
"""
