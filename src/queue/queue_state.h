// What a Queue and its copies share.
#pragma once

#include <commitq/queue.h>
#include <queue/wakeup.h>
#include <store/tables.h>

#include <atomic>
#include <string>

namespace commitq {

struct Queue::State {
    std::string name;
    QueueOptions options;
    store::Tables tables;
    std::atomic<bool> schema_checked{false};
    queue::Followers followers{};
};

}  // namespace commitq
