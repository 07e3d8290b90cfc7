#include "support/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace commitq::test {

void Recorder::on_reaped(std::size_t returned, std::size_t dead) noexcept {
    const std::scoped_lock lock{mutex_};
    returned_ += returned;
    dead_ += dead;
}

void Recorder::on_error(std::string_view loop, const Error& error) noexcept {
    const std::scoped_lock lock{mutex_};
    errors_.emplace_back(loop, error);
}

void Recorder::keep(std::string_view name, const JobEvent& event) {
    const std::scoped_lock lock{mutex_};
    events_.push_back({.name = std::string{name},
                       .id = event.id,
                       .queue = std::string{event.queue},
                       .type = std::string{event.type},
                       .attempt = event.attempt,
                       .reason = std::string{event.reason},
                       .wait = event.wait,
                       .run = event.run,
                       .delay = event.delay});
}

std::size_t Recorder::count(std::string_view name, JobId id) {
    const std::scoped_lock lock{mutex_};
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
        return event.name == name && (id == 0 || event.id == id);
    }));
}

std::vector<Event> Recorder::events(std::string_view name) {
    const std::scoped_lock lock{mutex_};
    std::vector<Event> found;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
                 [&](const Event& event) { return name.empty() || event.name == name; });
    return found;
}

std::string Recorder::story(JobId id) {
    const std::scoped_lock lock{mutex_};
    std::string story;
    for (const Event& event : events_) {
        if (event.id == id) {
            story += (story.empty() ? "" : " ") + event.name;
        }
    }
    return story;
}

std::vector<Error> Recorder::errors(std::string_view loop) {
    const std::scoped_lock lock{mutex_};
    std::vector<Error> found;
    for (const auto& [of, error] : errors_) {
        if (loop.empty() || of == loop) {
            found.push_back(error);
        }
    }
    return found;
}

std::string Recorder::error_text() {
    const std::scoped_lock lock{mutex_};
    std::string text;
    for (const auto& [loop, error] : errors_) {
        text += fmt::format("{}: {}\n", loop, error.what());
    }
    return text;
}

std::size_t Recorder::errors_with(std::string_view loop, unsigned server_errno) {
    const std::scoped_lock lock{mutex_};
    return static_cast<std::size_t>(std::count_if(errors_.begin(), errors_.end(), [&](const auto& kept) {
        return kept.first == loop && kept.second.server_errno() == server_errno;
    }));
}

std::size_t Recorder::returned() {
    const std::scoped_lock lock{mutex_};
    return returned_;
}

std::size_t Recorder::dead() {
    const std::scoped_lock lock{mutex_};
    return dead_;
}

void Gate::open() {
    const std::scoped_lock lock{mutex_};
    open_ = true;
    changed_.notify_all();
}

bool Gate::wait(std::chrono::milliseconds limit) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, limit, [&] { return open_; });
}

bool Gate::is_open() {
    const std::scoped_lock lock{mutex_};
    return open_;
}

std::vector<JobId> Runs::repeated() {
    const std::scoped_lock lock{mutex_};
    std::vector<JobId> ids;
    for (const auto& [id, count] : runs_) {
        if (count > 1) {
            ids.push_back(id);
        }
    }
    return ids;
}

void expire_leases(Database& database) {
    database.look().run(
        "UPDATE commitq_jobs SET lease_until=UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE state='running'");
}

namespace {

/// A connection that is none to the database, for any thread.
Connection outside(const Database& database) {
    ConnectOptions options = database.options();
    options.database.clear();
    return Connection{options};
}

std::vector<unsigned long> connections(Connection& admin, Database& database, const std::vector<unsigned long>& but) {
    std::vector<unsigned long> found;
    for (const Row& row : admin.rows("SHOW PROCESSLIST")) {
        const unsigned long id = std::strtoul(row[0].value_or("0").c_str(), nullptr, 10);
        if (row[3] == database.name() && id != database.look().id() &&
            std::find(but.begin(), but.end(), id) == but.end()) {
            found.push_back(id);
        }
    }
    return found;
}

}  // namespace

std::vector<unsigned long> connections(Database& database, const std::vector<unsigned long>& but) {
    Connection admin = outside(database);
    return connections(admin, database, but);
}

int kill_connections(Database& database, const std::vector<unsigned long>& but) {
    Connection admin = outside(database);
    int killed = 0;
    for (const unsigned long id : connections(admin, database, but)) {
        killed += admin.try_run(fmt::format("KILL {}", id)) == 0 ? 1 : 0;
    }
    return killed;
}

Faults::Faults(Database& database) : database_{database} {
    Connection& db = database_.look();
    db.run("CREATE TABLE faults (was VARCHAR(16), becomes VARCHAR(16), number INT, job BIGINT)");
    db.run(
        "CREATE TRIGGER fault BEFORE UPDATE ON commitq_jobs FOR EACH ROW BEGIN"
        " DECLARE wanted INT DEFAULT (SELECT MAX(number) FROM faults"
        "  WHERE was=CONVERT(OLD.state USING utf8mb4) AND becomes=CONVERT(NEW.state USING utf8mb4) AND job IN "
        "(0,OLD.id));"
        " IF wanted IS NOT NULL THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=wanted, MESSAGE_TEXT='a fault of the "
        "test';"
        " END IF; END");
}

void Faults::arm(std::string_view from, std::string_view to, unsigned server_errno, JobId only) {
    database_.look().run(fmt::format("INSERT INTO faults VALUES ('{}','{}',{},{})", from, to, server_errno, only));
}

void Faults::disarm() { database_.look().run("DELETE FROM faults"); }

}  // namespace commitq::test
