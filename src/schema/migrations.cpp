#include <schema/migrations.h>

#include <string>

namespace commitq::schema {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

}  // namespace

std::vector<std::string> statements(const Migration& migration, std::string_view prefix) {
    std::vector<std::string> found;
    std::string statement;
    for (std::string_view rest = migration.sql; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.empty() || line.starts_with("--")) {
            continue;
        }
        const bool last = line.ends_with(';');
        statement += statement.empty() ? "" : "\n";
        statement += last ? line.substr(0, line.size() - 1) : line;
        if (last) {
            replace_all(statement, "{prefix}", prefix);
            found.push_back(std::move(statement));
            statement.clear();
        }
    }
    return found;
}

}  // namespace commitq::schema
