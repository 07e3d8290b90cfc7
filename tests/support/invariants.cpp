#include "support/invariants.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <utility>

namespace commitq::test {
namespace {

constexpr std::string_view kNobody = "x'00000000000000000000000000000000'";

// With a binlog, the server takes a trigger from an account with SUPER only.
const std::vector<std::string_view> kTables = {
    "CREATE TABLE expected (job BIGINT UNSIGNED PRIMARY KEY, payload_sha256 BINARY(32) NOT NULL, effect TINYINT NOT "
    "NULL)",

    "CREATE TABLE runs (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, job BIGINT UNSIGNED NOT NULL, attempt INT NOT "
    "NULL,"
    " account VARCHAR(64) NOT NULL, started_at DATETIME(6) NOT NULL, ended_at DATETIME(6) NULL, KEY (job, attempt))",

    "CREATE TABLE effects (job BIGINT UNSIGNED NOT NULL, attempt INT NOT NULL, KEY (job))",

    "CREATE TABLE complaints (job BIGINT UNSIGNED NOT NULL, text VARCHAR(200) NOT NULL)",

    "CREATE TABLE freezes (account VARCHAR(64) NOT NULL, since DATETIME(6) NOT NULL, until DATETIME(6) NOT NULL)",

    "CREATE TABLE history (n BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, job BIGINT UNSIGNED NOT NULL,"
    " was VARCHAR(16) NOT NULL, becomes VARCHAR(16) NOT NULL, attempt_was INT NOT NULL, attempt INT NOT NULL,"
    " owner_was BINARY(16) NOT NULL, owner BINARY(16) NOT NULL, lease_was DATETIME(6) NOT NULL, at DATETIME(6) NOT "
    "NULL,"
    " account VARCHAR(64) NOT NULL, KEY (job))",

    // Filled by number_steps.
    "CREATE TABLE steps (n BIGINT UNSIGNED PRIMARY KEY, job BIGINT UNSIGNED NOT NULL, attempt INT NOT NULL,"
    " kind VARCHAR(16) NOT NULL, at DATETIME(6) NOT NULL, account VARCHAR(64) NOT NULL, lease_was DATETIME(6) NOT NULL,"
    " was VARCHAR(16) NOT NULL, becomes VARCHAR(16) NOT NULL, follows TINYINT NOT NULL, account_before VARCHAR(64) "
    "NULL,"
    " next_at DATETIME(6) NULL, nth INT NOT NULL, KEY (job, attempt, kind), KEY (kind))",

    // UTC_TIMESTAMP stands still within a statement, so `at` is the very time that the statement compared leases with.
    "CREATE TRIGGER keep_history AFTER UPDATE ON commitq_jobs FOR EACH ROW"
    " IF OLD.state<>NEW.state OR OLD.attempt<>NEW.attempt OR OLD.owner<>NEW.owner OR"
    " OLD.lease_until<>NEW.lease_until THEN"
    " INSERT INTO history (job,was,becomes,attempt_was,attempt,owner_was,owner,lease_was,at,account)"
    " VALUES (OLD.id,OLD.state,NEW.state,OLD.attempt,NEW.attempt,OLD.owner,NEW.owner,OLD.lease_until,UTC_TIMESTAMP(6),"
    " SUBSTRING_INDEX(USER(),'@',1)); END IF",
};

/// The legal transitions of docs/state-machine.md, each by what it does to the row. Nothing else is a name.
std::string kind_sql() {
    constexpr std::string_view kKept = "attempt=attempt_was AND owner=owner_was";
    constexpr std::string_view kGivenBack = "attempt=attempt_was-1";
    const std::string by_reaper = fmt::format("attempt=attempt_was AND owner={}", kNobody);
    const std::vector<std::pair<std::string, std::string>> kinds = {
        {"claim", fmt::format("was='pending' AND becomes='running' AND attempt=attempt_was+1 AND owner<>{}", kNobody)},
        {"complete", fmt::format("was='running' AND becomes='completed' AND {}", kKept)},
        {"retry", fmt::format("was='running' AND becomes='pending' AND {}", kKept)},
        {"snooze", fmt::format("was='running' AND becomes='pending' AND {} AND owner=owner_was", kGivenBack)},
        {"release", fmt::format("was='running' AND becomes='pending' AND {} AND owner={}", kGivenBack, kNobody)},
        {"reap", fmt::format("was='running' AND becomes='pending' AND {}", by_reaper)},
        {"bury", fmt::format("was='running' AND becomes='dead' AND {}", kKept)},
        {"reap_dead", fmt::format("was='running' AND becomes='dead' AND {}", by_reaper)},
        {"cancel", fmt::format("was='running' AND becomes='cancelled' AND {}", kKept)},
    };
    std::string sql = "CASE";
    for (const auto& [name, condition] : kinds) {
        sql += fmt::format(" WHEN {} THEN '{}'", condition, name);
    }
    return sql + " ELSE 'illegal' END";
}

/// A row of the history that is no step, but a renewal of the lease.
constexpr std::string_view kRenewal = "was='running' AND becomes='running' AND attempt=attempt_was AND owner=owner_was";

struct Rule {
    std::string_view name;
    std::string_view sql;  ///< The job, and what was found, of each violation.
};

const std::vector<Rule> kRules = {
    {"a committed job is never lost",
     "SELECT e.job,'' FROM expected e LEFT JOIN commitq_jobs j ON j.id=e.job WHERE j.id IS NULL"},

    {"a job of a transaction that did not commit is never seen",
     "SELECT j.id,j.state FROM commitq_jobs j LEFT JOIN expected e ON e.job=j.id WHERE e.job IS NULL"
     " UNION ALL SELECT DISTINCT r.job,'ran' FROM runs r LEFT JOIN expected e ON e.job=r.job WHERE e.job IS NULL"},

    {"a payload is the bytes that were given",
     "SELECT v.id,CONCAT(LENGTH(v.payload),' bytes') FROM commitq_jobs_view v JOIN expected e ON e.job=v.id"
     " WHERE v.payload IS NULL OR UNHEX(SHA2(v.payload,256))<>e.payload_sha256"},

    {"only legal transitions",
     "SELECT job,CONCAT(was,' -> ',becomes,', attempt ',attempt) FROM steps WHERE kind='illegal'"},

    {"nothing leaves a final state",
     "SELECT job,CONCAT(was,' -> ',becomes) FROM steps WHERE was IN ('completed','cancelled','dead')"},

    {"each step begins where the one before ended", "SELECT job,CONCAT('step ',n) FROM steps WHERE follows=0"},

    {"a job stands where its last step ended",
     "SELECT j.id,CONCAT(j.state,', attempt ',j.attempt) FROM commitq_jobs j"
     " LEFT JOIN steps s ON s.job=j.id AND s.next_at IS NULL"
     " WHERE COALESCE(s.becomes,'pending')<>j.state OR COALESCE(s.attempt,0)<>j.attempt"},

    {"attempts are the claims that committed, less those given back",
     "SELECT j.id,CONCAT('attempt ',j.attempt,', counted ',COALESCE(c.attempts,0)) FROM commitq_jobs j LEFT JOIN"
     " (SELECT job,SUM((kind='claim')-(kind IN ('snooze','release'))) attempts FROM steps GROUP BY job) c ON c.job=j.id"
     " WHERE j.attempt<>COALESCE(c.attempts,0)"},

    {"no lease is reaped before it has run out",
     "SELECT job,CONCAT('until ',lease_was,', reaped ',at) FROM steps WHERE kind IN ('reap','reap_dead') AND "
     "lease_was>at"},

    {"nobody but the holder of the lease writes a result",
     "SELECT job,CONCAT(kind,' by ',account,', held by ',COALESCE(account_before,'nobody')) FROM steps"
     " WHERE kind IN ('complete','retry','snooze','release','bury','cancel')"
     " AND (account_before IS NULL OR account<>account_before)"},

    {"nobody but the holder of the lease renews it",
     "SELECT h.job,CONCAT('by ',h.account,' at ',h.at) FROM history h WHERE h.was='running' AND h.becomes='running' AND"
     " h.account<>(SELECT s.account FROM steps s WHERE s.job=h.job AND s.n<h.n ORDER BY s.n DESC LIMIT 1)"},

    {"the reaper buries a job after its last attempt, and never before",
     "SELECT s.job,CONCAT(s.kind,' at attempt ',s.attempt,' of ',j.max_attempts) FROM steps s JOIN commitq_jobs j ON"
     " j.id=s.job WHERE s.kind IN ('reap','reap_dead') AND (s.kind='reap_dead')<>(s.attempt>=j.max_attempts)"},

    {"a run belongs to a claim that committed before it, and a claim has one run",
     "SELECT r.job,CONCAT('run ',r.id,' of attempt ',r.attempt,', no. ',r.nth) FROM"
     " (SELECT id,job,attempt,started_at,ROW_NUMBER() OVER (PARTITION BY job,attempt ORDER BY started_at,id) nth FROM "
     "runs) r"
     " LEFT JOIN steps c ON c.job=r.job AND c.attempt=r.attempt AND c.kind='claim' AND c.nth=r.nth"
     " WHERE c.n IS NULL OR c.at>r.started_at"},

    // Two late starts in one freeze are no accident: a handler is between the last look at its lease and its first
    // instruction for a millionth of a second.
    {"a run begins while its claim holds, and none after the job is finished",
     "WITH late AS (SELECT r.id,r.job,r.attempt,r.started_at,r.account,(SELECT MAX(c.at) FROM steps c WHERE c.job=r.job"
     " AND c.attempt=r.attempt AND c.kind='claim' AND c.at<=r.started_at) claimed_at FROM runs r"
     " WHERE NOT EXISTS (SELECT 1 FROM steps c WHERE c.job=r.job AND c.attempt=r.attempt AND c.kind='claim'"
     " AND c.at<=r.started_at AND (c.next_at IS NULL OR c.next_at>=r.started_at))),"
     " frozen AS (SELECT late.*,(SELECT MIN(f.since) FROM freezes f WHERE f.account=late.account"
     " AND f.since<=late.started_at AND f.until>=late.claimed_at) since FROM late)"
     " SELECT job,CONCAT('run ',id,' of attempt ',attempt,' at ',started_at,' by ',account,"
     " COALESCE(CONCAT(', frozen since ',since),'')) FROM frozen one WHERE since IS NULL OR"
     " (SELECT COUNT(*) FROM frozen o WHERE o.account=one.account AND o.since=one.since)>1"},

    {"a completed job has a run of its last attempt that ended and had begun before",
     "SELECT j.id,CONCAT('attempt ',j.attempt) FROM commitq_jobs j WHERE j.state='completed' AND NOT EXISTS (SELECT 1"
     " FROM runs r WHERE r.job=j.id AND r.attempt=j.attempt AND r.ended_at IS NOT NULL AND "
     "r.started_at<=j.finished_at)"},

    {"an effect happens exactly once, and only with the completion",
     "SELECT e.job,CONCAT(j.state,', ',COALESCE(f.times,0),' times') FROM expected e JOIN commitq_jobs j ON j.id=e.job"
     " LEFT JOIN (SELECT job,COUNT(*) times,MIN(attempt) attempt FROM effects GROUP BY job) f ON f.job=e.job"
     " WHERE COALESCE(f.times,0)<>(e.effect AND j.state='completed') OR f.attempt<>j.attempt"
     " UNION ALL SELECT f.job,'not expected' FROM effects f LEFT JOIN expected e ON e.job=f.job WHERE e.job IS NULL"},

    {"no handler complains", "SELECT job,text FROM complaints"},
};

JobId number(const std::optional<std::string>& text) { return std::strtoull(text.value_or("0").c_str(), nullptr, 10); }

std::vector<std::string> grants(const Database& database,
                                const std::vector<std::pair<std::string, std::string>>& wanted) {
    std::vector<std::string> grants;
    for (const auto& [privileges, table] : wanted) {
        grants.push_back(fmt::format("GRANT {} ON {}.{}", privileges, database.name(), table));
    }
    return grants;
}

}  // namespace

Invariants::Invariants(Database& database) : database_{database} {
    for (std::string_view sql : kTables) {
        const bool table = sql.starts_with("CREATE TABLE");
        database_.look().run(fmt::format("{}{}", sql, table ? " CHARACTER SET ascii COLLATE ascii_bin" : ""));
    }
}

// Once, and not in every rule: each is then a join by key.
void Invariants::number_steps() {
    Connection& db = database_.look();
    db.run("TRUNCATE TABLE steps");
    db.run(fmt::format(
        "INSERT INTO steps SELECT n,job,attempt,kind,at,account,lease_was,was,becomes,"
        " was=COALESCE(LAG(becomes) OVER one,'pending') AND attempt_was=COALESCE(LAG(attempt) OVER one,0)"
        " AND owner_was=COALESCE(LAG(owner) OVER one,{}),"
        " LAG(account) OVER one,LEAD(at) OVER one,ROW_NUMBER() OVER (PARTITION BY job,attempt,kind ORDER BY n)"
        " FROM (SELECT history.*,{} kind FROM history WHERE NOT ({})) h WINDOW one AS (PARTITION BY job ORDER BY n)",
        kNobody, kind_sql(), kRenewal));
    db.run("ANALYZE TABLE steps,runs,effects,expected");
}

std::vector<Violation> Invariants::violations() {
    number_steps();
    std::vector<Violation> found;
    for (const auto& [name, sql] : kRules) {
        for (const Row& row : database_.look().rows(fmt::format("{} LIMIT 1000", sql))) {
            found.push_back({.text = fmt::format("{}: job {} ({})", name, row[0].value_or(""), row[1].value_or("")),
                             .job = number(row[0])});
        }
    }
    std::istringstream columns{database_.violations()};
    for (std::string line; std::getline(columns, line);) {
        const auto job = line.find(": job ");
        found.push_back({.text = line, .job = job == std::string::npos ? 0 : number(line.substr(job + 6))});
    }
    return found;
}

std::string Invariants::history(JobId job) {
    std::string text;
    const auto add = [&](std::string_view sql) {
        for (const Row& row : database_.look().rows(fmt::format("{} LIMIT 100", fmt::format(fmt::runtime(sql), job)))) {
            text += "  " + row[0].value_or("") + "\n";
        }
    };
    add("SELECT CONCAT(created_at,' created, ',type,', now ',state,', attempt ',attempt,' of ',max_attempts,"
        "COALESCE(CONCAT(', ',last_error),'')) FROM commitq_jobs WHERE id={}");
    add("SELECT CONCAT(at,' ',was,' -> ',becomes,', attempt ',attempt_was,' -> ',attempt,', by ',account,', owner ',"
        "LEFT(HEX(owner),8),', lease was until ',lease_was) FROM history WHERE job={} ORDER BY n");
    add("SELECT CONCAT(started_at,' run ',id,' of attempt ',attempt,' by ',account,', ended "
        "',COALESCE(ended_at,'never'))"
        " FROM runs WHERE job={} ORDER BY id");
    add("SELECT CONCAT('effect of attempt ',attempt) FROM effects WHERE job={}");
    return text;
}

long Invariants::steps(std::string_view kind) {
    return database_.look().number(fmt::format("SELECT COUNT(*) FROM steps WHERE kind='{}'", kind));
}

std::vector<std::string> Invariants::producer_grants() const { return grants(database_, {{"INSERT", "expected"}}); }

std::vector<std::string> Invariants::worker_grants() const {
    return grants(database_, {{"SELECT, INSERT, UPDATE", "runs"}, {"INSERT", "effects"}, {"INSERT", "complaints"}});
}

std::string expect_sql(std::span<const ExpectedJob> jobs) {
    std::string sql = "INSERT INTO expected (job,payload_sha256,effect) VALUES ";
    for (const ExpectedJob& job : jobs) {
        sql += fmt::format("{}({},UNHEX(SHA2({},256)),{})", &job == jobs.data() ? "" : ",", job.id,
                           sql_bytes_literal(job.payload), job.effect ? 1 : 0);
    }
    return sql;
}

namespace {

std::uint64_t insert_run(Connection& db, const JobContext& job, std::string_view began, std::string_view ended) {
    db.run(
        fmt::format("INSERT INTO runs (job,attempt,account,started_at,ended_at)"
                    " VALUES ({},{},SUBSTRING_INDEX(USER(),'@',1),{},{})",
                    job.id(), job.attempt(), began, ended));
    return mysql_insert_id(db);
}

}  // namespace

std::uint64_t begin_run(Connection& db, const JobContext& job) {
    return insert_run(db, job, "UTC_TIMESTAMP(6)", "NULL");
}

std::uint64_t begin_run(Connection& db, const JobContext& job, std::chrono::system_clock::time_point began) {
    return insert_run(db, job, utc_literal(began), "NULL");
}

void write_run(Connection& db, const JobContext& job, std::chrono::system_clock::time_point began) {
    insert_run(db, job, utc_literal(began), "UTC_TIMESTAMP(6)");
}

std::string utc_literal(std::chrono::system_clock::time_point time) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
    return fmt::format("TIMESTAMP'1970-01-01 00:00:00' + INTERVAL {} MICROSECOND", micros);
}

std::string end_run_sql(std::uint64_t run) {
    return fmt::format("UPDATE runs SET ended_at=UTC_TIMESTAMP(6) WHERE id={}", run);
}

std::string effect_sql(const JobContext& job) {
    return fmt::format("INSERT INTO effects (job,attempt) VALUES ({},{})", job.id(), job.attempt());
}

std::string complain_sql(JobId job, std::string_view text) {
    return fmt::format("INSERT INTO complaints (job,text) VALUES ({},{})", job, sql_literal(text));
}

}  // namespace commitq::test
