// The CPU backend's kernels as a Python module; see pascal_engine/backend/cpu/backend.py for their contract.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "instructions.hpp"
#include "threads.hpp"

NB_MODULE(_native, module) {
    module.def("set_threads", &set_threads, nanobind::arg("n_threads"),
               "Sets how many threads share the work of an operation.");
    module.def("instruction_sets", &instruction_sets, "What this machine can run, the best last.");
    module.def("set_instructions", &set_instructions, nanobind::arg("name"));
    bind_linear(module);
    bind_ops(module);
}
