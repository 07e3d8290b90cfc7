// Certificates for a server of the test's own, made with the `openssl` program.
#pragma once

#include "support/temporary_folder.h"

#include <string>
#include <vector>

namespace commitq::test {

/// A certificate authority that nobody else knows. Its files are gone at the end.
class CertificateAuthority {
public:
    CertificateAuthority();

    /// PEM file of its own certificate.
    [[nodiscard]] std::string file() const { return folder_.path("ca.pem"); }

    /// Issues a certificate to a server.
    /// @param names as in subjectAltName, such as `IP:127.0.0.1,DNS:localhost`.
    /// @returns the server's options for it.
    [[nodiscard]] std::vector<std::string> server_options(const std::string& names) const;

private:
    void openssl(const std::vector<std::string>& arguments) const;

    TemporaryFolder folder_{};
};

}  // namespace commitq::test
