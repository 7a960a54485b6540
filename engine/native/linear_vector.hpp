// All that the vector kernels include. They are compiled once for each instruction set, inside its source file, where
// the instruction set is turned on only behind this: no shared inline function comes to need it.
#pragma once
#include <immintrin.h>

#include <algorithm>

#include "linear_unpack.hpp"
