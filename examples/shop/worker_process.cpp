#include "worker_process.h"

#include <commitq/commitq.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>

#include "notification.h"
#include "timing.h"
#include "wire.h"

namespace shop {
namespace {

using namespace std::chrono_literals;

/// The receiver, as workers see it. Threading: thread-safe; one delivery at a time.
class ReceiverClient {
public:
    Receipt deliver(commitq::JobId job, std::string_view type, std::string_view payload) {
        const DeliveryHeader header{job, type.size(), payload.size()};
        char receipt = 0;
        const std::scoped_lock lock{mutex_};
        if (!send_all(kReceiverSocket, {reinterpret_cast<const char*>(&header), sizeof header}) ||
            !send_all(kReceiverSocket, type) || !send_all(kReceiverSocket, payload) ||
            !receive_all(kReceiverSocket, &receipt, 1)) {
            throw std::runtime_error{"the receiver has hung up"};
        }
        return Receipt{receipt};
    }

private:
    std::mutex mutex_;
};

/// Says on standard error what the worker goes on in spite of; now and then, when that goes on as well.
class ErrorPrinter : public commitq::Observer {
public:
    void on_error(std::string_view, const commitq::Error& error) noexcept override {
        const std::scoped_lock lock{mutex_};
        if (std::chrono::steady_clock::now() >= next_) {
            next_ = std::chrono::steady_clock::now() + 5s;
            std::fputs(fmt::format("worker {} goes on after: {}\n", getpid(), error.what()).c_str(), stderr);
        }
    }

private:
    std::mutex mutex_;
    std::chrono::steady_clock::time_point next_{};
};

/// A worker must not outlive the shop, however that ends.
void end_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        std::_Exit(EXIT_FAILURE);  // it was gone before
    }
}

int wait_for(const sigset_t& signals) {
    int signal = 0;
    sigwait(&signals, &signal);
    return signal;
}

}  // namespace

int run_worker(const Options& options) {
    end_with_parent(options.parent);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before there are threads, which inherit it

    ReceiverClient receiver;
    const auto deliver = [&](commitq::JobContext& job) {
        const Receipt receipt = receiver.deliver(job.id(), job.type(), job.payload());
        return receipt == Receipt::failed ? commitq::Outcome::retry("the receiver is broken")
                                          : commitq::Outcome::done();
    };

    // Small batches and a short lease, so that little waits, and not for long, when a worker is killed. The reaper is in
    // the shop's main process.
    commitq::Worker worker{commitq::ConnectOptions::from_url(options.url),
                           {.queues = {options.queue},
                            .concurrency = 4,
                            .batch = 20,
                            .prefetch = 20,
                            .lease = kLease,
                            .poll_max = 100ms,
                            .retry = commitq::RetryPolicy::fixed(200ms),
                            .reaper = false,
                            .observer = std::make_shared<ErrorPrinter>()}};
    for (const std::string_view type : kNotifications) {
        worker.on(std::string{type}, deliver);
    }
    worker.start();
    wait_for(signals);
    return worker.stop(10s).clean ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace shop
