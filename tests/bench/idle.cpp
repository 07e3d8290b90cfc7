// What a worker costs that has nothing to do, and its memory beside a deep backlog.
#include <algorithm>
#include <thread>

#include "bench/bench.h"

namespace commitq::bench {

Report idle(const Options& options) {
    Report report{.bench = "idle", .rounds = options.rounds};
    const auto window = std::chrono::duration<double>(options.scale < 1 ? 1.0 : 10.0);
    Database quiet;
    Database deep;
    fill(deep, options.rows(1'000'000), 1'000);
    in_turn(options, {[&] {
                          WorkerProcess process{quiet, "q1,q2,q3,q4,q5,q6,q7,q8,q9,q10"};
                          std::this_thread::sleep_for(std::chrono::seconds{1});  // past the first quick polls
                          Connection look = quiet.connect();
                          const long before = status(look, "Questions");
                          const double cpu = process.cpu_seconds();
                          std::this_thread::sleep_for(window);
                          const double used = process.cpu_seconds() - cpu;
                          const long asked = status(look, "Questions") - before - 1;
                          report.add("idle_statements_per_s", static_cast<double>(asked) / window.count());
                          report.add("idle_cpu_percent", 100 * used / window.count());
                      },
                      [&] {
                          WorkerProcess process{deep, "q"};
                          double most = 0;
                          for (int i = 0; i < (options.scale < 1 ? 5 : 30); ++i) {
                              std::this_thread::sleep_for(std::chrono::milliseconds{100});
                              most = std::max(most, process.rss_mb());
                          }
                          report.add("rss_mb", most);
                      }});
    return report;
}

}  // namespace commitq::bench
