#include "bench/bench.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>

extern char** environ;  // NOLINT: POSIX

namespace commitq::bench {

double Figure::median() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Figure::least() const { return *std::min_element(rounds.begin(), rounds.end()); }
double Figure::most() const { return *std::max_element(rounds.begin(), rounds.end()); }

void Report::ratio(const std::string& name, const std::string& above, const std::string& below) {
    const std::vector<double>& numerators = figures.at(above).rounds;
    const std::vector<double>& denominators = figures.at(below).rounds;
    Figure ratios;
    for (std::size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
        ratios.rounds.push_back(numerators[i] / denominators[i]);
    }
    values[name] = ratios.median();
}

int Options::rows(int full) const { return std::max(100, static_cast<int>(full * scale)); }

Options Options::with_more_rounds() const {
    Options more = *this;
    more.rounds *= 3;
    return more;
}

void progress(std::string_view text) {
    if (isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "\r\033[K{}", text);
        std::fflush(stderr);
    }
}

void in_turn(const Options& options, const std::vector<std::function<void()>>& sides) {
    for (int round = 0; round < options.rounds; ++round) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            progress(fmt::format("round {} of {}, side {} of {}", round + 1, options.rounds, i + 1, sides.size()));
            sides[(i + static_cast<std::size_t>(round)) % sides.size()]();
        }
    }
    progress("");
}

double seconds_of(const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long status(Connection& db, std::string_view name) {
    const auto rows = db.rows(fmt::format("SHOW GLOBAL STATUS LIKE '{}'", name));
    return rows.empty() ? 0 : std::atol(rows[0][1].value_or("0").c_str());
}

void fill(Database& database, int count, int bytes, const Filling& filling) {
    Connection db = database.connect();
    constexpr int kStep = 10'000;
    constexpr std::string_view kDigit =
        "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
        " UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    for (int done = 0; done < count; done += kStep) {
        db.run(fmt::format(
            "INSERT INTO commitq_jobs"
            " (queue,type,state,priority,available_at,created_at,payload_size,payload)"
            " SELECT {queue},'t',{state},{priority},{available_at},UTC_TIMESTAMP(6),{bytes},"
            "REPEAT('x',{bytes}) FROM (SELECT a.d+10*b.d+100*c.d+1000*e.d n"
            " FROM {digit} a, {digit} b, {digit} c, {digit} e LIMIT {count}) numbers",
            fmt::arg("queue", filling.queue), fmt::arg("state", filling.state), fmt::arg("priority", filling.priority),
            fmt::arg("available_at", filling.available_at), fmt::arg("bytes", bytes), fmt::arg("digit", kDigit),
            fmt::arg("count", std::min(kStep, count - done))));
    }
}

}  // namespace commitq::bench
