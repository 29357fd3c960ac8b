// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace zs {

bool nested_too_deeply(std::string_view json) {
  constexpr int kDeepest = 256;
  int depth = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"') {
      while (++at < json.size() && json[at] != '"') at += json[at] == '\\';
    } else if (json[at] == '[' || json[at] == '{') {
      if (++depth > kDeepest) return true;
    } else if (json[at] == ']' || json[at] == '}') {
      --depth;
    }
  }
  return false;
}

template <typename Json>
Json json_of(std::string_view text, const std::string& name) {
  if (nested_too_deeply(text)) throw Error(name, 0, "is JSON that is nested too deeply");
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    what.erase(0, what.find("] ") + 2);
    const bool half = what.find(" invalid string: surrogate U+") != std::string::npos;
    throw Error(name, 0,
                (half ? "has half of a surrogate pair, which is no character: " : "is not JSON: ") + printable(what));
  }
}
template nlohmann::json json_of(std::string_view, const std::string&);
template nlohmann::ordered_json json_of(std::string_view, const std::string&);

template <typename Json>
Json read_json(const std::string& path) {
  return json_of<Json>(Input(path).read_all(), path);
}
template nlohmann::json read_json(const std::string&);
template nlohmann::ordered_json read_json(const std::string&);

}  // namespace zs
