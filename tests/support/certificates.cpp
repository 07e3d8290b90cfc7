#include "support/certificates.h"

#include "support/child.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace commitq::test {
namespace {

/// What the program would otherwise take from the machine's configuration.
constexpr std::string_view kConfiguration = R"([req]
distinguished_name = name
prompt = no
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
)";

std::string content(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

CertificateAuthority::CertificateAuthority() {
    folder_.write("openssl.cnf", kConfiguration);
    openssl({"-subj", "/CN=commitq test authority", "-extensions", "authority", "-keyout", folder_.path("ca.key"),
             "-out", file()});
}

std::vector<std::string> CertificateAuthority::server_options(const std::string& names) const {
    folder_.write("openssl.cnf", fmt::format("{}subjectAltName = {}\n", kConfiguration, names));
    openssl({"-subj", "/CN=commitq test server", "-extensions", "server", "-CA", file(), "-CAkey",
             folder_.path("ca.key"), "-keyout", folder_.path("server.key"), "-out", folder_.path("server.pem")});
    return {"--ssl-ca=" + file(), "--ssl-cert=" + folder_.path("server.pem"),
            "--ssl-key=" + folder_.path("server.key")};
}

void CertificateAuthority::openssl(const std::vector<std::string>& arguments) const {
    const std::string log = folder_.path("log");
    std::vector<std::string> command{"/bin/sh", "-c",       R"(exec openssl req "$@" >"$0" 2>&1)", log,
                                     "-x509",   "-config",  folder_.path("openssl.cnf"),           "-newkey",
                                     "ec",      "-pkeyopt", "ec_paramgen_curve:prime256v1",        "-nodes",
                                     "-days",   "2"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    if (const Ended ended = Child{command}.wait(); ended != Ended::with(0)) {
        throw std::runtime_error{fmt::format("openssl failed: {}", content(log))};
    }
}

}  // namespace commitq::test
