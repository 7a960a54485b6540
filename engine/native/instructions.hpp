// The instruction sets that kernels exist for, and the one in use.
#pragma once
#include <string>
#include <vector>

// AVX2 stands for AVX2, FMA and F16C; AVX-512 for those with the subsets F, BW, VL and VNNI.
enum class Instructions { portable, avx2, avx512 };

// What all operations use; the best that this machine can run, until it is set.
extern Instructions instructions;

// Names of what this machine can run, the best last.
std::vector<std::string> instruction_sets();

// Throws std::invalid_argument where this machine cannot.
void set_instructions(const std::string& name);
