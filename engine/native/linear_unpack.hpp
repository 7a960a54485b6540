// Weight blocks to plain bytes with integer scales: the facts of each format.
#pragma once
#include "linear_unpack_32.hpp"
#include "linear_unpack_iq.hpp"
#include "linear_unpack_k.hpp"
