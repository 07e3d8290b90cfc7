// commitq-bench: the figures of docs/benchmarks.md.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"

namespace {

using namespace commitq::bench;

constexpr std::string_view kUsage =
    R"(commitq-bench [--url URL] [--json] [--rounds N] [--smoke] BENCH

BENCH: floor, enqueue, drain, scale, flat, latency, bytes, idle; all of these; or tune: what the defaults were chosen by

URL: default COMMITQ_URL, such as under tests/with-server. Databases are made and dropped on that server.
--rounds N   rounds of each side, in turn; default 5
--smoke      a hundredth of the rows, one round: does it work, not how fast
)";

const std::vector<std::pair<std::string, Report (*)(const Options&)>> kBenches = {{"floor", commitq::bench::floor},
                                                                                  {"enqueue", enqueue},
                                                                                  {"drain", drain},
                                                                                  {"scale", scale},
                                                                                  {"flat", flat},
                                                                                  {"latency", latency},
                                                                                  {"bytes", bytes},
                                                                                  {"idle", idle},
                                                                                  {"tune", tune}};

[[noreturn]] void usage_error(const std::string& message) {
    fmt::print(stderr, "commitq-bench: {}\n\n{}", message, kUsage);
    std::exit(2);
}

void print_settings() {
    Database database(false);
    fmt::print("server {} sync_binlog={} innodb_flush_log_at_trx_commit={} binlog_format={} log_bin={}\n",
               database.look().value("SELECT VERSION()"), database.look().value("SELECT @@sync_binlog"),
               database.look().value("SELECT @@innodb_flush_log_at_trx_commit"),
               database.look().value("SELECT @@binlog_format"), database.look().value("SELECT @@log_bin"));
}

void print_text(const Report& report) {
    fmt::print("{} ({} rounds)\n", report.bench, report.rounds);
    for (const auto& [name, figure] : report.figures) {
        fmt::print("  {:<32}{:>12.2f}   ({:.2f} - {:.2f})\n", name, figure.median(), figure.least(), figure.most());
    }
    for (const auto& [name, value] : report.values) {
        fmt::print("  {:<32}{:>12.2f}\n", name, value);
    }
}

void print_json(const std::string& bench, int rounds, const std::vector<Report>& reports) {
    std::string figures;
    const auto add = [&](const std::string& name, double value) {
        figures += fmt::format("{}\"{}\": {:.4f}", figures.empty() ? "" : ", ", name, value);
    };
    for (const Report& report : reports) {
        for (const auto& [name, figure] : report.figures) {
            add(name, figure.median());
        }
        for (const auto& [name, value] : report.values) {
            add(name, value);
        }
    }
    fmt::print("{{\"bench\": \"{}\", \"rounds\": {}, \"figures\": {{{}}}}}\n", bench, rounds, figures);
}

int run(const std::vector<std::string>& words) {
    Options options;
    std::string which;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto value = [&] {
            return i + 1 < words.size() ? words[++i] : (usage_error(words[i] + " needs a value"), std::string{});
        };
        if (words[i] == "--json") {
            options.json = true;
        } else if (words[i] == "--smoke") {
            options.scale = 0.01;
            options.rounds = 1;
        } else if (words[i] == "--rounds") {
            options.rounds = std::max(1, std::atoi(value().c_str()));
        } else if (words[i] == "--url") {
            setenv("COMMITQ_URL", value().c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread so far
        } else if (which.empty() && !words[i].starts_with('-')) {
            which = words[i];
        } else {
            usage_error("unknown argument " + words[i]);
        }
    }
    std::vector<Report> reports;
    if (!options.json) {
        print_settings();
    }
    for (const auto& [name, bench] : kBenches) {
        if (which == name || (which == "all" && name != "tune")) {
            reports.push_back(bench(options));
            if (!options.json) {
                print_text(reports.back());
            }
        }
    }
    if (reports.empty()) {
        usage_error(which.empty() ? "which benchmark?" : "unknown benchmark " + which);
    }
    if (options.json) {
        print_json(which, options.rounds, reports);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> words{argv + 1, argv + argc};
        if (words.size() == 3 && words[0] == "worker") {
            return run_worker_process(words[1], words[2]);
        }
        return run(words);
    } catch (const std::exception& error) {
        fmt::print(stderr, "commitq-bench: {}\n", error.what());
        return 1;
    }
}
