// One claimed job on its way through the worker.
#pragma once

#include <commitq/job_context.h>
#include <commitq/observer.h>
#include <commitq/worker.h>
#include <core/clock.h>
#include <core/random.h>
#include <mysql/session.h>
#include <store/claim.h>
#include <store/tables.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace commitq::worker {

/// A handler with its options, defaults filled in.
struct Registered {
    Handler handler;
    RetryPolicy retry;
    int max_attempts;
    std::chrono::milliseconds timeout;
};

/// What a run needs of its worker to open transactions and complete inside one.
struct Services {
    store::Tables tables;  ///< With the schema's name: a caller's connection may have another current one.
    core::Token owner{};
    /// Gives a kept session or, when asked for a fresh one, a new one. Empty in `testing::perform`.
    std::function<std::shared_ptr<mysql::Session>(bool fresh)> open_session{};
};

/// One attempt at one job. Shared by the threads it passes through; what is not atomic belongs to one of them at a time.
class Run {
public:
    Run(store::ClaimedJob claimed, std::shared_ptr<const Registered> registered, std::shared_ptr<const Services> worker)
        : job{std::move(claimed)}, handler{std::move(registered)}, services{std::move(worker)} {}

    /// Fires the stop token; the first reason stays.
    void request_stop(StopReason why) {
        StopReason none = StopReason::none;
        reason.compare_exchange_strong(none, why);
        stop.request_stop();
    }

    [[nodiscard]] JobEvent event() const {
        return {
            .id = job.id, .queue = job.queue, .type = job.type, .attempt = job.attempt, .wait = job.wait, .run = ran};
    }

    store::ClaimedJob job;
    std::shared_ptr<const Registered> handler;
    std::shared_ptr<const Services> services;
    Headers headers{};
    std::stop_source stop{};
    std::atomic<StopReason> reason{StopReason::none};
    std::atomic<std::chrono::microseconds> ran{};  ///< Told to the observer by whoever notices something, at any time.

    // Set by the handler's thread in complete_in.
    bool completed_in = false;                   ///< The completion is part of a transaction of the handler's.
    std::shared_ptr<const bool> committed_in{};  ///< Whether that committed; null for a caller's connection.
};

}  // namespace commitq::worker
