// What each source file adds to the module.
#pragma once
#include <nanobind/nanobind.h>

void bind_linear(nanobind::module_& module);
void bind_ops(nanobind::module_& module);
