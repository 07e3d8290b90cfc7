// What a Worker is before and after `start`.
#pragma once

#include <commitq/reaper.h>
#include <commitq/worker.h>
#include <core/thread_pack.h>
#include <worker/engine.h>

#include <sys/types.h>
#include <atomic>
#include <memory>

namespace commitq {

struct Worker::Impl : queue::Wakeable {
    Impl(ConnectOptions connect_options, WorkerOptions worker_options)
        : connection{std::move(connect_options)}, options{std::move(worker_options)} {}

    /// Passes a wake on to the engine, if it runs. Any thread.
    void wake() noexcept override;

    ConnectOptions connection;
    WorkerOptions options;
    worker::Handlers handlers{};

    core::Mutex mutex{};  ///< Guards what `start` sets against `wake` and `health`.
    std::shared_ptr<worker::Engine> engine GUARDED_BY(mutex);
    std::shared_ptr<worker::Engine> inline_engine{};  ///< Of `run_once`.
    std::unique_ptr<Reaper> reaper{};
    core::ThreadPack handler_threads{};
    core::ThreadPack loop_threads{};
    /// The process that has the threads and connections of `start` or `run_once`; 0 for none. A fork has neither.
    std::atomic<pid_t> used_by{0};
    bool started = false;
    bool stopped = false;
};

}  // namespace commitq
