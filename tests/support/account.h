// Accounts of the server with few privileges, as users have them: that of COMMITQ_URL has all.
#pragma once

#include "support/database.h"

#include <string>
#include <string_view>
#include <vector>

namespace commitq::test {

/// The GRANT statements of docs/operations.md for a role (`producer`, `worker`, `admin`, `migrator`), on that database, as far
/// as `TO`.
std::vector<std::string> grants_to(std::string_view role, const Database& database);

/// An account with these privileges and no others; gone at the end.
class Account {
public:
    /// @param name short; what is unique to the database is put before it.
    Account(Database& database, std::string_view name, const std::vector<std::string>& grants);
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account();

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// As `Database::options`, under this account.
    [[nodiscard]] ConnectOptions options() const;

private:
    Database& database_;
    std::string name_;
};

}  // namespace commitq::test
