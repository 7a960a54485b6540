#include "threads.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

// Between two operations of a step a worker spins this often before it sleeps: waking a sleeper costs more than most
// operations, but spinning on while others need the core would cost them theirs.
constexpr int spins = 2000;

// Number of pieces and next piece in one word: whoever comes too late to take a piece sees so, whatever round has begun
// since. So the caller waits for the pieces that were taken, never for workers that sleep.
struct Ticket {
    static constexpr int bits = 32;
    static std::uint64_t first(std::size_t count) { return std::uint64_t{count} << bits; }
    static std::size_t count(std::uint64_t ticket) { return ticket >> bits; }
    static std::size_t piece(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket); }
};

class Pool {
  public:
    explicit Pool(std::size_t n_threads) {
        for (std::size_t i = 1; i < n_threads; ++i) workers_.emplace_back([this] { serve(); });
    }

    ~Pool() {
        stopping_.store(true);
        wake();
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
        done_.store(0);
        ticket_.store(Ticket::first(count));
        wake();
        take();
        for (std::size_t done = done_.load(); done != count; done = done_.load()) pause(done_, done);
    }

  private:
    void wake() {
        round_.fetch_add(1);
        round_.notify_all();
    }

    void take() {
        while (true) {
            const std::uint64_t ticket = ticket_.fetch_add(1);
            const std::size_t count = Ticket::count(ticket);
            if (Ticket::piece(ticket) >= count) return;
            (*work_)(Ticket::piece(ticket));  // stays as it is until this piece is done
            if (done_.fetch_add(1) + 1 == count) done_.notify_all();
        }
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
        std::uint32_t seen = 0;
        while (true) {
            pause(round_, seen);
            if (stopping_.load()) return;
            seen = round_.load();
            take();
        }
    }

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    const std::function<void(std::size_t)>* work_ = nullptr;
    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<std::uint32_t> round_{0};
    std::atomic<bool> stopping_{false};
};

std::unique_ptr<Pool> pool = std::make_unique<Pool>(1);

}  // namespace

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work) { pool->run(count, work); }

void set_threads(std::size_t n_threads) {
    if (n_threads < 1 || n_threads > 1024) throw std::invalid_argument("between 1 and 1024 threads");
    if (n_threads != pool->size()) pool = std::make_unique<Pool>(n_threads);
}
