#include "instructions.hpp"

#include <stdexcept>

namespace {

constexpr const char* names[] = {"portable", "avx2", "avx512"};

Instructions best() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    if (avx2) return avx512 ? Instructions::avx512 : Instructions::avx2;
#endif
    return Instructions::portable;
}

}  // namespace

Instructions instructions = best();

std::vector<std::string> instruction_sets() { return {names, names + static_cast<int>(best()) + 1}; }

void set_instructions(const std::string& name) {
    for (int set = 0; set <= static_cast<int>(best()); ++set)
        if (name == names[set]) {
            instructions = Instructions{set};
            return;
        }
    throw std::invalid_argument("no such instruction set here");
}
