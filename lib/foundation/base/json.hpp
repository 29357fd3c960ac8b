// SPDX-License-Identifier: Apache-2.0
// JSON of files.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zs {

/// Whether more than 256 lists and objects of a JSON text stand within each other: to copy or to write such a value
/// exhausts the stack.
bool nested_too_deeply(std::string_view json);

/// The JSON of a text, as nlohmann::json or ordered_json. Throws Error with `name`, and with the place in the text if
/// it is not JSON.
template <typename Json = nlohmann::json>
Json json_of(std::string_view text, const std::string& name);

/// The same of a file.
template <typename Json = nlohmann::json>
Json read_json(const std::string& path);

}  // namespace zs
