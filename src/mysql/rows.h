// The rows of one result, read whole from the connection.
#pragma once

#include <mysql/client.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>

namespace commitq::mysql {

/// Ownership: the result. Views are valid until the next call of `next`. Threading: one thread at a time.
class Rows {
public:
    Rows() = default;
    explicit Rows(MYSQL_RES* result) : result_{result}, columns_{mysql_num_fields(result)} {}

    /// Steps to the next row; false at the end.
    bool next() {
        row_ = result_ ? mysql_fetch_row(result_.get()) : nullptr;
        lengths_ = row_ ? mysql_fetch_lengths(result_.get()) : nullptr;
        return row_ != nullptr;
    }
    [[nodiscard]] unsigned columns() const noexcept { return columns_; }
    [[nodiscard]] bool is_null(unsigned column) const noexcept { return row_[column] == nullptr; }
    /// The bytes of a column; empty for NULL.
    [[nodiscard]] std::string_view text(unsigned column) const noexcept {
        return is_null(column) ? std::string_view{} : std::string_view{row_[column], lengths_[column]};
    }
    /// A column as an integer; 0 for NULL.
    template <class Integer = std::uint64_t>
    [[nodiscard]] Integer number(unsigned column) const noexcept {
        Integer value{};
        const std::string_view digits = text(column);
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    }
    /// How many rows there are.
    [[nodiscard]] std::uint64_t size() const noexcept { return result_ ? mysql_num_rows(result_.get()) : 0; }

private:
    struct Free {
        void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
    };
    std::unique_ptr<MYSQL_RES, Free> result_;
    unsigned columns_ = 0;
    MYSQL_ROW row_ = nullptr;
    unsigned long* lengths_ = nullptr;
};

/// What one statement gave: rows, or a number of changed rows.
struct Reply {
    Rows rows{};
    std::uint64_t affected = 0;
    std::uint64_t insert_id = 0;
};

}  // namespace commitq::mysql
