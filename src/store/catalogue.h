// Every statement of the library by name, with values filled in: for EXPLAIN, and for people who want to see them.
#pragma once

#include <store/tables.h>

#include <string>
#include <string_view>
#include <vector>

namespace commitq::store {

struct Statement {
    std::string_view name;  ///< The function that makes it, without `_sql`.
    std::string sql;
};

/// All of them. A test compares the names with the functions that the headers of this folder declare.
std::vector<Statement> catalogue(const Tables& tables);

}  // namespace commitq::store
