// SPDX-License-Identifier: Apache-2.0
#include "attribute/difference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::attribute {
namespace {

constexpr const char* kGlobalBatch = "global_batch_size";

/// 1e-3 and 0.001 are one number, True and true one truth.
std::string spelt(const Attribute* row, const std::string& text) {
  if (text == "True" || text == "False") return text == "True" ? "true" : "false";
  if (!row || row->type == Type::text) return text;
  if (const auto whole = parse_int(text)) return to_text(*whole);
  const auto number = parse_real(text);
  if (!number || !std::isfinite(*number)) return text;
  const bool is_whole = *number == std::trunc(*number) && std::fabs(*number) < 9e15;
  return is_whole ? to_text(static_cast<std::int64_t>(*number)) : to_text(*number);
}

/// Sequences per step, if all three factors are known; "" otherwise.
std::string global_batch(const Facts& facts) {
  std::int64_t product = 1;
  for (const char* const key : {"world_size", "batch_size", "gradient_accumulation_steps"}) {
    const auto found = facts.find(key);
    const auto factor = found == facts.end() ? std::nullopt : parse_int(found->second);
    if (!factor || __builtin_mul_overflow(product, *factor, &product)) return "";
  }
  return to_text(product);
}

}  // namespace

std::string value(const Facts& facts, std::string_view any_name) {
  const std::string_view name = primary(any_name);
  if (const auto found = facts.find(std::string(name)); found != facts.end()) return found->second;
  for (const auto& [key, value] : facts) {
    if (primary(key) == name) return value;
  }
  return "";
}

Facts named(const Facts& facts) {
  Facts known;
  for (const auto& [key, value] : facts) {
    if (value.empty()) continue;
    const Attribute* const row = find(key);
    const std::string name(primary(key));
    if (name == key)
      known[name] = spelt(row, value);
    else
      known.emplace(name, spelt(row, value));
  }
  return known;
}

Facts settled(const Facts& facts) {
  Facts known = named(facts);
  if (known.count(kGlobalBatch) == 0) {
    if (std::string batch = global_batch(known); !batch.empty()) known[kGlobalBatch] = std::move(batch);
  }
  Facts made;
  for (const auto& [key, value] : known) {
    const Attribute* const row = find(key);
    const bool has_its_effect = row && !row->through.empty() && known.count(std::string(row->through)) > 0;
    if (!has_its_effect || row->role == Role::layout) made.emplace(key, value);
  }
  return made;
}

Role role_in(const Facts& settled, std::string_view name) {
  const Attribute* const row = find(name);
  if (!row) return Role::decides;
  if (row->role != Role::layout) return row->role;
  if (!row->through.empty() && settled.count(std::string(row->through)) == 0) return Role::decides;
  return row->rounds ? Role::arithmetic : Role::layout;
}

Facts of_role(const Facts& facts, Role role) {
  const Facts known = settled(facts);
  Facts made;
  for (const auto& [key, value] : known) {
    if (role_in(known, key) == role) made.emplace(key, value);
  }
  return made;
}

std::vector<Difference> differences(const std::vector<const Facts*>& runs) {
  std::vector<Facts> known;
  std::set<std::string> names;
  for (const Facts* const run : runs) {
    known.push_back(settled(*run));
    for (const auto& [key, value] : known.back()) names.insert(key);
  }
  std::vector<Difference> differing;
  for (const std::string& name : in_order({names.begin(), names.end()})) {
    Difference one{name, Role::identity, {}};
    bool differ = false;
    for (const Facts& facts : known) {
      const auto found = facts.find(name);
      one.values.push_back(found == facts.end() ? "" : found->second);
      one.role = std::min(one.role, role_in(facts, name));
      differ = differ || one.values.back() != one.values.front();
    }
    if (differ && one.role < Role::measurement) differing.push_back(std::move(one));
  }
  return differing;
}

std::vector<Difference> of_role(const std::vector<Difference>& differences, Role role) {
  std::vector<Difference> some;
  std::ranges::copy_if(differences, std::back_inserter(some), [&](const Difference& one) { return one.role == role; });
  return some;
}

Bits expected_bits(const std::vector<Difference>& differences) {
  Bits bits = Bits::same;
  for (const Difference& one : differences) {
    if (one.role == Role::decides) return Bits::other_training;
    if (one.role == Role::arithmetic) bits = Bits::other_arithmetic;
  }
  return bits;
}

std::string_view name(Bits bits) {
  static constexpr std::array<std::string_view, 3> kNames = {"the same bits", "another arithmetic", "another training"};
  return kNames[static_cast<std::size_t>(bits)];
}

namespace {

/// A value in a sentence: for a checksum the first digits, which distinguish it from others.
std::string shown(const std::string& value) {
  constexpr std::size_t kChecksum = 32, kEnough = 12;
  if (value.empty()) return "not recorded";
  const bool checksum = value.size() >= kChecksum && value.find_first_not_of("0123456789abcdef") == std::string::npos;
  return checksum ? value.substr(0, kEnough) : value;
}

}  // namespace

std::string text(const std::vector<Difference>& some, std::size_t most) {
  constexpr std::size_t kValues = 3;
  std::vector<std::string> parts;
  for (const Difference& one : some) {
    std::vector<std::string> values;
    for (const std::string& value : one.values) {
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    std::string part = std::string(label(one.name)) + " (";
    for (std::size_t i = 0; i < values.size() && i < kValues; ++i) {
      const bool last = i + 1 == values.size();
      part += (i == 0 ? "" : last ? " and " : ", ") + shown(values[i]);
    }
    if (values.size() > kValues) part += " and " + std::to_string(values.size() - kValues) + " more";
    parts.push_back(part + ")");
  }
  if (parts.size() > most) {
    const std::size_t rest = parts.size() - most + 1;
    parts.resize(most - 1);
    parts.push_back(std::to_string(rest) + " more");
  }
  return with_and(parts);
}

std::string reason(const std::vector<Difference>& differences) {
  switch (expected_bits(differences)) {
    case Bits::same:
      return "";
    case Bits::other_arithmetic:
      return "are not expected to be the same bits, because they differ in " +
             text(of_role(differences, Role::arithmetic));
    case Bits::other_training:
      return "train different things: they differ in " + text(of_role(differences, Role::decides));
  }
  return "";
}

std::string verdict_on_bits(const Facts& a, const Facts& b) {
  const std::string of_a = value(a, "state_digest"), of_b = value(b, "state_digest");
  const std::string why = reason(differences({&a, &b}));
  const std::string they = why.empty() ? "" : "they " + why;
  if (of_a.empty() || of_b.empty()) return they;
  if (of_a == of_b) return "the same bits at the end" + (they.empty() ? "" : ", though " + they);
  if (they.empty()) return "a fault: one training in one arithmetic ends with different bits (zs-verify finds where)";
  return "other bits at the end: " + they;
}

}  // namespace zs::attribute
