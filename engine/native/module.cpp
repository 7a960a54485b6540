// The CPU backend's kernels as a Python module; see pascal_engine/backend/cpu/backend.py for their contract.
#include <nanobind/nanobind.h>

#include "bind.hpp"

NB_MODULE(_native, module) {
    bind_threads(module);
    bind_linear(module);
    bind_ops(module);
}
