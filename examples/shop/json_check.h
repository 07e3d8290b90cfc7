// Is this text a JSON object?
//
// The shop stores and delivers orders as they are, byte by byte, so it has no use for a parsed form of them: duplicate
// keys, numbers of a thousand digits and any depth of nesting are fine. It only has to know that others can parse it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shop {

/// What keeps @p text from being a JSON object (RFC 8259, in UTF-8), and where; nothing if it is one.
std::optional<std::string> json_object_problem(std::string_view text);

}  // namespace shop
