# What stubgen cannot see by itself (see nanobind's documentation of pattern files).
