// The command line program.
#include <commitq/commitq.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kUsage =
    R"(commitq: a transactional job queue in MySQL

  commitq migrate [--url URL] [--prefix PREFIX] [--dry-run]
      creates or upgrades the tables; --dry-run prints the SQL instead
  commitq version

URL: mysql://user:password@host:port/database?parameter=value&...; default: the environment variable COMMITQ_URL
(keeps the password out of the process list).
)";

struct Arguments {
    std::string url{};
    std::string prefix = "commitq_";
    bool dry_run = false;
};

/// The command line can't be understood.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

Arguments parse(const std::vector<std::string>& words) {
    Arguments arguments;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string& word = words[i];
        const auto value = [&]() -> const std::string& {
            if (i + 1 >= words.size()) {
                throw UsageError{word + " needs a value"};
            }
            return words[++i];
        };
        if (word == "--url") {
            arguments.url = value();
        } else if (word == "--prefix") {
            arguments.prefix = value();
        } else if (word == "--dry-run") {
            arguments.dry_run = true;
        } else {
            throw UsageError{"unknown argument " + word};
        }
    }
    if (arguments.url.empty()) {
        const char* url = std::getenv("COMMITQ_URL");  // NOLINT(concurrency-mt-unsafe): one thread
        if (url == nullptr) {
            throw UsageError{"no --url, and COMMITQ_URL is not set"};
        }
        arguments.url = url;
    }
    return arguments;
}

int migrate(const Arguments& arguments) {
    const commitq::Schema schema{commitq::ConnectOptions::from_url(arguments.url), arguments.prefix};
    if (arguments.dry_run) {
        for (const std::string& statement : schema.pending()) {
            fmt::print("{};\n\n", statement);
        }
        return 0;
    }
    const int applied = schema.migrate();
    fmt::print("schema version {} ({} applied)\n", commitq::Schema::kVersion, applied);
    return 0;
}

int run(const std::vector<std::string>& words) {
    const std::string command = words.empty() ? "" : words.front();
    if (command == "migrate") {
        return migrate(parse(words));
    }
    if (command == "version" || command == "--version") {
        fmt::print("commitq {}\n", COMMITQ_VERSION);
        return 0;
    }
    if (command == "help" || command == "--help" || command == "-h") {
        fmt::print("{}", kUsage);
        return 0;
    }
    throw UsageError{command.empty() ? "which command?" : "unknown command " + command};
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const UsageError& error) {
        fmt::print(stderr, "commitq: {}\n\n{}", error.what(), kUsage);
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "commitq: {}\n", error.what());
        return 1;
    }
}
