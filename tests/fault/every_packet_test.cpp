// Connections that break at every packet of every operation, one after the other, in either direction and in every way.
#include "support/database.h"
#include "support/packet_proxy.h"
#include "support/private_server.h"
#include "support/recorder.h"

#include <core/random.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mysql/client.h>
#include <mysql/error_map.h>
#include <mysql/session.h>
#include <store/claim.h>
#include <store/finish.h>
#include <store/lease.h>
#include <store/reap.h>
#include <store/sql.h>
#include <store/tables.h>

#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>

namespace commitq::test {
namespace {

// --------------------------------------------------------------------------------------------------------- breaking

/// Something happens to the n-th packet, of those that the client sends or of those that the server sends.
struct Break {
    bool reply = false;
    Passage passage = Passage::pass;
    std::size_t n = 0;
};

/// Whether neither side is told of it.
bool is_silent(const Break& at) { return at.passage == Passage::mute || at.passage == Passage::cut_off; }

std::string describe(const Break& at) {
    constexpr std::array<const char*, 7> kNames{
        "passes", "is lost", "loses its answer", "is not answered", "is cut off", "is half closed at", "is held"};
    return fmt::format("{} {} {}", at.reply ? "reply" : "request", at.n,
                       kNames.at(static_cast<std::size_t>(at.passage)));
}

/// A proxy that counts packets and breaks one of them. What says goodbye isn't counted: nothing depends on it.
class Breaker {
public:
    explicit Breaker(const ConnectOptions& server)
        : proxy_{std::make_unique<PacketProxy>(
              server,
              [this](const std::string& packet) { return packet == kGoodbye ? Passage::pass : requests_.watch(); },
              [this](const std::string&) { return replies_.watch(); })} {}

    /// With little patience where nobody says that the connection is broken.
    [[nodiscard]] ConnectOptions options(const Break& at) const {
        ConnectOptions options = proxy_->options();
        options.connect_timeout = options.read_timeout = options.write_timeout = is_silent(at) ? 1s : 30s;
        return options;
    }
    /// From the next packet on.
    void arm(const Break& at) {
        requests_.start(at.reply ? 0 : at.n, at.passage);
        replies_.start(at.reply ? at.n : 0, at.passage);
    }
    [[nodiscard]] bool has_broken() const { return requests_.has_snapped() || replies_.has_snapped(); }
    [[nodiscard]] std::size_t seen(bool replies) const { return (replies ? replies_ : requests_).seen(); }
    /// Ends all connections.
    void end() { proxy_.reset(); }

private:
    inline static const std::string kGoodbye{"\x01"};

    PacketCount requests_;
    PacketCount replies_;
    std::unique_ptr<PacketProxy> proxy_;
};

std::vector<Break> breaks(bool replies, std::size_t packets, std::initializer_list<Passage> passages) {
    std::vector<Break> all;
    for (std::size_t n = 1; n <= packets; ++n) {
        for (const Passage passage : passages) {
            all.push_back({.reply = replies, .passage = passage, .n = n});
        }
    }
    return all;
}

std::vector<Break> operator+(std::vector<Break> left, const std::vector<Break>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

std::vector<Break> every_break(std::size_t requests, std::size_t replies) {
    return breaks(false, requests,
                  {Passage::lose, Passage::half_close, Passage::hold, Passage::lose_answer, Passage::mute,
                   Passage::cut_off}) +
           breaks(true, replies, {Passage::lose, Passage::half_close, Passage::hold, Passage::cut_off});
}

/// Most of a case is waiting.
constexpr std::size_t kThreads = 16;

/// Runs @p one for each of @p count cases, on several threads.
void in_parallel(std::size_t count, const std::function<void(std::size_t thread, std::size_t index)>& one) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const mysql::ThreadScope scope;
            for (std::size_t index = 0; (index = next++) < count;) {
                try {
                    one(i, index);
                } catch (const std::exception& error) {
                    ADD_FAILURE() << error.what();
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// ---------------------------------------------------------------------------------------------------- the proxy itself

std::size_t entries(const char* folder) {
    const std::filesystem::directory_iterator begin{folder};
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

TEST(PacketProxyItself, LeavesNoThreadAndNoSocketBehind) {
    const Database database;
    const auto sockets = [] { return entries("/proc/self/fd"); };
    const auto threads = [] { return entries("/proc/self/task"); };
    std::thread{[] {}}.join();  // a sanitizer starts a thread of its own beside the first
    const std::size_t sockets_before = sockets();
    const std::size_t threads_before = threads();
    for (const Break& at : breaks(false, 3,
                                  {Passage::pass, Passage::lose, Passage::half_close, Passage::lose_answer,
                                   Passage::mute, Passage::cut_off}) +
                               breaks(true, 3, {Passage::lose, Passage::half_close, Passage::cut_off})) {
        Breaker breaker{database.tcp_options()};
        breaker.arm(at);
        try {
            mysql::Session{breaker.options(at), mysql::Purpose::handler}.execute("DO 1", "test");
        } catch (const Error&) {  // broken: that is what it is for
        }
    }
    EXPECT_EQ(sockets(), sockets_before);
    EXPECT_TRUE(eventually([&] { return threads() == threads_before; }));

    Breaker breaker{database.tcp_options()};
    for (int i = 0; i < 50; ++i) {
        mysql::Session{breaker.options({}), mysql::Purpose::handler}.execute("DO 1", "test");
    }
    EXPECT_LT(sockets(), sockets_before + 50) << "connections that have ended are forgotten";
}

// ------------------------------------------------------------------------------------------------------- operations

/// What one thread of a test works and looks with: connections that nothing breaks.
struct Hands {
    explicit Hands(const Database& database)
        : options{database.options()}, look{options}, direct{options, mysql::Purpose::library} {
        look.run("SET SESSION wait_timeout=3600");
        direct.execute("SET SESSION wait_timeout=3600", "test");
    }

    /// Waits until the server has ended that connection: by then it has rolled back.
    void wait_for_end_of(unsigned long connection) {
        const std::string open =
            fmt::format("SELECT COUNT(*) FROM information_schema.processlist WHERE id={}", connection);
        EXPECT_TRUE(eventually([&] { return look.number(open) == 0; }));
    }

    const ConnectOptions options;
    Connection look;
    mysql::Session direct;
};

constexpr std::string_view kTest = "test";

/// One operation on a queue of its own.
class Operation {
public:
    using Begin = std::function<void(unsigned long connection)>;

    Operation(Hands& its_hands, std::string its_queue) : hands{its_hands}, queue{std::move(its_queue)} {}
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    virtual ~Operation() = default;

    virtual void prepare() {}
    /// Connects, calls @p begin, and does it.
    virtual void act(const ConnectOptions& how, const Begin& begin) {
        mysql::Session session{how, purpose};
        begin(mysql_thread_id(session.client()));
        run(session);
    }
    /// What there is, in words that don't depend on the queue.
    virtual std::string state() = 0;
    /// The state when it has been done. No other is ever seen but that and the one before.
    virtual std::string done() = 0;
    /// By somebody who can't know what became of it.
    virtual void act_again() { run(hands.direct); }
    /// The state after that.
    virtual std::string end([[maybe_unused]] bool was_done) { return done(); }
    /// Whether it may have been done, by what its caller knows, when it has failed.
    virtual bool may_be_done() { return true; }
    virtual void tidy_up() {}

    mysql::Purpose purpose = mysql::Purpose::library;
    bool notices_all = true;  ///< Fails whatever is broken.
    bool is_patient = false;  ///< Waits for an answer for longer than a test can.

protected:
    virtual void run(mysql::Session& session) = 0;

    /// Jobs of one type, one of them with a long payload.
    void enqueue(std::size_t count) {
        std::vector<NewJob> jobs(count, NewJob{.type = "t", .payload = "short"});
        jobs.back().payload = kLongPayload;
        hands.direct.execute("START TRANSACTION", kTest);
        ids = Queue{queue}.enqueue_many(hands.direct.client(), jobs);
        hands.direct.execute("COMMIT", kTest);
    }
    /// The same, held by us; the last one by somebody else.
    void hold(std::size_t count) {
        enqueue(count);
        change(
            "state='running',attempt=1,max_attempts=5,started_at=UTC_TIMESTAMP(6),"
            "lease_until=UTC_TIMESTAMP(6)+INTERVAL 10 MINUTE,owner=" +
                store::token_literal(owner),
            ids.size());
        hands.direct.execute(fmt::format("UPDATE commitq_jobs SET owner={} WHERE id={}",
                                         store::token_literal(core::make_token()), ids.back()),
                             kTest);
    }
    store::ClaimResult claim(mysql::Session& session) {
        const std::vector<std::pair<std::string, int>> types{{"t", 5}};
        return store::claim(session, tables, store::make_claimant(owner, 1h, types),
                            {.queue = queue,
                             .priority = 5,
                             .from = store::kFromTheBeginning,
                             .limit = 10,
                             .byte_budget = 1'000'000,
                             .not_these = {}});
    }
    /// Of the first @p count jobs.
    void change(const std::string& assignments, std::size_t count) {
        hands.direct.execute(fmt::format("UPDATE commitq_jobs SET {} WHERE id IN ({})", assignments,
                                         store::id_list(std::span{ids}.first(count))),
                             kTest);
    }
    /// @p columns of each job.
    std::string jobs(const std::string& columns) {
        return hands.look.value(fmt::format(
            "SELECT GROUP_CONCAT(CONCAT_WS(' ',{}) ORDER BY id) FROM commitq_jobs WHERE queue='{}'", columns, queue));
    }

    Hands& hands;
    const std::string queue;
    const core::Token owner = core::make_token();
    const store::Tables tables{"commitq_"};
    std::vector<JobId> ids{};
};

/// Jobs and a business row, in one transaction.
class Enqueue : public Operation {
public:
    Enqueue(Hands& its_hands, std::string its_queue, std::vector<NewJob> its_jobs)
        : Operation{its_hands, std::move(its_queue)}, new_jobs_{std::move(its_jobs)} {
        purpose = mysql::Purpose::handler;
    }

    std::string state() override {
        return hands.look.value(
            fmt::format("SELECT CONCAT((SELECT COUNT(*) FROM orders WHERE queue='{0}'),' order, ',(SELECT COUNT(*) FROM"
                        " commitq_jobs_view WHERE queue='{0}' AND LENGTH(payload)=payload_size),' jobs')",
                        queue));
    }
    std::string done() override { return fmt::format("1 order, {} jobs", new_jobs_.size()); }
    bool may_be_done() override { return commit_sent_; }
    void act_again() override {
        const bool was_done = state() == done();
        try {
            run(hands.direct);
            EXPECT_FALSE(was_done);
        } catch (const Error& error) {
            EXPECT_TRUE(was_done && error.server_errno() == 1062) << error.what();  // the order is there already
            hands.direct.execute("ROLLBACK", kTest);
        }
    }

protected:
    void run(mysql::Session& session) override {
        session.execute("START TRANSACTION", kTest);
        session.execute(fmt::format("INSERT INTO orders VALUES ('{}')", queue), kTest);
        try {
            const Queue fresh{queue};
            if (new_jobs_.size() == 1) {
                fresh.enqueue(session.client(), new_jobs_[0].type, new_jobs_[0].payload);
            } else {
                EXPECT_EQ(fresh.enqueue_many(session.client(), new_jobs_).size(), new_jobs_.size());
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::connection_lost) << error.what();
            EXPECT_EQ(error.transaction(), TransactionState::lost);
            EXPECT_EQ(error.repeat(), Repeat::reconnect);
            throw;
        }
        commit_sent_ = true;
        session.execute("COMMIT", kTest);
    }

private:
    std::vector<NewJob> new_jobs_;
    bool commit_sent_ = false;
};

class Claim : public Operation {
public:
    using Operation::Operation;

    /// On MariaDB a claim locks the entry after the last one that it takes too: one that isn't due, so that no case is passed
    /// over by the claim of another one whose queue comes next.
    void prepare() override {
        enqueue(3);
        Queue{queue}.enqueue_autocommit(hands.direct.client(), "t", "later", {.delay = 24h});
    }
    std::string state() override { return jobs(fmt::format("state,attempt,owner={}", store::token_literal(owner))); }
    std::string done() override { return running(1); }
    void act_again() override {
        if (state() == done()) {  // nobody knows of it: the lease runs out
            change("lease_until=UTC_TIMESTAMP(6)", ids.size());
            EXPECT_EQ(store::reap(hands.direct, tables, ids).report.returned, ids.size());
        }
        run(hands.direct);
    }
    std::string end(bool was_done) override { return running(was_done ? 2 : 1); }

protected:
    void run(mysql::Session& session) override {
        const store::ClaimResult result = claim(session);
        ASSERT_EQ(result.jobs.size(), ids.size());
        EXPECT_EQ(result.jobs.front().payload, "short");
        EXPECT_EQ(result.jobs.back().payload, kLongPayload);
    }

private:
    static std::string running(int attempt) {
        return fmt::format("running {0} 1,running {0} 1,running {0} 1,pending 0 0", attempt);
    }
};

/// A look, and a claim that finds nothing.
class Look : public Operation {
public:
    using Operation::Operation;

    void prepare() override {
        enqueue(1);
        change("available_at=UTC_TIMESTAMP(6)+INTERVAL 1 HOUR", 1);
    }
    std::string state() override { return jobs("state,attempt"); }
    std::string done() override { return "pending 0"; }

protected:
    void run(mysql::Session& session) override {
        const std::vector<store::Due> due = store::look(session, tables, std::vector<std::string>{queue});
        ASSERT_EQ(due.size(), 1U);
        EXPECT_TRUE(claim(session).jobs.empty());
    }
};

class Renew : public Operation {
public:
    using Operation::Operation;

    void prepare() override { hold(4); }
    std::string state() override { return jobs("state,attempt,lease_until>UTC_TIMESTAMP(6)+INTERVAL 30 MINUTE"); }
    std::string done() override { return "running 1 1,running 1 1,running 1 1,running 1 0"; }

protected:
    void run(mysql::Session& session) override {
        const store::RenewResult result = store::renew(session, tables, owner, ids, 1h);
        EXPECT_EQ(result.renewed, std::vector(ids.begin(), ids.end() - 1));
        EXPECT_EQ(result.lost, std::vector{ids.back()});
    }
};

/// The ends of several jobs, and of one that is somebody else's by now.
class Finish : public Operation {
public:
    Finish(Hands& its_hands, std::string its_queue, std::vector<store::Ending> its_endings, bool only_unlocked = false)
        : Operation{its_hands, std::move(its_queue)}, endings_{std::move(its_endings)}, only_unlocked_{only_unlocked} {}

    void prepare() override { hold(endings_.size() + 1); }
    std::string state() override {
        return jobs(
            fmt::format("state,attempt,owner={},lease_until={},available_at>UTC_TIMESTAMP(6)+INTERVAL 30 SECOND,"
                        "IFNULL(last_error,'-')",
                        store::token_literal(owner), store::kNever));
    }
    std::string done() override {
        std::string all;
        for (const store::Ending ending : endings_) {
            all += done(ending) + ",";
        }
        return all + "running 1 0 0 0 -";
    }

protected:
    void run(mysql::Session& session) override {
        std::vector<store::Finish> finishes;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const store::Ending ending = i < endings_.size() ? endings_[i] : store::Ending::complete;
            const bool has_reason = ending == store::Ending::retry || ending == store::Ending::bury;
            finishes.push_back(
                {.id = ids[i], .attempt = 1, .ending = ending, .delay = 60s, .error = has_reason ? "why" : ""});
        }
        std::vector<store::Written> expected(endings_.size(), store::Written::yes);
        expected.push_back(store::Written::lost);
        if (only_unlocked_) {
            EXPECT_EQ(store::finish_unlocked(session, tables, owner, finishes), expected);
        } else {
            EXPECT_EQ(store::finish(session, tables, owner, finishes), expected);
        }
    }

private:
    static std::string done(store::Ending ending) {
        switch (ending) {
            case store::Ending::complete:
                return "completed 1 1 1 0 -";
            case store::Ending::retry:
                return "pending 1 1 1 1 why";
            case store::Ending::snooze:
                return "pending 0 1 1 1 -";
            case store::Ending::bury:
                return "dead 1 1 1 0 why";
            case store::Ending::cancel:
                return "cancelled 1 1 1 0 -";
            case store::Ending::release:
                return "pending 0 0 1 0 -";
        }
        return {};
    }

    std::vector<store::Ending> endings_;
    bool only_unlocked_;
};

/// Two jobs whose leases have run out, and two that have used up their attempts too.
class Reap : public Operation {
public:
    using Operation::Operation;

    void prepare() override {
        hold(4);
        change("lease_until=UTC_TIMESTAMP(6)", 4);
        change("max_attempts=1", 2);
    }
    std::string state() override {
        return jobs("state,attempt,HEX(owner)=REPEAT('0',32),last_error LIKE 'lease expired%'");
    }
    std::string done() override { return "dead 1 1 1,dead 1 1 1,pending 1 1 1,pending 1 1 1"; }

protected:
    void run(mysql::Session& session) override {
        const auto expired = store::find_expired(session, tables, std::vector<std::string>{queue}, 100);
        if (!expired.empty()) {
            const store::ReapResult result = store::reap(session, tables, expired);
            EXPECT_EQ(result.report.returned, 2U);
            EXPECT_EQ(result.report.dead, 2U);
        }
    }
};

class Duty : public Operation {
public:
    using Operation::Operation;

    void prepare() override {
        hands.direct.execute(fmt::format("INSERT INTO commitq_duties (duty) VALUES ('{}')", queue), kTest);
    }
    std::string state() override {
        return hands.look.value(fmt::format(
            "SELECT IF(last_run_at={},'never','now') FROM commitq_duties WHERE duty='{}'", store::kNever, queue));
    }
    std::string done() override { return "now"; }

protected:
    void run(mysql::Session& session) override {
        const bool is_due = state() == "never";
        EXPECT_EQ(store::take_duty(session, tables, queue, 1h), is_due);
    }
};

/// Connecting, and reads of the schema.
class Check : public Operation {
public:
    using Operation::Operation;

    void act(const ConnectOptions& how, const Begin& begin) override {
        begin(0);
        const Schema schema{how};
        schema.check();
        EXPECT_TRUE(schema.pending().empty());
    }
    void act_again() override {
        act(hands.options, [](unsigned long) {});
    }
    std::string state() override { return {}; }
    std::string done() override { return {}; }

protected:
    void run(mysql::Session&) override {}
};

/// Tables under a prefix of their own.
class Migrate : public Operation {
public:
    Migrate(Hands& its_hands, std::string its_queue) : Operation{its_hands, std::move(its_queue)} {
        notices_all = false;  // the server lets go of the lock by itself too
        is_patient = true;
    }

    void act(const ConnectOptions& how, const Begin& begin) override {
        begin(0);
        Schema{how, prefix_}.migrate();
    }
    void act_again() override {
        Schema{hands.options, prefix_}.migrate();
        EXPECT_EQ(columns(prefix_), columns("commitq_"));
    }
    std::string state() override { return fmt::format("version {}", Schema{hands.options, prefix_}.version()); }
    std::string done() override { return "version 1"; }
    void tidy_up() override {
        hands.look.run(fmt::format("DROP TABLE {0}schema,{0}payloads,{0}jobs,{0}queues,{0}workers,{0}duties", prefix_));
        hands.look.run(fmt::format("DROP VIEW {}jobs_view", prefix_));
    }

protected:
    void run(mysql::Session&) override {}

private:
    /// Of all tables under a prefix, as a hash.
    std::string columns(const std::string& prefix) {
        hands.look.run("SET SESSION group_concat_max_len=1000000");
        return hands.look.value(fmt::format(
            "SELECT SHA2(GROUP_CONCAT(CONCAT_WS(' ',SUBSTRING(table_name,{0}+1),column_name,column_type,is_nullable) "
            "ORDER"
            " BY table_name,ordinal_position),256) FROM information_schema.columns WHERE table_schema=DATABASE() AND"
            " LEFT(table_name,{0})='{1}'",
            prefix.size(), prefix));
    }

    const std::string prefix_ = queue + "_";
};

// ------------------------------------------------------------------------------------------------------------ cases

using Make = std::function<std::unique_ptr<Operation>(Hands& hands, std::string queue)>;

struct Named {
    std::string name;
    Make make;
};
std::ostream& operator<<(std::ostream& out, const Named& operation) { return out << operation.name; }

template <class Kind, class... Arguments>
Named named(std::string name, Arguments... arguments) {
    return {.name = std::move(name), .make = [arguments...](Hands& hands, std::string queue) {
                return std::make_unique<Kind>(hands, std::move(queue), arguments...);
            }};
}

const std::vector<store::Ending> kAllEndings{store::Ending::complete, store::Ending::retry,  store::Ending::snooze,
                                             store::Ending::bury,     store::Ending::cancel, store::Ending::release};

class EveryPacket : public ::testing::TestWithParam<Named> {
protected:
    EveryPacket() { database.look().run("CREATE TABLE orders (queue VARCHAR(64) PRIMARY KEY)"); }

    /// Acts with the connection broken. @returns whether it worked.
    bool act(Operation& operation, Breaker& breaker, const Break& at, unsigned long& connection) {
        try {
            operation.act(breaker.options(at), [&](unsigned long id) {
                connection = id;
                breaker.arm(at);
            });
            return true;
        } catch (const Error& error) {
            EXPECT_TRUE(mysql::needs_reconnect(error)) << error.what();
            return false;
        }
    }

    /// The same; a server that never answers is given up by ending the connection.
    bool act_and_give_up(Operation& operation, Breaker& breaker, const Break& at, unsigned long& connection) {
        if (!operation.is_patient || !is_silent(at)) {
            return act(operation, breaker, at, connection);
        }
        auto acting = std::async(std::launch::async, [&] {
            const mysql::ThreadScope scope;
            return act(operation, breaker, at, connection);
        });
        EXPECT_TRUE(eventually([&] { return breaker.has_broken(); }));
        breaker.end();
        return acting.get();
    }

    void run_case(Hands& hands, std::size_t number, const Break& at) {
        SCOPED_TRACE(describe(at));
        const std::string queue = fmt::format("q{}", number);
        const auto operation = GetParam().make(hands, queue);
        operation->prepare();
        const std::string before = operation->state();
        unsigned long connection = 0;
        bool worked = false;
        {
            Breaker breaker{tcp};
            worked = act_and_give_up(*operation, breaker, at, connection);
            // Where it has little patience, a slow machine can be too slow for it before that.
            EXPECT_TRUE(breaker.has_broken() || (is_silent(at) && !worked));
        }
        hands.wait_for_end_of(connection);
        if (operation->notices_all || at.passage == Passage::hold) {
            EXPECT_EQ(worked, at.passage == Passage::hold);
        }
        const std::string after = operation->state();
        const bool was_done = after == operation->done();
        EXPECT_TRUE(was_done || after == before) << after;
        EXPECT_TRUE(was_done || !worked) << after;
        EXPECT_TRUE(!was_done || worked || operation->may_be_done()) << "it was never told to";
        EXPECT_EQ(Database::violations(hands.look, queue), "");

        operation->act_again();
        EXPECT_EQ(operation->state(), operation->end(was_done));
        EXPECT_EQ(Database::violations(hands.look, queue), "");
        operation->tidy_up();
    }

    /// How many packets there are, of each direction.
    std::pair<std::size_t, std::size_t> count_packets() {
        Hands hands{database};
        const auto operation = GetParam().make(hands, "dry");
        operation->prepare();
        Breaker breaker{tcp};
        unsigned long connection = 0;
        EXPECT_TRUE(act(*operation, breaker, {}, connection));
        EXPECT_EQ(operation->state(), operation->done());
        operation->tidy_up();
        return {breaker.seen(false), breaker.seen(true)};
    }

    Database database;
    const ConnectOptions tcp = database.tcp_options();
};

TEST_P(EveryPacket, Broken_LeavesAllOrNothing_AndTheRepetitionIsRight) {
    const auto [requests, replies] = count_packets();
    ASSERT_GT(requests, 0U);
    ASSERT_GE(replies, requests);
    const std::vector<Break> all = every_break(requests, replies);
    RecordProperty("cases", std::to_string(all.size()));
    std::vector<std::unique_ptr<Hands>> hands(kThreads);
    in_parallel(all.size(), [&](std::size_t thread, std::size_t index) {
        if (!hands[thread]) {
            hands[thread] = std::make_unique<Hands>(database);
        }
        run_case(*hands[thread], index, all[index]);
    });
    EXPECT_EQ(database.violations(), "");
    EXPECT_EQ(database.look().number("SELECT COUNT(*) FROM commitq_payloads p WHERE NOT EXISTS (SELECT 1 FROM"
                                     " commitq_jobs j WHERE j.payload_id=p.id)"),
              0);
}

const NewJob kShort{.type = "t", .payload = "short"};
const NewJob kLong{.type = "t", .payload = kLongPayload};

INSTANTIATE_TEST_SUITE_P(
    Of, EveryPacket,
    ::testing::Values(named<Enqueue>("Enqueue", std::vector{kShort}), named<Enqueue>("EnqueueLong", std::vector{kLong}),
                      named<Enqueue>("EnqueueMany", std::vector{kShort, kLong, kShort, kLong}), named<Claim>("Claim"),
                      named<Look>("Look"), named<Renew>("Renew"),
                      named<Finish>("Complete", std::vector{store::Ending::complete, store::Ending::complete}),
                      named<Finish>("Retry", std::vector{store::Ending::retry}),
                      named<Finish>("Bury", std::vector{store::Ending::bury}),
                      named<Finish>("Cancel", std::vector{store::Ending::cancel}),
                      named<Finish>("Snooze", std::vector{store::Ending::snooze}),
                      named<Finish>("Release", std::vector{store::Ending::release, store::Ending::release}),
                      named<Finish>("AllEndings", kAllEndings), named<Finish>("AllEndingsUnlocked", kAllEndings, true),
                      named<Reap>("Reap"), named<Duty>("Duty"), named<Check>("Check"), named<Migrate>("Migrate")),
    [](const auto& operation) { return operation.param.name; });

// ----------------------------------------------------------------------------------------------------- whole workers

/// Jobs of two types, half of them completed in a transaction of their handler's together with an effect.
class EveryPacketOfAWorker : public ::testing::Test {
protected:
    static constexpr long kJobs = 6;

    EveryPacketOfAWorker() {
        database.look().run("SET SESSION wait_timeout=3600");
        database.look().run("CREATE TABLE effects (job BIGINT, KEY (job))");
    }

    static WorkerOptions options(const std::string& queue) {
        return {.queues = {queue},
                .concurrency = 2,
                .batch = 2,
                .lease = 1s,
                .heartbeat = 200ms,
                .retry = RetryPolicy::fixed(0s)};
    }

    static void register_handlers(Worker& worker) {
        worker.on("plain", [](JobContext&) { return Outcome::done(); });
        worker.on("effect", [](JobContext& job) {
            auto tx = job.begin();
            tx.execute(fmt::format("INSERT INTO effects VALUES ({})", job.id()));
            job.complete_in(tx);
            tx.commit();
            return Outcome::done();
        });
    }

    static void enqueue(Hands& hands, const std::string& queue, long count) {
        std::vector<NewJob> jobs;
        for (long i = 0; i < count; ++i) {
            jobs.push_back({.type = i % 2 == 0 ? "effect" : "plain", .payload = i == 0 ? kLongPayload : "short"});
        }
        hands.direct.execute("START TRANSACTION", kTest);
        Queue{queue}.enqueue_many(hands.direct.client(), jobs);
        hands.direct.execute("COMMIT", kTest);
    }

    /// Again when the connection broke while it started: then nothing runs.
    static void start(Worker& worker) {
        EXPECT_TRUE(eventually([&] {
            try {
                worker.start();
                return true;
            } catch (const Error& error) {
                EXPECT_TRUE(mysql::needs_reconnect(error)) << error.what();
                EXPECT_FALSE(worker.health().started);
                return false;
            }
        }));
    }

    static void expect_completed(Hands& hands, const std::string& queue, long count) {
        const std::string completed =
            fmt::format("SELECT COUNT(*) FROM commitq_jobs WHERE queue='{}' AND state='completed'", queue);
        EXPECT_TRUE(eventually([&] {
            std::this_thread::sleep_for(20ms);  // many cases look at once
            return hands.look.number(completed) == count;
        })) << hands.look
                   .value(fmt::format("SELECT GROUP_CONCAT(CONCAT_WS(' ',id,type,state,attempt)) FROM commitq_jobs"
                                      " WHERE queue='{}'",
                                      queue));
    }

    void run_case(Hands& hands, std::size_t number, const Break& at) {
        SCOPED_TRACE(describe(at));
        const std::string queue = fmt::format("w{}", number);
        enqueue(hands, queue, kJobs);
        Breaker breaker{tcp};
        breaker.arm(at);
        const auto recorder = std::make_shared<Recorder>();
        WorkerOptions with_recorder = options(queue);
        with_recorder.observer = recorder;
        Worker worker{breaker.options(at), with_recorder};
        register_handlers(worker);
        start(worker);
        expect_completed(hands, queue, kJobs);
        EXPECT_TRUE(eventually([&] { return breaker.has_broken(); })) << "a worker never falls silent";
        enqueue(hands, queue, 2);
        expect_completed(hands, queue, kJobs + 2);
        EXPECT_TRUE(worker.stop(60s).clean) << recorder->error_text();
        for (const Error& error : recorder->errors()) {
            EXPECT_TRUE(mysql::needs_reconnect(error)) << error.what();
        }
        const std::string effects = hands.look.value(
            fmt::format("SELECT GROUP_CONCAT((SELECT COUNT(*) FROM effects WHERE job=id) ORDER BY id) FROM commitq_jobs"
                        " WHERE queue='{}' AND type='effect'",
                        queue));
        EXPECT_EQ(effects, "1,1,1,1");
        EXPECT_EQ(Database::violations(hands.look, queue), "");
    }

    /// How many packets there are until all jobs are completed.
    std::pair<std::size_t, std::size_t> count_packets() {
        Hands hands{database};
        enqueue(hands, "dry", kJobs);
        Breaker breaker{tcp};
        Worker worker{breaker.options({}), options("dry")};
        register_handlers(worker);
        worker.start();
        expect_completed(hands, "dry", kJobs);
        return {breaker.seen(false), breaker.seen(true)};
    }

    // A handler's transaction may stand still for that long, also one whose worker was cut off: docs/configuration.md.
    const PrivateServer server{{"--wait-timeout=3"}};
    Database database{server.options()};
    const ConnectOptions tcp = database.tcp_options();
};

TEST_F(EveryPacketOfAWorker, Broken_TheWorkerGoesOnByItself_AndEveryEffectIsThereOnce) {
    const auto [requests, replies] = count_packets();
    // Workers are expensive, and the same few statements come again and again: not more cases than this of each.
    constexpr std::size_t kMost = 24;
    std::vector<Break> all;
    const auto add = [&](bool reply, std::size_t packets, Passage passage, std::size_t first) {
        const std::size_t step = packets / kMost + 1;
        for (std::size_t n = 1 + first % step; n <= packets; n += step) {
            all.push_back({.reply = reply, .passage = passage, .n = n});
        }
    };
    add(false, requests, Passage::lose, 0);
    add(false, requests, Passage::lose_answer, 1);
    add(false, requests, Passage::cut_off, 0);
    add(true, replies, Passage::lose, 0);
    add(true, replies, Passage::half_close, 2);
    add(true, replies, Passage::cut_off, 4);
    std::vector<std::unique_ptr<Hands>> hands(kThreads);
    in_parallel(all.size(), [&](std::size_t thread, std::size_t index) {
        if (!hands[thread]) {
            hands[thread] = std::make_unique<Hands>(database);
        }
        run_case(*hands[thread], index, all[index]);
    });
    EXPECT_EQ(database.violations(), "");
}

}  // namespace
}  // namespace commitq::test
