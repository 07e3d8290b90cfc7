// Tutorial 1: jobs that commit together with your rows.
//
// A shop saves an order and wants a mail sent for it. Sending within the transaction is wrong: the mail can't be rolled
// back. Sending after it is wrong too: the process may die in between. So the wish to send, the job, is one more row in
// the same transaction. It is there if and only if the order is.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>
#include <commitq/testing.h>

#include "../support.h"

using namespace std::chrono_literals;
using examples::execute;

void tutorial(const commitq::ConnectOptions&, MYSQL* db) {
    execute(db, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(100) NOT NULL)");

    // A Queue is a name and a few limits. It holds no connection: it writes on yours, in your transaction. Make one
    // wherever you need it, or share one among all threads.
    const commitq::Queue queue{"mails"};

    // What follows counts the jobs that were added; handy in the tests of your own service, too.
    const commitq::testing::Enqueued enqueued{db};

    // Committed: the order and its job are both there. The payload is any bytes; commitq never looks into it.
    execute(db, "START TRANSACTION");
    execute(db, "INSERT INTO orders (item) VALUES ('teapot')");
    const commitq::JobId job = queue.enqueue(db, "order.confirmation", R"({"order": 1, "item": "teapot"})");
    execute(db, "COMMIT");
    fmt::print("committed an order and job {}\n", job);
    enqueued.expect(1);

    // Rolled back: neither is. There is no message to take back, because none was sent.
    execute(db, "START TRANSACTION");
    execute(db, "INSERT INTO orders (item) VALUES ('cracked teapot')");
    queue.enqueue(db, "order.confirmation", R"({"order": 2})");
    execute(db, "ROLLBACK");
    fmt::print("rolled back an order, and its job with it\n");
    enqueued.expect(1);

    // Options say when and how. The smaller the priority, the sooner; a delay is measured by the server's clock. Headers
    // travel with the job, for trace ids and the like.
    execute(db, "START TRANSACTION");
    queue.enqueue(db, "order.confirmation", "{}", {.priority = 0, .headers = {{"trace", "4bf92f35"}}});
    queue.enqueue(db, "order.survey", "{}", {.delay = 24h, .max_attempts = 3});

    // Many jobs at once travel in one statement.
    const std::vector<commitq::NewJob> newsletter(500, {.type = "newsletter", .payload = "Teapots are back"});
    const std::vector<commitq::JobId> ids = queue.enqueue_many(db, newsletter);
    execute(db, "COMMIT");
    fmt::print("committed {} jobs more\n", 2 + ids.size());
    enqueued.expect(503);
    enqueued.expect(500, {.type = "newsletter"});

    // Outside a transaction there is nothing for the job to commit with, which is hardly ever meant: enqueue refuses.
    // An error tells what happened, what may be repeated, and what is left of your transaction.
    try {
        queue.enqueue(db, "order.confirmation", "{}");
        examples::check(false, "enqueue outside a transaction is refused");
    } catch (const commitq::Error& error) {
        fmt::print("refused: {}\n", error.what());
        examples::check(error.code() == commitq::Errc::not_in_transaction, "the reason is the missing transaction");
    }
    // When it is meant, say so.
    queue.enqueue_autocommit(db, "cache.refresh", "");

    // Bad input is found before anything is sent, so your transaction goes on as if the call had not been made.
    execute(db, "START TRANSACTION");
    execute(db, "INSERT INTO orders (item) VALUES ('sugar bowl')");
    try {
        queue.enqueue(db, "order.confirmation", "{}", {.priority = 12});
        examples::check(false, "a priority of 12 is refused");
    } catch (const commitq::Error& error) {
        fmt::print("refused: {}\n", error.what());
        examples::check(error.transaction() == commitq::TransactionState::intact, "the transaction is intact");
    }
    queue.enqueue(db, "order.confirmation", R"({"order": 3})", {.priority = 9});
    execute(db, "COMMIT");
    enqueued.expect(505);
    examples::check(examples::value(db, "SELECT COUNT(*) FROM orders") == "2", "two orders were committed");
}

int main() { return examples::run("tutorial_1_enqueue", tutorial); }
