// The shop: commitq in a small but whole service. See --help.
//
// main.cpp            this: which of the two programs, the shop or one of its workers
// shop                one run of the shop: starts everything, watches it, kills a worker, reports
// orders              reads JSON lines
// producer            the transaction: an order and its notification jobs
// worker_process      the handler: delivers a notification
// receiver            takes deliveries; knows the ones it has seen
// reconciliation      compares the database with the receiver's log
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "options.h"
#include "shop.h"
#include "worker_process.h"

namespace {

/// Opens standard input, output and error where they are closed, so that no connection gets their numbers. Reading from the
/// input, or writing to the others, fails as it should.
void open_standard_files() {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(file, F_GETFD) < 0) {
            open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest free number: this one
        }
    }
}

int run(const shop::Options& options) {
    if (options.help) {
        fmt::print("{}", shop::help_text());
        return EXIT_SUCCESS;
    }
    if (options.worker) {
        return shop::run_worker(options);
    }
    // For the workers. NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet
    setenv("COMMITQ_URL", options.url.c_str(), 1);
    return shop::Shop{options}.run();
}

}  // namespace

int main(int argc, char** argv) {
    open_standard_files();
    try {
        return run(shop::parse_options(argc, argv));
    } catch (const shop::BadUsage& error) {
        std::fputs(fmt::format("shop: {}\nTry: shop --help\n", error.what()).c_str(), stderr);
        return 2;
    } catch (const std::exception& error) {
        std::fflush(stdout);
        std::fputs(fmt::format("shop: {}\n", error.what()).c_str(), stderr);
        return EXIT_FAILURE;
    }
}
