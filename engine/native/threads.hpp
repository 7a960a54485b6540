// A pool of threads that share out numbered pieces of work.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

// Runs work(0) ... work(count - 1), each once, on all threads of the pool; returns when all are done. What a piece
// computes must not depend on the thread or on the order: then results are the same for any number of threads.
// Never called from within a piece.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work);

// How many threads there are, the caller's included; throws std::invalid_argument unless 1 to 1024.
void set_threads(std::size_t n_threads);

// Shares out the range 0 ... count - 1 in pieces of `grain`: work(first, behind the last).
template <typename Work> void parallel_ranges(std::size_t count, std::size_t grain, const Work& work) {
    if (count <= grain) {
        if (count) work(std::size_t{0}, count);
        return;
    }
    parallel_for((count + grain - 1) / grain,
                 [&](std::size_t piece) { work(piece * grain, std::min(count, (piece + 1) * grain)); });
}
