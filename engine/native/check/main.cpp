// check [--time] [--threads N]: see README.md.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "../instructions.hpp"
#include "check.hpp"

void Verdict::expect(bool held, const std::string& what) {
    ++n_compared_;
    if (held) return;
    if (n_failed_++ == 0) first_ = what;
}

void Verdict::same(const Floats& got, const Floats& expected, const std::string& what) {
    bool equal = got.size() == expected.size();
    for (std::size_t i = 0; equal && i < got.size(); ++i)
        equal =
            std::memcmp(&got[i], &expected[i], sizeof(float)) == 0 || (std::isnan(got[i]) && std::isnan(expected[i]));
    expect(equal, what);
}

void Verdict::near(const Floats& got, const Floats& expected, double limit, const std::string& what) {
    double apart = 0, largest = 1e-30;
    bool comparable = got.size() == expected.size();
    for (std::size_t i = 0; comparable && i < got.size(); ++i) {
        comparable = std::isfinite(got[i]) == std::isfinite(expected[i]);
        if (!std::isfinite(expected[i])) continue;
        apart = std::fmax(apart, std::fabs(double{got[i]} - expected[i]));
        largest = std::fmax(largest, std::fabs(double{expected[i]}));
    }
    apart_ = std::fmax(apart_, apart / largest);
    expect(comparable && apart <= limit * largest, what);
}

bool Verdict::print() const {
    std::printf("%-26s %8zu %12.1e   %s%s\n", name_.c_str(), n_compared_, apart_, n_failed_ == 0 ? "ok" : "DIFFERS: ",
                n_failed_ == 0 ? "" : (std::to_string(n_failed_) + ", first " + first_).c_str());
    std::fflush(stdout);
    return n_failed_ == 0;
}

void compare(Verdict& verdict, const std::vector<Floats>& of_sets, double limit, const std::string& what) {
    const auto names = instruction_sets();
    for (std::size_t set = 1; set < of_sets.size(); ++set) {
        verdict.near(of_sets[set], of_sets[0], limit, what + ", " + names[set] + " and portable");
        if (set > 1) verdict.same(of_sets[set], of_sets[1], what + ", " + names[set] + " and avx2");
    }
}

int main(int count, char** arguments) {
    std::size_t n_threads = std::thread::hardware_concurrency();
    bool timed = false;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(arguments[i], "--time") == 0) timed = true;
        else if (std::strcmp(arguments[i], "--threads") == 0 && i + 1 < count)
            n_threads = std::strtoul(arguments[++i], nullptr, 10);
        else {
            std::fprintf(stderr, "usage: %s [--time] [--threads N]\n", arguments[0]);
            return 2;
        }
    }
    std::printf("instruction sets here:");
    for (const auto& name : instruction_sets()) std::printf(" %s", name.c_str());
    std::printf(
        "\nBits are compared among vector sets, between columns alone and together, and between numbers of threads;\n"
        "distances are those of vector sets from portable, relative to the largest magnitude.\n\n");
    std::printf("%-26s %8s %12s\n", "kernel", "compared", "distance");
    bool held = check_products();
    held = check_operations() && held;
    std::printf(held ? "\nall agree\n" : "\nTHERE ARE DIFFERENCES\n");
    if (timed) {
        time_products(n_threads);
        time_operations();
    }
    return held ? 0 : 1;
}
