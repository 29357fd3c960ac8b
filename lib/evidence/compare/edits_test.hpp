// SPDX-License-Identifier: Apache-2.0
// For tests: edits of real recordings, which are lines of JSON in a file per rank: each changes, drops, doubles or
// moves one leaf, one element of a list or one line. A comparison must notice each, or a table must say why it need
// not.
#pragma once
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "compare/pairs_test.hpp"

namespace zs::compare {

using Json = nlohmann::ordered_json;

/// A line of a file. Copies share it until one is changed.
class Line {
 public:
  explicit Line(Json json) : json_(std::make_shared<Json>(std::move(json))), text_(json_->dump()) {}
  const Json& json() const { return *json_; }
  Json& change() {
    text_.clear();
    return *(json_ = std::make_shared<Json>(*json_));
  }
  std::string text() const { return text_.empty() ? json_->dump() : text_; }

 private:
  std::shared_ptr<Json> json_;
  std::string text_;  // "" if it was changed
};
using Lines = std::vector<Line>;
using Files = std::map<std::string, Lines>;  ///< by name: the lines of each

/// Where an edit applies: the file, the line from 0, the path within the line.
struct Spot {
  std::string file;
  std::size_t line = 0;
  Json::json_pointer path{};
  std::string kind;  ///< the path without numbers and parameters: "step /tensors/grad/squares"
};

/// What is done there. `apply` returns whether it changed anything.
struct Operation {
  std::string name;
  enum class On { leaf, element, line } on;
  bool both = false;    ///< on both sides
  bool little = false;  ///< so little that rounding may explain it
  std::function<bool(Files&, const Spot&, Random&)> apply;
};

/// The key that says what a line is: "zs_probe", "start", "step", "end".
inline std::string line_kind(const Json& line) {
  for (const char* const key : {"zs_probe", "start", "step", "end"}) {
    if (line.is_object() && line.contains(key)) return key;
  }
  return "line";
}

namespace edits {

inline bool is_place(const std::string& name) { return name.find('/') != std::string::npos; }

/// Lists all leaves and all elements of lists below `at`.
inline void walk(const Json& root, const Json& at, const Json::json_pointer& path, const std::string& kind,
                 const std::function<void(const Json::json_pointer&, const std::string&, bool element)>& found) {
  if (at.is_object() && !at.empty()) {
    for (const auto& [key, value] : at.items()) walk(root, value, path / key, kind + "/" + key, found);
  } else if (at.is_array() && !at.empty()) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::string inner = kind + "[]";
      if (at[i].is_object() && at[i].contains("name") && at[i]["name"].is_string()) {
        const std::string name = at[i]["name"];
        if (is_place(name)) inner = kind + "[" + name.substr(0, name.find('/')) + "]";
      }
      found(path / i, inner, true);
      walk(root, at[i], path / i, inner, found);
    }
  } else {
    found(path, kind, false);
  }
}

inline bool is_hex(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The numbers of a sketch; none if the text is no sketch.
inline std::vector<double> numbers(const std::string& text) {
  if (text.size() < 80) return {};
  try {
    const std::string bytes = from_base64(text);
    std::vector<double> made(bytes.size() / 8);
    std::memcpy(made.data(), bytes.data(), made.size() * 8);
    return bytes.size() % 64 == 0 ? made : std::vector<double>();
  } catch (const Error&) {
    return {};
  }
}

inline std::string text_of(const std::vector<double>& numbers) {
  return to_base64({reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8});
}

/// Another value of the same type, far away.
inline bool far(Json& at, Random& random) {
  if (at.is_boolean()) {
    at = !at.get<bool>();
  } else if (at.is_number_integer()) {
    at = at.get<std::int64_t>() + 1 + static_cast<std::int64_t>(below(random, 3));
  } else if (at.is_number()) {
    const double value = at.get<double>();
    at = value == 0 ? 0.5 : value * (below(random, 2) ? 1.5 : 0.5);
  } else if (at.is_string()) {
    auto text = at.get<std::string>();
    if (auto sketch = numbers(text); !sketch.empty()) {
      if (below(random, 2)) {
        for (double& number : sketch) number *= 1.5;
      } else {
        double norm = 0;
        for (const double number : sketch) norm += number * number;
        sketch[below(random, sketch.size())] += 1 + std::sqrt(norm);
      }
      at = text_of(sketch);
    } else if (is_hex(text)) {
      char& digit = text[below(random, 16)];
      digit = digit == '0' ? '7' : '0';
      at = text;
    } else {
      at = text.empty() ? "x" : text + "x";
    }
  } else if (at.is_null()) {
    at = 1;
  } else {
    return false;
  }
  return true;
}

inline bool not_finite(Json& at) {
  if (at.is_number_float()) return at = "nan", true;
  if (!at.is_string()) return false;
  auto sketch = numbers(at.get<std::string>());
  if (sketch.empty()) return false;
  sketch[0] = std::nan("");
  return at = text_of(sketch), true;
}

inline Json& parent(Json& line, const Json::json_pointer& path) { return line[path.parent_pointer()]; }

inline bool drop(Json& line, const Json::json_pointer& path) {
  Json& around = parent(line, path);
  if (around.is_array())
    around.erase(std::stoul(path.back()));
  else
    around.erase(path.back());
  return true;
}

/// Swaps the value with that of the same path in another line.
inline bool swap(Json& a, Json& b, const Json::json_pointer& path) {
  if (!b.contains(path) || a[path] == b[path]) return false;
  std::swap(a[path], b[path]);
  return true;
}

inline bool with_next_step(Files& files, const Spot& spot) {
  Lines& lines = files[spot.file];
  for (std::size_t i = spot.line + 1; i < lines.size(); ++i) {
    if (line_kind(lines[i].json()) == line_kind(lines[spot.line].json()))
      return swap(lines[spot.line].change(), lines[i].change(), spot.path);
  }
  return false;
}

inline Json& json(Files& files, const Spot& spot) { return files[spot.file][spot.line].change(); }

inline Lines* other_rank(Files& files, const Spot& spot) {
  for (auto& [name, lines] : files) {
    if (name != spot.file && spot.line < lines.size()) return &lines;
  }
  return nullptr;
}

}  // namespace edits

inline std::vector<Operation> operations() {
  using On = Operation::On;
  const auto leaf = [](auto&& change) {
    return [change](Files& files, const Spot& spot, Random& random) {
      return change(edits::json(files, spot)[spot.path], random);
    };
  };
  const auto dropped = [](Files& files, const Spot& spot, Random&) {
    return edits::drop(edits::json(files, spot), spot.path);
  };
  const auto key_dropped = [dropped](Files& files, const Spot& spot, Random& random) {
    const Json& at = files[spot.file][spot.line].json()[spot.path];
    if (at.is_null() || (at.is_structured() && at.empty())) return false;  // null, empty and absent are one
    return !spot.kind.ends_with("[]") && dropped(files, spot, random);     // an element is dropped below
  };
  const auto line_dropped = [](Files& files, const Spot& spot, Random&) {
    Lines& lines = files[spot.file];
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(spot.line));
    return true;
  };
  const auto not_finite = leaf([](Json& at, Random&) { return edits::not_finite(at); });
  const auto moved_to_step = [](Files& files, const Spot& spot, Random&) { return edits::with_next_step(files, spot); };
  const auto moved_to_rank = [](Files& files, const Spot& spot, Random&) {
    Lines* const other = edits::other_rank(files, spot);
    return other && edits::swap(edits::json(files, spot), (*other)[spot.line].change(), spot.path);
  };
  return {
      {"changed", On::leaf, false, false, leaf([](Json& at, Random& random) { return edits::far(at, random); })},
      {"changed by one ulp", On::leaf, false, true, leaf([](Json& at, Random&) {
         if (at.is_number_float()) return at = std::nextafter(at.get<double>(), 1e300), true;
         if (!at.is_string()) return false;
         auto sketch = edits::numbers(at.get<std::string>());
         if (sketch.empty()) return false;
         sketch[0] = std::nextafter(sketch[0], 1e300);
         return at = edits::text_of(sketch), true;
       })},
      {"negative", On::leaf, false, false, leaf([](Json& at, Random&) {
         if (!at.is_number() || at.get<double>() == 0) return false;
         if (at.is_number_integer()) return at = -at.get<std::int64_t>(), true;
         return at = -at.get<double>(), true;
       })},
      {"null", On::leaf, false, false, leaf([](Json& at, Random&) {
         return !at.is_null() && !(at.is_structured() && at.empty()) && (at = nullptr, true);
       })},
      {"not finite", On::leaf, false, false, not_finite},
      {"not finite on both sides", On::leaf, true, false, not_finite},
      {"of another type", On::leaf, false, false, leaf([](Json& at, Random&) {
         if (at.is_number()) return at = at.dump(), true;
         if (at.is_string()) return at = 7, true;
         if (at.is_boolean()) return at = at.get<bool>() ? "yes" : "no", true;
         return false;
       })},
      {"dropped", On::leaf, false, false, key_dropped},
      {"moved to another step", On::leaf, false, false, moved_to_step},
      {"moved to another rank", On::leaf, false, false, moved_to_rank},
      {"element dropped", On::element, false, false, dropped},
      {"element doubled", On::element, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Json& around = edits::parent(edits::json(files, spot), spot.path);
         return around.push_back(Json(around[std::stoul(spot.path.back())])), true;
       }},
      {"element swapped with the next", On::element, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Json& around = edits::parent(edits::json(files, spot), spot.path);
         const std::size_t at = std::stoul(spot.path.back());
         if (at + 1 >= around.size() || around[at] == around[at + 1]) return false;
         std::swap(around[at], around[at + 1]);
         return true;
       }},
      {"element moved to another step", On::element, false, false, moved_to_step},
      {"element moved to another rank", On::element, false, false, moved_to_rank},
      {"line dropped", On::line, false, false, line_dropped},
      {"line dropped on both sides", On::line, true, false, line_dropped},
      {"line doubled", On::line, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Lines& lines = files[spot.file];
         lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(spot.line), Line(lines[spot.line]));
         return true;
       }},
      {"line swapped with the next", On::line, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Lines& lines = files[spot.file];
         if (spot.line + 1 >= lines.size()) return false;
         std::swap(lines[spot.line], lines[spot.line + 1]);
         return true;
       }},
      {"line moved to the end", On::line, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Lines& lines = files[spot.file];
         if (spot.line + 1 >= lines.size()) return false;
         lines.push_back(Line(lines[spot.line]));
         lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(spot.line));
         return true;
       }},
      {"line swapped with that of another rank", On::line, false, false,
       [](Files& files, const Spot& spot, Random&) {
         Lines* const other = edits::other_rank(files, spot);
         if (!other) return false;
         std::swap(files[spot.file][spot.line], (*other)[spot.line]);
         return true;
       }},
  };
}

/// All places where an operation of that kind may be applied.
inline std::vector<Spot> spots(const Files& files, Operation::On on) {
  std::vector<Spot> found;
  for (const auto& [name, lines] : files) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string kind = line_kind(lines[i].json());
      if (on == Operation::On::line) {
        found.push_back({name, i, Json::json_pointer(), kind});
        continue;
      }
      edits::walk(lines[i].json(), lines[i].json(), Json::json_pointer(), kind + " ",
                  [&](const Json::json_pointer& path, const std::string& inner, bool element) {
                    if (element == (on == Operation::On::element)) found.push_back({name, i, path, inner});
                  });
    }
  }
  return found;
}

}  // namespace zs::compare
