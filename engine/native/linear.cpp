#include "bind.hpp"

void bind_linear(nanobind::module_&) {}
