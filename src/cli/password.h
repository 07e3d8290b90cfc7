// Passwords that don't stand on the command line, where every user of the machine can read them.
#pragma once

#include <stdexcept>
#include <string>

namespace commitq::cli {

/// The password can't be had.
class PasswordError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The first line of a file, without its end. Throws PasswordError.
std::string read_password(const std::string& path);

/// Asks on the terminal, which shows nothing of the answer. Throws PasswordError when there is no terminal.
std::string ask_password();

/// Overwrites the URLs in the arguments that the process was started with, as they may hold passwords: `ps` shows what stands
/// there. Call it when the arguments have been copied. For a moment after the start they can be read all the same.
void hide_urls(int argc, char** argv);

}  // namespace commitq::cli
