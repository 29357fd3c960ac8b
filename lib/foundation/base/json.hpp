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

/// A file's JSON. Throws Error with the file, and with the place in it if it is not JSON.
nlohmann::json read_json(const std::string& path);

}  // namespace zs
