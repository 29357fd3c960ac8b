// SPDX-License-Identifier: Apache-2.0
#include "probefile/parse.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"

namespace zs::probefile {
namespace {

using Json = nlohmann::json;

void from(const Json& value, std::string& to) { to = value.get<std::string>(); }

void from(const Json& value, std::int64_t& to) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX))
    throw Error("has " + value.dump() + " where a whole number belongs");
  to = value.get<std::int64_t>();
}

void from(const Json& value, Real& to) {
  if (value.is_number()) {
    to.value = value.get<double>();
    return;
  }
  const auto& text = value.get_ref<const std::string&>();
  if (text != "nan" && text != "inf" && text != "-inf") throw Error("has '" + text + "' where a number belongs");
  to.value = text == "nan" ? std::nan("") : text == "inf" ? HUGE_VAL : -HUGE_VAL;
}

void from(const Json& value, Digest& to) {
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error("a digest has 16 hexadecimal digits");
  to.bits = std::stoull(text, nullptr, 16);
}

/// Little-endian float64 in base64.
void from(const Json& value, Sketch& to) {
  static_assert(std::endian::native == std::endian::little);
  const std::string bytes = from_base64(value.get_ref<const std::string&>());
  if (bytes.empty() || bytes.size() % 64 != 0 || bytes.size() > 16 * 64)
    throw Error("a sketch has 8 numbers for each of at most 16 ranges");
  to.resize(bytes.size() / 8);
  std::memcpy(to.data(), bytes.data(), bytes.size());
}

void from(const Json& value, Elements& to) {
  const std::string bytes = from_base64(value.get_ref<const std::string&>());
  if (bytes.size() % 8 != 0 || bytes.size() > 8 * kElements)
    throw Error("has more than " + std::to_string(kElements) + " elements, or parts of some");
  to.values.resize(bytes.size() / 8);
  std::memcpy(to.values.data(), bytes.data(), bytes.size());
}

void from(const Json& value, Option& to) {
  if (value.is_number())
    to.numbers = {value.get<double>()};
  else if (value.is_array() && !value.empty() &&
           std::ranges::all_of(value, [](const Json& one) { return one.is_number(); }))
    to.numbers = value.get<std::vector<double>>();
  else
    to.text = value.is_string() ? value.get<std::string>() : value.dump();
}

void from(const Json& value, Group& to);
void from(const Json& value, Schedule& to);
void from(const Json& value, TensorRow& to);
template <class T>
void from(const Json& value, std::optional<T>& to);
template <class T>
void from(const Json& value, std::vector<T>& to);
template <class T>
void from(const Json& value, std::map<std::string, T>& to);

void from(const Json& value, std::pair<std::int64_t, std::int64_t>& to) {
  if (value.size() != 2) throw Error("a run has a begin and an end");
  from(value.at(0), to.first), from(value.at(1), to.second);
}

template <class T>
void from(const Json& value, std::optional<T>& to) {
  if (value.is_null()) return;
  from(value, to.emplace());
}

template <class T>
void from(const Json& value, std::vector<T>& to) {
  if (!value.is_array()) throw Error("has " + value.dump() + " where a list belongs");
  to.reserve(value.size());
  for (const Json& one : value) from(one, to.emplace_back());
}

template <class T>
void from(const Json& value, std::map<std::string, T>& to) {
  if (!value.is_object()) throw Error("has " + value.dump() + " where an object belongs");
  for (const auto& [key, one] : value.items()) from(one, to[key]);
}

void from(const Json& value, Group& to) {
  for (const auto& [key, option] : value.items()) {
    if (key == "params")
      from(option, to.params);
    else if (key == "optimizer")
      from(option, to.optimizer);
    else
      from(option, to.options[key]);
  }
}

template <class Row, class List>
Row row(const Json& value, const List& list) {
  Row made;
  std::size_t known = 0;
  each(list, [&](const auto& field) {
    const auto found = value.find(field.name);
    if (found == value.end()) {
      if (field.required) throw Error("lacks '" + std::string(field.name) + "'");
      return;
    }
    ++known;
    from(*found, made.*field.value);
  });
  if (known == value.size()) return made;
  for (const auto& [key, ignored] : value.items()) {
    bool listed = false;
    each(list, [&, &name = key](const auto& field) { listed |= name == field.name; });
    if (!listed) throw Error("has '" + key + "', which this zs-verify does not know: take the version of the recorder");
  }
  return made;
}

void from(const Json& value, Schedule& to) { to = row<Schedule>(value, kSchedule); }
void from(const Json& value, TensorRow& to) { to = row<TensorRow>(value, kTensor); }

}  // namespace

std::variant<HeadRow, StartRow, StepRow, EndRow> parse(std::string_view line) {
  try {
    const Json value = Json::parse(line);
    if (!value.is_object()) throw Error("is no line of zs_probe");
    if (value.contains("zs_probe")) {
      if (value.at("zs_probe") == 1)
        throw Error("is a recording of version 1, which is no longer read: record the training again");
      return row<HeadRow>(value, kHead);
    }
    if (value.contains("start")) return row<StartRow>(value, kStart);
    if (value.contains("end")) return row<EndRow>(value, kEnd);
    if (value.contains("step")) return row<StepRow>(value, kStep);
  } catch (const Json::exception&) {
  }
  throw Error("is no line of zs_probe");
}

}  // namespace zs::probefile
