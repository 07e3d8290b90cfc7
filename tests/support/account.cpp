#include "support/account.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace commitq::test {
namespace {

constexpr std::string_view kPassword = "R0le-secret";

}  // namespace

std::vector<std::string> grants_to(std::string_view role, const Database& database) {
    std::ifstream page{std::string{COMMITQ_SOURCE_DIR} + "/docs/operations.md"};
    const std::string end = fmt::format(" TO {};", role);
    std::vector<std::string> grants;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("GRANT ") && line.ends_with(end)) {
            std::string grant = line.substr(0, line.size() - end.size());
            grant.replace(grant.find(" ON shop."), 9, " ON " + database.name() + ".");
            grants.push_back(std::move(grant));
        }
    }
    if (grants.empty()) {
        throw std::runtime_error{fmt::format("docs/operations.md grants nothing to {}", role)};
    }
    return grants;
}

Account::Account(Database& database, std::string_view name, const std::vector<std::string>& grants)
    : database_{database}, name_{fmt::format("{}_{}", database.name().substr(0, 20), name)} {
    database_.look().run(fmt::format("CREATE USER {}@'%' IDENTIFIED BY '{}'", name_, kPassword));
    for (const std::string& grant : grants) {
        database_.look().run(fmt::format("{} TO {}@'%'", grant, name_));
    }
}

Account::~Account() { database_.look().try_run(fmt::format("DROP USER {}@'%'", name_)); }

ConnectOptions Account::options() const {
    ConnectOptions options = database_.options();
    options.user = name_;
    options.password = kPassword;
    return options;
}

}  // namespace commitq::test
