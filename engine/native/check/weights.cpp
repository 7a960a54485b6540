#include "weights.hpp"

#include <cstring>

#include "../linear_decode.hpp"
#include "../linear_tables.hpp"

const std::vector<Named>& types() {
    static const std::vector<Named> all = {
        {"F32", Type::F32, 1, {}},           {"F16", Type::F16, 1, {}},          {"BF16", Type::BF16, 1, {}},
        {"Q4_0", Type::Q4_0, 32, {0}},       {"Q4_1", Type::Q4_1, 32, {0, 2}},   {"Q5_0", Type::Q5_0, 32, {0}},
        {"Q5_1", Type::Q5_1, 32, {0, 2}},    {"Q8_0", Type::Q8_0, 32, {0}},      {"IQ4_NL", Type::IQ4_NL, 32, {0}},
        {"Q2_K", Type::Q2_K, 256, {80, 82}}, {"Q3_K", Type::Q3_K, 256, {108}},   {"Q4_K", Type::Q4_K, 256, {0, 2}},
        {"Q5_K", Type::Q5_K, 256, {0, 2}},   {"Q6_K", Type::Q6_K, 256, {208}},   {"IQ2_XXS", Type::IQ2_XXS, 256, {0}},
        {"IQ2_XS", Type::IQ2_XS, 256, {0}},  {"IQ2_S", Type::IQ2_S, 256, {0}},   {"IQ3_XXS", Type::IQ3_XXS, 256, {0}},
        {"IQ3_S", Type::IQ3_S, 256, {0}},    {"IQ4_XS", Type::IQ4_XS, 256, {0}},
    };
    return all;
}

namespace {

// Between 1/64 and 1/32, either sign; at edges zeros, subnormals, ones and a large one.
std::uint16_t scale(Random& random, Filling filling) {
    constexpr std::uint16_t edges[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x5800};
    if (filling != Filling::random) return edges[random.below(std::size(edges))];
    return static_cast<std::uint16_t>(0x2400 | random.below(0x400) | random.below(2) << 15);
}

void fill_floats(Type type, Random& random, std::vector<std::uint8_t>& bytes) {
    const std::size_t width = type == Type::F32 ? 4 : 2;
    for (std::size_t at = 0; at < bytes.size(); at += width) {
        const float value = random.between(-1, 1);
        const auto half = static_cast<std::uint16_t>((0x2000 + random.below(0x1c00)) | random.below(2) << 15);
        if (type == Type::F32) std::memcpy(&bytes[at], &value, 4);
        if (type == Type::F16) std::memcpy(&bytes[at], &half, 2);
        if (type == Type::BF16) std::memcpy(&bytes[at], reinterpret_cast<const char*>(&value) + 2, 2);
    }
}

}  // namespace

Weights::Weights(const Named& type, std::size_t n_experts, std::size_t n_outputs, std::size_t n_inputs, Filling filling,
                 std::uint64_t seed) {
    Random random(seed);
    const std::size_t a_row = row_bytes(type.type, n_inputs),
                      n_blocks = n_experts * n_outputs * (n_inputs / type.block);
    bytes.resize(n_experts * n_outputs * a_row);
    if (type.block == 1) {
        fill_floats(type.type, random, bytes);
    } else {
        constexpr std::uint8_t values[] = {0, 255, 128, 0};
        for (std::uint8_t& byte : bytes)
            byte = filling == Filling::random ? static_cast<std::uint8_t>(random.bits() >> 32)
                                              : values[static_cast<int>(filling)];
        for (std::size_t block = 0; block < n_blocks; ++block)
            for (std::size_t at : type.halves) {
                const std::uint16_t half = scale(random, filling);
                std::memcpy(&bytes[block * (bytes.size() / n_blocks) + at], &half, sizeof half);
            }
    }
    matrix.n_experts = n_experts, matrix.n_outputs = n_outputs, matrix.n_inputs = n_inputs;
    matrix.parts = {{type.type, n_outputs, a_row, bytes.data()}};
}

// Lattice points as large as the formats have them, and the levels of IQ4_NL.
void fill_tables() {
    Random random(1);
    const auto points = [&](auto& table) {
        auto* bytes = reinterpret_cast<std::uint8_t*>(table);
        for (std::size_t i = 0; i < sizeof table; ++i) bytes[i] = static_cast<std::uint8_t>(1 + random.below(62));
    };
    points(iq_tables.iq2_xxs), points(iq_tables.iq2_xs), points(iq_tables.iq2_s);
    points(iq_tables.iq3_xxs), points(iq_tables.iq3_s);
    for (std::size_t i = 0; i < 128; ++i)
        iq_tables.signs[i] = static_cast<std::uint8_t>(i | (__builtin_popcountll(i) & 1) << 7);
    constexpr std::int8_t levels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    std::memcpy(iq_tables.levels, levels, sizeof levels);
    fill_byte_masks(iq_tables);
}
