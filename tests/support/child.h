// Processes of a test's own: workers that are killed, frozen or forked must not take the test with them.
//
//     const ChildRole kWorks{"works", [](const ChildArguments& arguments) { ...; return 0; }};
//     ...
//     Child child{"works", {database.name()}};
//     child.signal(SIGKILL);
//     EXPECT_EQ(child.wait(), Ended::by(SIGKILL));
#pragma once

#include <commitq/connect_options.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commitq::test {

using ChildArguments = std::vector<std::string>;

/// Something that this executable does when it is started as a child. Make them static objects; the names are unique in an
/// executable.
struct ChildRole {
    ChildRole(std::string_view name, int (*run)(const ChildArguments& arguments));
};

/// How a process ended.
struct Ended {
    int exit_code = 0;
    int signal = 0;
    static Ended with(int exit_code) { return {.exit_code = exit_code}; }
    static Ended by(int signal) { return {.signal = signal}; }
    friend bool operator==(const Ended&, const Ended&) = default;
};
std::ostream& operator<<(std::ostream& out, const Ended& ended);

/// A process. Killed and waited for at the end, and killed when this process dies.
class Child {
public:
    /// This executable, in a role.
    Child(std::string_view role, const ChildArguments& arguments);
    /// Any program.
    explicit Child(const std::vector<std::string>& command);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    void signal(int number) const;
    /// A line of its standard output, without the end; empty at the end of it.
    std::string read_line();
    /// All that is left of it, to the end.
    std::string read_all();
    /// Closes its standard input.
    void close_input();
    /// How it ended, if it has. Doesn't wait.
    std::optional<Ended> poll();
    /// Waits for its end. Throws when it takes longer than @p limit, which is generous.
    Ended wait(std::chrono::seconds limit = std::chrono::seconds{120});

private:
    void start(std::vector<std::string> command);
    /// Adds to `unread_`. @returns false at the end of the output.
    bool read_more();

    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    std::string unread_{};
};

/// The command that runs this executable in a role.
std::vector<std::string> child_command(std::string_view role, const ChildArguments& arguments);

/// A URL of the server and database, for a child's arguments.
std::string url_of(const ConnectOptions& options);

/// Runs the role that the command line names, if it names one. For `main`.
std::optional<int> run_as_child(int argc, char** argv);

}  // namespace commitq::test
