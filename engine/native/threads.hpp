// A pool of threads that share out numbered pieces of work.
#pragma once
#include <cstddef>
#include <functional>

// Runs work(0) ... work(count - 1), each once, on all threads of the pool; returns when all are done. What a piece
// computes must not depend on the thread or on the order: then results are the same for any number of threads.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work);
