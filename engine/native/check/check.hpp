// Compares the instruction sets of this machine with each other, kernel by kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using Floats = std::vector<float>;

// What was found of one kernel; prints itself as a row of the table.
class Verdict {
  public:
    explicit Verdict(std::string name) : name_(std::move(name)) {}

    // The same bits (any NaN is like another).
    void same(const Floats& got, const Floats& expected, const std::string& what);
    // Apart by at most `limit` of the largest magnitude.
    void near(const Floats& got, const Floats& expected, double limit, const std::string& what);
    void expect(bool held, const std::string& what);

    // True where all held.
    bool print() const;

  private:
    std::string name_, first_;
    std::size_t n_compared_ = 0, n_failed_ = 0;
    double apart_ = 0;
};

// Results of each instruction set, the first the portable one: vectors must agree in every bit, and nearly with it.
void compare(Verdict& verdict, const std::vector<Floats>& of_sets, double limit, const std::string& what);

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t bits() { return engine_(); }
    std::uint64_t below(std::uint64_t end) { return engine_() % end; }
    float between(float low, float high) { return low + (high - low) * static_cast<float>(engine_() >> 40) * 0x1p-24f; }
    Floats floats(std::size_t count, float low = -2, float high = 2) {
        Floats values(count);
        for (float& value : values) value = between(low, high);
        return values;
    }

  private:
    std::mt19937_64 engine_;
};

// Each prints its rows; true where all held.
bool check_products();
bool check_operations();
void time_products(std::size_t n_threads);
void time_operations();
