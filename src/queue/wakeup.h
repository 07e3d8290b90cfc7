// How `Queue::notify` reaches the workers of this process.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace commitq::queue {

/// Something that can be woken; a worker's engine.
class Wakeable {
public:
    Wakeable() = default;
    Wakeable(const Wakeable&) = delete;
    Wakeable& operator=(const Wakeable&) = delete;
    virtual ~Wakeable() = default;
    virtual void wake() noexcept = 0;
};

/// The followers of one queue. Thread-safe. Keeps nobody alive.
class Followers {
public:
    void add(std::weak_ptr<Wakeable> follower) {
        const std::scoped_lock lock{mutex_};
        std::erase_if(followers_, [](const auto& known) { return known.expired(); });
        followers_.push_back(std::move(follower));
    }

    void wake() const noexcept {
        const std::scoped_lock lock{mutex_};
        for (const auto& follower : followers_) {
            if (const auto alive = follower.lock()) {
                alive->wake();
            }
        }
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<Wakeable>> followers_;
};

}  // namespace commitq::queue
