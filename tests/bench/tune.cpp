// What batch sizes and prefetch do for the throughput, and what a hand-written loop would gain by other ways of writing. Not
// part of `all`: it says why the defaults are what they are.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace commitq::bench {

Report tune(const Options& options) {
    Report report{.bench = "tune", .rounds = options.rounds};
    const int jobs = options.rows(20'000);
    std::vector<std::function<void()>> sides;
    const auto worker = [&](const std::string& name, int batch, int prefetch) {
        sides.emplace_back([&report, jobs, name, batch, prefetch] {
            Database database;
            fill(database, jobs, 200);
            WorkerOptions worker_options = drain_worker();
            worker_options.batch = batch;
            worker_options.prefetch = prefetch;
            const Drained drained = drain_once(database, jobs, worker_options);
            report.add(name + "_jobs_per_s", drained.jobs_per_s);
            report.add(name + "_cpu_us_per_job", drained.cpu_us_per_job);
        });
    };
    for (const int batch : {50, 100, 200, 500}) {
        worker(fmt::format("batch_{:03}", batch), batch, 2 * batch);
    }
    worker("batch_100_prefetch_0", 100, 0);
    worker("batch_100_prefetch_500", 100, 500);
    for (const auto& [name, kind] : {std::pair{"plain", FloorLoop::plain}, {"merged", FloorLoop::merged}}) {
        sides.emplace_back([&report, jobs, label = std::string{name}, loop = kind] {
            Database database;
            fill(database, jobs, 200);
            report.add("floor_" + label + "_jobs_per_s", jobs / floor_drain(database, 2, 100, loop));
        });
    }
    in_turn(options, sides);
    return report;
}

}  // namespace commitq::bench
