"""Derives CFFI source, driver table and stubs of the selected functions from ``cuda.h``.

Run by CMake as ``python -m cffi_build``; nothing here is installed.
"""
