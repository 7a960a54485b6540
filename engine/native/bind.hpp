// What each source file adds to the module.
#pragma once
#include <nanobind/nanobind.h>

// Whether operations use AVX2, FMA and F16C, as `set_instructions` says.
extern bool use_avx2;

void bind_threads(nanobind::module_& module);
void bind_linear(nanobind::module_& module);
void bind_ops(nanobind::module_& module);
