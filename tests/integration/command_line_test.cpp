// The program: where it takes the password from, and that nobody else gets to see it.
#include "support/child.h"
#include "support/database.h"
#include "support/temporary_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <utility>

namespace commitq::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kWrong = "s3cr3t-Pa55word";  // in a URL of good form, and of no account

/// What a program said, on both outputs, and how it ended.
struct Said {
    std::string text{};
    Ended ended{};
};

/// The program, by way of a shell that puts both outputs together and of `env`, for its environment.
std::vector<std::string> command(const std::vector<std::string>& environment,
                                 const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"/bin/sh", "-c", R"(exec env "$@" 2>&1)", "sh", "-u", "COMMITQ_URL"};
    words.insert(words.end(), environment.begin(), environment.end());
    words.emplace_back(COMMITQ_PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

Said rest_of(Child& child) {
    std::string text = child.read_all();
    return {.text = std::move(text), .ended = child.wait()};
}

Said run(const std::vector<std::string>& environment, const std::vector<std::string>& arguments) {
    Child child{command(environment, arguments)};
    return rest_of(child);
}

class CommandLine : public ::testing::Test {
protected:
    [[nodiscard]] std::string url(std::string_view password) const {
        ConnectOptions options = database.options();
        options.password = password;
        return url_of(options);
    }
    [[nodiscard]] std::string url_without_password() const {
        const ConnectOptions& options = database.options();
        return fmt::format("mysql://{}@{}:{}/{}?socket={}", options.user, options.host, options.port, options.database,
                           options.socket);
    }
    [[nodiscard]] const std::string& password() const { return database.options().password; }
    void expect_migrated(const Said& said) {
        EXPECT_EQ(said.ended, Ended::with(0)) << said.text;
        EXPECT_THAT(said.text, HasSubstr("schema version 1"));
        EXPECT_THAT(said.text, Not(HasSubstr(password())));
    }

    Database database{false};
    TemporaryFolder folder{};
};

TEST_F(CommandLine, ThePasswordComesFromTheUrlInTheEnvironment) {
    expect_migrated(run({"COMMITQ_URL=" + url(password())}, {"migrate"}));
}

TEST_F(CommandLine, ThePasswordComesFromTheEnvironment) {
    expect_migrated(run({"COMMITQ_PASSWORD=" + password()}, {"migrate", "--url", url_without_password()}));
}

TEST_F(CommandLine, ThePasswordInTheUrlGoesBeforeThatOfTheEnvironment) {
    expect_migrated(run({"COMMITQ_PASSWORD=" + kWrong}, {"migrate", "--url=" + url(password())}));
}

TEST_F(CommandLine, ThePasswordIsTheFirstLineOfAFile) {
    for (const char* end : {"", "\n", "\r\n", "\nmore\n"}) {
        expect_migrated(
            run({"COMMITQ_PASSWORD=" + kWrong}, {"migrate", "--url", url_without_password(), "--password-file",
                                                 folder.write("password", password() + end)}));
    }
}

TEST_F(CommandLine, APasswordFileThatHoldsNoneIsSaidToBe) {
    const std::string url = url_without_password();
    const Said missing = run({}, {"migrate", "--url", url, "--password-file", folder.path("missing")});
    EXPECT_EQ(missing.ended, Ended::with(1));
    EXPECT_THAT(missing.text, HasSubstr("missing can't be read: No such file"));
    const Said empty = run({}, {"migrate", "--url", url, "--password-file", folder.write("empty", "\nsecond line\n")});
    EXPECT_EQ(empty.ended, Ended::with(1));
    EXPECT_THAT(empty.text, HasSubstr("empty first line"));
    EXPECT_EQ(run({}, {"migrate", "--url", url, "--password-file", "x", "--ask-password"}).ended, Ended::with(2));
}

TEST_F(CommandLine, AUrlAmongTheArgumentsCannotBeReadInTheProcessList) {
    const std::string fifo = folder.path("fifo");
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const std::vector<std::vector<std::string>> ways{{"--url", url(kWrong)}, {"--url=" + url(kWrong)}};
    for (const auto& words : ways) {
        std::vector<std::string> arguments{"migrate", "--password-file", fifo};
        arguments.insert(arguments.end(), words.begin(), words.end());
        Child child{command({}, arguments)};
        std::ofstream password_file{fifo};  // opened when the program reads it, and is past its arguments
        std::ifstream file{fmt::format("/proc/{}/cmdline", child.pid())};
        const std::string cmdline{std::istreambuf_iterator<char>{file}, {}};
        EXPECT_THAT(cmdline, HasSubstr("--password-file"));
        EXPECT_THAT(cmdline, Not(HasSubstr(kWrong)));
        password_file << password() << std::endl;
        password_file.close();
        expect_migrated(rest_of(child));
    }
}

TEST_F(CommandLine, NoMessageSaysWhatMayBeAPassword) {
    const std::vector<std::vector<std::string>> mistakes{
        {"mysql://app:" + kWrong + "@db/shop"},
        {"migrate", "mysql://app:" + kWrong + "@db/shop"},
        {"migrate", "--uri=mysql://app:" + kWrong + "@db/shop"},
        {"migrate", "-p" + kWrong},
        {"migrate", "--password=" + kWrong},
        {"migrate", "--" + kWrong},
        {"migrate", kWrong},
        {"migrate", "--url", "app:" + kWrong + "@db/shop"},
        {"migrate", "--url", "mysql://app:" + kWrong + "/1@db/shop"},
        {"migrate", "--url", url(kWrong)},
        {"migrate", "--url", url(kWrong), "--prefix", "a-b"},
        {"migrate", "--url", url(kWrong), "--prefix"},
    };
    for (const auto& arguments : mistakes) {
        SCOPED_TRACE(arguments.back());
        const Said said = run({}, arguments);
        EXPECT_THAT(said.ended, ::testing::AnyOf(Ended::with(1), Ended::with(2))) << said.text;
        EXPECT_THAT(said.text, HasSubstr("commitq: "));
        EXPECT_THAT(said.text, Not(HasSubstr(kWrong)));
    }
}

TEST_F(CommandLine, NoArgumentBecomesAStatement) {
    database.look().run("CREATE TABLE canary (id INT)");
    for (const std::string text : {"'; DROP TABLE canary; -- ", "`", "\\", "\"", "%s%n", "\xBF\x27", "\x81\x5C'"}) {
        SCOPED_TRACE(text);
        EXPECT_EQ(run({}, {"migrate", "--url", url(password()), "--prefix", text}).ended, Ended::with(1));
        EXPECT_EQ(run({}, {"migrate", "--url", url(password()) + text}).ended, Ended::with(1));
        EXPECT_EQ(run({}, {text}).ended, Ended::with(2));
    }
    EXPECT_EQ(database.look().value("SELECT GROUP_CONCAT(table_name) FROM information_schema.tables"
                                    " WHERE table_schema=DATABASE()"),
              "canary");
}

TEST_F(CommandLine, HelpNamesEveryWayToAPassword) {
    const Said help = run({}, {"--help"});
    EXPECT_EQ(help.ended, Ended::with(0));
    for (const char* name : {"COMMITQ_URL", "COMMITQ_PASSWORD", "--password-file", "--ask-password", "--url"}) {
        EXPECT_THAT(help.text, HasSubstr(name));
    }
}

// ---------------------------------------------------------------------------------------------------------- a terminal

/// The program on a terminal of its own.
class OnTerminal {
public:
    explicit OnTerminal(std::vector<std::string> words) {
        std::vector<char*> arguments;
        for (std::string& word : words) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
        if (pid_ == 0) {
            execv(arguments.front(), arguments.data());
            _exit(127);
        }
    }
    OnTerminal(const OnTerminal&) = delete;
    OnTerminal& operator=(const OnTerminal&) = delete;
    ~OnTerminal() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        close(terminal_);
    }

    /// Reads until @p word was shown, or the program has ended. @returns all that was shown so far.
    const std::string& read_until(std::string_view word) {
        std::array<char, 4096> bytes{};
        while (shown_.find(word) == std::string::npos) {
            const auto count = read(terminal_, bytes.data(), bytes.size());
            if (count <= 0) {
                break;  // EIO: nobody has the other end any more
            }
            shown_.append(bytes.data(), static_cast<std::size_t>(count));
        }
        return shown_;
    }
    void type(const std::string& text) const {
        ASSERT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    [[nodiscard]] bool echoes() const {
        termios settings{};
        tcgetattr(terminal_, &settings);
        return (settings.c_lflag & ECHO) != 0;
    }
    Ended wait() {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFSIGNALED(status) ? Ended::by(WTERMSIG(status)) : Ended::with(WEXITSTATUS(status));
    }

private:
    int terminal_ = -1;
    pid_t pid_ = -1;
    std::string shown_{};
};

TEST_F(CommandLine, ThePasswordIsAskedForWithoutAnEcho) {
    OnTerminal program{
        command({"COMMITQ_PASSWORD=" + kWrong}, {"migrate", "--url", url_without_password(), "--ask-password"})};
    ASSERT_THAT(program.read_until("Password: "), HasSubstr("Password: "));
    EXPECT_FALSE(program.echoes());
    program.type(password() + "\n");
    const std::string shown = program.read_until("schema version 1");
    EXPECT_THAT(shown, HasSubstr("schema version 1"));
    EXPECT_THAT(shown, Not(HasSubstr(password())));
    EXPECT_EQ(program.wait(), Ended::with(0));
}

TEST_F(CommandLine, AnInterruptedQuestionLeavesTheTerminalAsItWas) {
    OnTerminal program{command({}, {"migrate", "--url", url_without_password(), "--ask-password"})};
    ASSERT_THAT(program.read_until("Password: "), HasSubstr("Password: "));
    program.type("\x03");
    EXPECT_EQ(program.wait(), Ended::by(SIGINT));
    EXPECT_TRUE(program.echoes());
}

TEST_F(CommandLine, WithoutATerminalItDoesNotAsk) {
    auto words = command({}, {"migrate", "--url", url_without_password(), "--ask-password"});
    words[2] = R"(exec setsid env "$@" 2>&1)";  // away from the terminal that this test may have
    Child child{words};
    const Said said = rest_of(child);
    EXPECT_EQ(said.ended, Ended::with(1));
    EXPECT_THAT(said.text, HasSubstr("no terminal"));
}

}  // namespace
}  // namespace commitq::test
