#include <core/signals.h>
#include <core/thread_pack.h>
#include <pthread.h>

#include <utility>

namespace commitq::core {

ThreadPack::ThreadPack() : count_{std::make_shared<Count>()} {}

ThreadPack::~ThreadPack() {
    for (std::thread& thread : threads_) {
        thread.detach();
    }
}

void ThreadPack::spawn(const std::string& name, std::function<void()> body) {
    const SignalsBlocked blocked{Signals::all};
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
