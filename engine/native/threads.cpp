#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bind.hpp"

namespace {

// Between two operations of a step a worker spins this often before it sleeps: waking a sleeper costs more than most
// operations, but spinning on while others need the core would cost them theirs.
constexpr int spins = 2000;

class Pool {
  public:
    explicit Pool(std::size_t n_threads) {
        for (std::size_t i = 1; i < n_threads; ++i) workers_.emplace_back([this] { serve(); });
    }

    ~Pool() {
        stopping_.store(true);
        round_.fetch_add(1);
        round_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    std::size_t size() const { return workers_.size() + 1; }

    void run(std::size_t count, const std::function<void(std::size_t)>& work) {
        if (workers_.empty() || count <= 1) {
            for (std::size_t i = 0; i < count; ++i) work(i);
            return;
        }
        std::lock_guard<std::mutex> one_at_a_time(mutex_);
        work_ = &work;
        count_ = count;
        next_.store(0);
        busy_.store(workers_.size());
        round_.fetch_add(1);
        round_.notify_all();
        take(count, work);
        for (std::size_t left = busy_.load(); left != 0; left = busy_.load()) {
            pause(busy_, left);
        }
    }

  private:
    void take(std::size_t count, const std::function<void(std::size_t)>& work) {
        for (std::size_t i = next_.fetch_add(1); i < count; i = next_.fetch_add(1)) work(i);
    }

    // Until `value` is no longer `seen`: spin a little, then sleep.
    template <typename T> static void pause(std::atomic<T>& value, T seen) {
        for (int i = 0; i < spins; ++i) {
            if (value.load(std::memory_order_acquire) != seen) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        value.wait(seen);
    }

    void serve() {
        unsigned seen = 0;
        while (true) {
            pause(round_, seen);
            if (round_.load() == seen) continue;
            seen = round_.load();
            if (stopping_.load()) return;
            take(count_, *work_);
            if (busy_.fetch_sub(1) == 1) busy_.notify_all();
        }
    }

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    const std::function<void(std::size_t)>* work_ = nullptr;
    std::size_t count_ = 0;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> busy_{0};
    std::atomic<unsigned> round_{0};
    std::atomic<bool> stopping_{false};
};

std::unique_ptr<Pool> pool = std::make_unique<Pool>(1);

}  // namespace

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work) { pool->run(count, work); }

void bind_threads(nanobind::module_& module) {
    module.def(
        "set_threads",
        [](std::size_t n_threads) {
            if (n_threads < 1 || n_threads > 1024) throw std::invalid_argument("between 1 and 1024 threads");
            if (n_threads != pool->size()) pool = std::make_unique<Pool>(n_threads);
        },
        nanobind::arg("n_threads"), "Sets how many threads share the work of an operation.");
}
