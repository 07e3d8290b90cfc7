#include "shop.h"

#include <commitq/schema.h>
#include <commitq/transaction.h>
#include <fmt/format.h>

#include <cstdio>
#include <random>
#include <stdexcept>

#include "notification.h"
#include "timing.h"

namespace shop {

// Several runs on one database keep out of each other's way by their names.
Shop::Shop(const Options& options)
    : options_{options},
      run_{fmt::format("{:08x}", std::random_device{}())},
      queue_{"shop-" + run_},
      server_{commitq::ConnectOptions::from_url(options.url)},
      db_{examples::connect(server_)},
      reader_{options.orders, console_},
      counter_{.server = server_,
               .run = run_,
               .queue = commitq::Queue{queue_, {.max_payload = kMaxOrder + 100}},
               .seed = options.seed,
               .orders = orders_,
               .sales = sales_,
               .console = console_},
      receiver_{options.log},
      workers_{queue_, receiver_, console_} {
    commitq::Schema{server_}.migrate();
    create_shop_tables(db_.get());
}

int Shop::run() {
    open();
    try {
        watch();
    } catch (const std::exception& error) {
        give_up(error.what());
    }
    intake_thread_.join();
    for (std::jthread& producer : producers_) {
        producer.join();
    }
    stopped_badly_ = workers_.stop(kStopDeadline);
    reaper_->stop();
    console_.end_progress();
    return report();
}

void Shop::open() {
    console_.note(fmt::format("run {} on {}: {} producers, {} worker processes", run_, server_.describe(),
                              options_.producers, options_.workers));
    workers_.start(options_.workers);
    reaper_.emplace(server_, commitq::ReaperOptions{.interval = kReaperInterval, .grace = kLease, .observer = reaped_});
    reaper_->start();
    for (int i = 0; i < options_.producers; ++i) {
        producers_.emplace_back([this](const std::stop_token& stop) { Producer{counter_}.run(stop); });
    }
    intake_thread_ = std::jthread{[this](const std::stop_token& stop) { read_orders(stop); }};
}

void Shop::read_orders(const std::stop_token& stop) {
    try {
        while (std::optional<Order> order = reader_.next(stop)) {
            ++intake_.orders;
            orders_.push(std::move(*order), stop);
        }
    } catch (const std::exception& error) {
        intake_.error = error.what();
    }
    intake_.skipped = reader_.skipped();
    receiver_.keep_waiting_after(intake_.orders * kNotifications.size() / 2);  // half-way
    intake_.ended = true;
    orders_.close();
}

void Shop::watch() {
    while (!all_done()) {
        std::this_thread::sleep_for(kTick);
        kill_a_worker();
        workers_.replace_dead();
        show_progress();
        check_for_stall();
        if (receiver_.broken()) {
            throw std::runtime_error{"the receiver can't write its log"};
        }
    }
}

void Shop::give_up(std::string reason) {
    console_.note("giving up: " + reason);
    gave_up_ = std::move(reason);
    intake_thread_.request_stop();
    for (std::jthread& producer : producers_) {
        producer.request_stop();
    }
}

// The worker that has just delivered something and waits for the answer: the receiver has it, the database doesn't know.
void Shop::kill_a_worker() {
    const std::optional<int> connection = receiver_.kept_waiting();
    if (killed_ || !connection) {
        return;
    }
    killed_ = workers_.kill_worker(*connection);
    if (killed_) {
        console_.note(fmt::format("half-way, after {} deliveries: SIGKILL for worker {}, which has jobs running",
                                  receiver_.delivered(), *killed_));
    }
}

bool Shop::all_done() {
    const bool placed = intake_.ended && sales_.placed + sales_.failed == intake_.orders;
    const bool delivered = receiver_.delivered() >= sales_.placed * kNotifications.size();
    if (!delivered && unfinished_ > 0 && ++ticks_ % 10 != 0) {
        return false;  // not worth a look at the database
    }
    try {
        const std::string sql =
            "SELECT COUNT(*) FROM commitq_jobs WHERE state IN ('pending', 'running', 'blocked') AND queue = ";
        unfinished_ = std::stoull(examples::value(database().get(), sql + commitq::sql_literal(queue_)));
    } catch (const examples::SqlError& error) {
        if (db_) {  // the first time in a row
            console_.note(fmt::format("the database can't be asked: {}", error.what()));
        }
        db_.reset();
        return false;
    }
    return placed && unfinished_ == 0;
}

void Shop::check_for_stall() {
    const auto now = std::chrono::steady_clock::now();
    const Figures figures{intake_.orders,        sales_.placed,          sales_.failed,
                          receiver_.delivered(), receiver_.duplicates(), unfinished_};
    const bool idle = unfinished_ == 0 && db_ && sales_.placed + sales_.failed == intake_.orders;
    const bool waits_for_input = idle && !intake_.ended;
    if (figures != last_figures_ || waits_for_input) {
        last_figures_ = figures;
        last_move_ = now;
    }
    if (now - last_move_ > options_.patience) {
        throw std::runtime_error{fmt::format(
            "nothing has moved for {} s: {} orders read, {} placed; {} notifications delivered, {} jobs not finished",
            options_.patience.count(), intake_.orders.load(), sales_.placed.load(), receiver_.delivered(),
            unfinished_)};
    }
}

void Shop::show_progress() {
    console_.progress(fmt::format("orders {}/{}{}   jobs {}   delivered {}   duplicates {}   workers {}",
                                  sales_.placed.load(), intake_.orders.load(), intake_.ended ? "" : "+",
                                  sales_.placed * kNotifications.size(), receiver_.delivered(), receiver_.duplicates(),
                                  workers_.size()));
}

std::vector<std::string> Shop::problems_of_this_run() const {
    std::vector<std::string> problems;
    if (!gave_up_.empty()) {
        problems.emplace_back("given up: " + gave_up_);
    }
    if (!intake_.error.empty()) {
        problems.push_back(intake_.error);
    }
    if (sales_.failed > 0) {
        problems.push_back(fmt::format("{} orders could not be placed", sales_.failed.load()));
    }
    if (intake_.orders == 0 && intake_.skipped > 0) {
        problems.emplace_back("no line of the input is an order");
    }
    if (stopped_badly_ > 0) {
        problems.push_back(fmt::format("{} workers did not stop in good order", stopped_badly_));
    }
    return problems;
}

int Shop::report() {
    const Reconciliation result = reconcile(database().get(), run_, queue_, receiver_.log(), sales_.ghosts);
    std::vector<std::string> problems = problems_of_this_run();
    problems.insert(problems.end(), result.problems.begin(), result.problems.end());
    if (result.orders != sales_.placed) {
        problems.push_back(fmt::format("{} orders were placed, but there are {}", sales_.placed.load(), result.orders));
    }

    fmt::print("\nReconciliation of run {}\n", run_);
    fmt::print("  input         {} orders, {} lines skipped\n", intake_.orders.load(), intake_.skipped.load());
    fmt::print("  shop_orders   {} rows\n", result.orders);
    fmt::print("  rolled back   {} transactions on purpose, and their {} jobs, of which {} were delivered\n",
               sales_.rolled_back.load(), sales_.ghosts.size(), result.ghosts);
    fmt::print("  commitq_jobs  {} rows, {} of them completed\n", result.jobs, result.completed);
    if (killed_) {
        fmt::print("  killed        worker {}; the reaper brought {} jobs back\n", *killed_, reaped_->returned.load());
    } else {
        fmt::print("  killed        no worker: all was delivered before the end of the input was known\n");
    }
    fmt::print("  receiver      {} jobs delivered; repeated, and ignored: {}\n", result.delivered,
               receiver_.duplicates());
    for (const std::string& problem : problems) {
        fmt::print("  PROBLEM       {}\n", problem);
    }
    fmt::print("orders={} jobs={} delivered={} duplicates={} lost={}\n", result.orders, result.jobs, result.delivered,
               receiver_.duplicates(), result.lost);
    return problems.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

examples::Connection& Shop::database() {
    if (!db_) {
        db_ = examples::connect(server_);
    }
    return db_;
}

}  // namespace shop
