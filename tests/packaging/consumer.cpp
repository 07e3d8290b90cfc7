// What someone outside does with commitq: the headers, the library and their own MYSQL*, without a server. Prints the version.
#include <commitq/commitq.h>
#include <commitq/interop/mysql.h>
#include <commitq/testing.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

template <class Call>
bool throws_error(Call call) {
    try {
        call();
    } catch (const commitq::Error&) {
        return true;
    }
    return false;
}

bool check(bool holds, const char* what) {
    if (!holds) std::fprintf(stderr, "consumer: not so: %s\n", what);
    return holds;
}

}  // namespace

int main() {
    const commitq::Queue queue{"orders"};
    const std::unique_ptr<MYSQL, decltype(&mysql_close)> unconnected{mysql_init(nullptr), &mysql_close};

    bool good = check(queue.name() == "orders", "a queue knows its name");
    good &= check(throws_error([] { commitq::Queue{"not a name"}; }), "a bad name throws");
    good &= check(commitq::client_library() == commitq::ClientTraits<MYSQL>::library,
                  "headers and library agree on the client library");
    good &= check(throws_error([&] { queue.enqueue(unconnected.get(), "order.created", "{}"); }),
                  "enqueue on a connection that isn't open throws");
    good &= check(throws_error([] {
                      commitq::Worker{commitq::ConnectOptions{}, {}};
                  }),
                  "a worker without queues throws");

    std::puts(COMMITQ_VERSION);
    return good ? 0 : 1;
}
