// The command line program.
#include "password.h"

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

  commitq migrate [--url URL] [--password-file FILE | --ask-password] [--prefix PREFIX] [--dry-run]
      creates or upgrades the tables; --dry-run prints the SQL instead
  commitq version
  commitq help

  --url URL             mysql://user@host:port/database?parameter=value&...; default: the environment variable COMMITQ_URL
  --password-file FILE  the password is the first line of FILE
  --ask-password        asks for the password on the terminal
  --prefix PREFIX       of the table names; default: commitq_

The password is, in this order: that of --password-file or --ask-password; that in the URL; the environment variable
COMMITQ_PASSWORD. A URL on the command line is overwritten there at once, but whoever looks in that moment can read it: keep
passwords out of it.
)";

struct Arguments {
    std::string url{};
    std::string password_file{};
    bool ask_password = false;
    std::string prefix = "commitq_";
    bool dry_run = false;
};

/// The command line can't be understood.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An argument as a message may show it: what isn't the plain name of an option may hold a password.
std::string shown(const std::string& word) {
    constexpr std::string_view kNameCharacters = "-abcdefghijklmnopqrstuvwxyz";
    const std::string name = word.substr(0, word.find('='));
    const bool plain = name.starts_with("--") && name.find_first_not_of(kNameCharacters) == std::string::npos;
    return plain ? name : "(not shown: it may hold a password)";
}

const char* environment(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe): one thread

Arguments parse(const std::vector<std::string>& words) {
    Arguments arguments;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string& word = words[i];
        const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        const std::string name = word.substr(0, equals);
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) {
                return word.substr(equals + 1);
            }
            if (i + 1 >= words.size()) {
                throw UsageError{name + " needs a value"};
            }
            return words[++i];
        };
        if (name == "--url") {
            arguments.url = value();
        } else if (name == "--password-file") {
            arguments.password_file = value();
        } else if (name == "--prefix") {
            arguments.prefix = value();
        } else if (word == "--ask-password") {
            arguments.ask_password = true;
        } else if (word == "--dry-run") {
            arguments.dry_run = true;
        } else {
            throw UsageError{"unknown argument " + shown(word)};
        }
    }
    if (!arguments.password_file.empty() && arguments.ask_password) {
        throw UsageError{"--password-file and --ask-password exclude each other"};
    }
    return arguments;
}

/// Where to connect, with the password from wherever it is.
commitq::ConnectOptions connection(const Arguments& arguments) {
    std::string url = arguments.url;
    if (url.empty()) {
        const char* default_url = environment("COMMITQ_URL");
        if (default_url == nullptr) {
            throw UsageError{"no --url, and COMMITQ_URL is not set"};
        }
        url = default_url;
    }
    auto options = commitq::ConnectOptions::from_url(url);
    if (!arguments.password_file.empty()) {
        options.password = commitq::cli::read_password(arguments.password_file);
    } else if (arguments.ask_password) {
        options.password = commitq::cli::ask_password();
    } else if (const char* password = environment("COMMITQ_PASSWORD");
               password != nullptr && options.password.empty()) {
        options.password = password;
    }
    return options;
}

int migrate(const Arguments& arguments) {
    const commitq::Schema schema{connection(arguments), arguments.prefix};
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
    throw UsageError{command.empty() ? "which command?" : "unknown command; the command comes first"};
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> words{argv + 1, argv + argc};
        commitq::cli::hide_urls(argc, argv);
        return run(words);
    } catch (const UsageError& error) {
        fmt::print(stderr, "commitq: {}\n\n{}", error.what(), kUsage);
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "commitq: {}\n", error.what());
        return 1;
    }
}
