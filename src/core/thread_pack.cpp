#include <core/thread_pack.h>
#include <pthread.h>

#include <csignal>
#include <utility>

namespace commitq::core {
namespace {

/// Blocks all signals for a scope; a thread started in it inherits that. The host's signals go to the host's threads.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

ThreadPack::ThreadPack() : count_{std::make_shared<Count>()} {}

ThreadPack::~ThreadPack() {
    for (std::thread& thread : threads_) {
        thread.detach();
    }
}

void ThreadPack::spawn(const std::string& name, std::function<void()> body) {
    const SignalsBlocked blocked;
    {
        const MutexLock lock{count_->mutex};
        ++count_->running;
    }
    try {
        threads_.emplace_back([count = count_, body = std::move(body)]() mutable {
            body();
            body = nullptr;  // lets go of what it shares before it says that it has ended
            const MutexLock lock{count->mutex};
            --count->running;
            count->changed.notify_all();
        });
    } catch (...) {
        const MutexLock lock{count_->mutex};
        --count_->running;
        throw;
    }
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
}

bool ThreadPack::wait_until(Clock::time_point time) {
    {
        MutexLock lock{count_->mutex};
        while (count_->running != 0) {
            if (Clock::now() >= time) {
                return false;
            }
            lock.wait_until(count_->changed, time);
        }
    }
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
    return true;
}

}  // namespace commitq::core
