// Weights of every type for the check: random ones, and edges.
#pragma once
#include "../linear_matrix.hpp"
#include "check.hpp"

struct Named {
    const char* name;
    Type type;
    std::size_t block;                // values; 1 for floats
    std::vector<std::size_t> halves;  // where the half floats of a block lie
};

const std::vector<Named>& types();

// random: any bytes, scales of sane size. The others: all bytes alike, scales from zero to the largest.
enum class Filling { random, ones, high_bits, zeros };

// A matrix of one type with the memory under it.
struct Weights {
    std::vector<std::uint8_t> bytes;
    Matrix matrix;

    Weights(const Named& type, std::size_t n_experts, std::size_t n_outputs, std::size_t n_inputs, Filling filling,
            std::uint64_t seed);
    Weights(const Weights&) = delete;
};

void fill_tables();
