// The command line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace shop {

struct Options {
    std::string orders = "-";           ///< A file of JSON lines; `-` is standard input.
    int producers = 4;                  ///< Threads that place orders.
    int workers = 3;                    ///< Processes that deliver notifications.
    std::string url{};                  ///< The server and database.
    std::uint64_t seed = 1;             ///< Decides which transactions are rolled back on purpose.
    std::string log{};                  ///< Where the receiver keeps its log; empty: nowhere that outlasts the run.
    std::chrono::seconds patience{60};  ///< How long nothing may move before the run is given up.
    bool help = false;                  ///< Show the help text and end.

    // Set by the shop when it starts itself again as a worker.
    bool worker = false;
    std::string queue{};
    pid_t parent = 0;
};

/// What the user typed makes no sense.
struct BadUsage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// @throws BadUsage
Options parse_options(int argc, char** argv);

std::string help_text();

}  // namespace shop
