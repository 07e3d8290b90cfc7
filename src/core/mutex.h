// std::mutex and condition variable with clang's thread-safety annotations (-Wthread-safety).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define COMMITQ_TSA(x) __attribute__((x))
#else
#define COMMITQ_TSA(x)
#endif
#define CAPABILITY(x) COMMITQ_TSA(capability(x))
#define SCOPED_CAPABILITY COMMITQ_TSA(scoped_lockable)
#define GUARDED_BY(x) COMMITQ_TSA(guarded_by(x))
#define REQUIRES(...) COMMITQ_TSA(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) COMMITQ_TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) COMMITQ_TSA(release_capability(__VA_ARGS__))
#define EXCLUDES(...) COMMITQ_TSA(locks_excluded(__VA_ARGS__))

namespace commitq::core {

class CAPABILITY("mutex") Mutex {
public:
    Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;
    ~Mutex() = default;

private:
    friend class MutexLock;
    std::mutex mutex_;
};

/// Holds a Mutex for a scope; what a condition variable waits with.
class SCOPED_CAPABILITY MutexLock {
public:
    explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_{mutex.mutex_} {}
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;
    ~MutexLock() RELEASE() = default;

    void wait(std::condition_variable& changed) { changed.wait(lock_); }
    template <class TimePoint>
    void wait_until(std::condition_variable& changed, TimePoint time) {
        changed.wait_until(lock_, time);
    }

private:
    std::unique_lock<std::mutex> lock_;
};

}  // namespace commitq::core
