#include "options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace shop {
namespace {

constexpr option kFlags[] = {{"orders", required_argument, nullptr, 'o'},
                             {"producers", required_argument, nullptr, 'p'},
                             {"workers", required_argument, nullptr, 'w'},
                             {"url", required_argument, nullptr, 'u'},
                             {"seed", required_argument, nullptr, 's'},
                             {"log", required_argument, nullptr, 'l'},
                             {"patience", required_argument, nullptr, 't'},
                             {"help", no_argument, nullptr, 'h'},
                             // Not for people:
                             {"worker", no_argument, nullptr, 'W'},
                             {"queue", required_argument, nullptr, 'Q'},
                             {"parent", required_argument, nullptr, 'P'},
                             {nullptr, 0, nullptr, 0}};

template <class Integer>
Integer number(std::string_view flag, std::string_view text, Integer least, Integer most) {
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        throw BadUsage{fmt::format("--{} takes a number from {} to {}, not '{}'", flag, least, most, text)};
    }
    return value;
}

void set(Options& options, int flag) {
    const std::string argument = optarg == nullptr ? "" : optarg;
    switch (flag) {
        case 'o':
            options.orders = argument;
            break;
        case 'p':
            options.producers = number("producers", argument, 1, 64);
            break;
        case 'w':
            options.workers = number("workers", argument, 1, 64);
            break;
        case 'u':
            options.url = argument;
            break;
        case 's':
            options.seed = number<std::uint64_t>("seed", argument, 0, UINT64_MAX);
            break;
        case 'l':
            options.log = argument;
            break;
        case 't':
            options.patience = std::chrono::seconds{number("patience", argument, 5, 86'400)};
            break;
        case 'h':
            options.help = true;
            break;
        case 'W':
            options.worker = true;
            break;
        case 'Q':
            options.queue = argument;
            break;
        case 'P':
            options.parent = number<pid_t>("parent", argument, 1, INT32_MAX);
            break;
        default:
            break;
    }
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    if (const char* url = std::getenv("COMMITQ_URL")) {  // NOLINT(concurrency-mt-unsafe): there are no threads yet
        options.url = url;
    }
    opterr = 0;
    for (;;) {
        const int flag = getopt_long(argc, argv, ":", std::data(kFlags), nullptr);  // NOLINT(concurrency-mt-unsafe)
        if (flag == -1) {
            break;
        }
        if (flag == ':') {
            throw BadUsage{fmt::format("a value is missing after '{}'", argv[optind - 1])};
        }
        if (flag == '?') {
            throw BadUsage{fmt::format("what is '{}'?", argv[optind - 1])};
        }
        set(options, flag);
    }
    if (optind < argc) {
        throw BadUsage{fmt::format("what is '{}'? A file of orders goes after --orders", argv[optind])};
    }
    if (options.url.empty() && !options.help) {
        throw BadUsage{"which server? Give --url, or set COMMITQ_URL"};
    }
    return options;
}

std::string help_text() {
    return R"(Usage: shop [--orders FILE] [OPTION]...

Places orders in a database, each together with its notification jobs in one transaction; delivers the notifications from
several worker processes, one of which is killed half-way; and checks at the end that nothing was lost.

  --orders FILE    JSON lines: each line that is a JSON object is an order; - (the default) is standard input
  --producers N    threads that place orders (4)
  --workers N      processes that deliver notifications (3)
  --url URL        mysql://user:password@host:port/database; default: the environment's COMMITQ_URL
  --seed N         decides which transactions are rolled back on purpose and done again (1)
  --log FILE       keep the receiver's log of deliveries in a new file
  --patience N     give up when nothing has moved for so many seconds (60)

The exit code is 0 if everything adds up, 1 if something was lost or went wrong, 2 for a bad command line. The last line
of the output is: orders=N jobs=N delivered=N duplicates=N lost=N
)";
}

}  // namespace shop
