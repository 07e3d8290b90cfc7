// ConnectOptions::from_url: refuses a text without quoting from it, or gives options whose description, in which nothing
// depends on the password, reads back as the same options.
#include "fuzz/check.h"

#include <commitq/connect_options.h>

#include <tuple>

namespace commitq::fuzz {
namespace {

constexpr std::string_view kSecret = "hunter2";

/// Each `*` becomes the secret: one byte puts it anywhere.
std::string with_secret(std::string_view text) {
    std::string url;
    for (const char c : text) {
        url += c == '*' ? kSecret : std::string_view{&c, 1};
    }
    return url;
}

auto fields(const ConnectOptions& o) {
    return std::tie(o.host, o.port, o.socket, o.user, o.password, o.database, o.tls, o.tls_ca, o.charset,
                    o.connect_timeout, o.read_timeout, o.write_timeout);
}

bool is_one_line(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
}

void check_description(const ConnectOptions& options) {
    const std::string text = options.describe();
    require(is_one_line(text), "a description is one line of ASCII");
    ConnectOptions expected = options;
    if (!options.password.empty()) {
        expected.password = "***";
    }
    require(expected.describe() == text, "a description doesn't depend on the password");
    if (!options.socket.empty()) {
        expected.host = ConnectOptions{}.host;
        expected.port = ConnectOptions{}.port;
    }
    require(fields(ConnectOptions::from_url(text)) == fields(expected), "a description reads back");
}

void check_url(const std::string& url) {
    ConnectOptions options;
    ConnectOptions again;
    const auto error = refusal([&] { options = ConnectOptions::from_url(url); });
    const auto second = refusal([&] { again = ConnectOptions::from_url(url); });
    require(fields(options) == fields(again), "the same URL gives the same options");
    require(error.has_value() == second.has_value(), "the same URL is refused again");
    if (error) {
        const std::string message = error->what();
        require(message == second->what(), "the same URL is refused with the same words");
        require(message.find(kSecret) == std::string::npos, "a message quotes nothing of the URL");
        require(is_one_line(message), "a message is one line of ASCII");
        return;
    }
    options.validate();
    check_description(options);
}

}  // namespace
}  // namespace commitq::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace commitq::fuzz;
    check_url(with_secret(as_text(data, size)));
    return 0;
}
