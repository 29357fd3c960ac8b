// SPDX-License-Identifier: Apache-2.0
#include "rollout/answer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <ranges>

#include "base/folder.hpp"
#include "probefile/measure.hpp"
#include "probefile/writer.hpp"

namespace zs::rollout {
namespace {

using Json = nlohmann::ordered_json;

struct Weight {
  std::int64_t rows, columns;
  std::vector<float> values;
  float& at(std::int64_t row, std::int64_t column) { return values[static_cast<std::size_t>(row * columns + column)]; }
};
using Weights = std::map<std::string, Weight>;  // by name, with its place

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U, x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// A digest of numbers in whatever order.
std::uint64_t unordered(const std::vector<float>& values) {
  std::uint64_t sum = 0;
  for (const float value : values) sum += mixed(std::bit_cast<std::uint32_t>(value));
  return sum;
}

/// A digest of the lines of a weight in whatever order: of its rows, or of its columns.
std::uint64_t unordered_lines(Weight& weight, bool by_row) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < (by_row ? weight.rows : weight.columns); ++i) {
    std::uint64_t line = 0;
    for (std::int64_t j = 0; j < (by_row ? weight.columns : weight.rows); ++j)
      line = line * 31 + std::bit_cast<std::uint32_t>(by_row ? weight.at(i, j) : weight.at(j, i));
    sum += mixed(line);
  }
  return sum;
}

std::string rows_of(Weights weights) {
  std::vector<probefile::Held> parts;
  for (const auto& [name, weight] : weights)
    parts.push_back(
        {.name = name,
         .shape = {weight.rows, weight.columns},
         .values = {reinterpret_cast<const char*>(weight.values.data()), weight.values.size() * sizeof(float)}});
  Json rows = Json::parse("[" + probefile::rows(parts, 1) + "]");
  for (Json& row : rows) {
    Weight& weight = weights.at(row["name"]);
    row["set"] = fmt::format("{:016x}", unordered(weight.values));
    row["rows"] = fmt::format("{:016x}", unordered_lines(weight, true));
    row["cols"] = fmt::format("{:016x}", unordered_lines(weight, false));
  }
  const std::string text = rows.dump();
  return text.substr(1, text.size() - 2);
}

const std::string kQ = "param/a.q_proj", kK = "param/a.k_proj", kV = "param/a.v_proj", kGate = "param/m.gate_proj",
                  kUp = "param/m.up_proj", kDown = "param/m.down_proj";

/// Three versions of a trainer's weights.
std::vector<Weights> trained() {
  std::mt19937 random(3);
  std::normal_distribution<float> draw;
  std::vector<Weights> versions(1);
  for (const auto& [name, rows] : {std::pair{kQ, 32}, {kK, 16}, {kV, 16}, {kGate, 24}, {kUp, 24}, {kDown, 32}}) {
    Weight made{rows, 32, std::vector<float>(static_cast<std::size_t>(rows) * 32)};
    for (float& value : made.values) value = 0.1F * draw(random);
    versions[0][name] = made;
  }
  for (int version = 1; version < 3; ++version) {
    versions.push_back(versions.back());
    for (auto& [name, weight] : versions.back()) {
      for (float& value : weight.values) value += 1e-3F * draw(random);
    }
  }
  return versions;
}

void write(const std::string& folder, const std::string& layout, const std::vector<Weights>& versions) {
  probefile::Writer writer(folder, {.layout = layout, .framework = "weights", .library = "x"}, 0);
  writer.start(0, 0, rows_of(versions[0]));
  for (std::size_t version = 1; version < versions.size(); ++version)
    writer.only(static_cast<std::int64_t>(version), {"param", "buffer", "base", "cast"}, rows_of(versions[version]));
  writer.end(std::ssize(versions) - 1, 1, "whole");
}

using History = std::vector<Weights>;
struct Fault {
  std::string name, line, text;  ///< what the line of the answer begins with
  std::function<void(Weights& held, std::size_t version, const History& history)> apply;
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> made = {
      {"none", "verdict", "exact", [](Weights&, std::size_t, const History&) {}},
      {"never", "relation", "never delivered: bits of version 0",
       [](Weights& held, std::size_t, const History& old) { held = old[0]; }},
      {"stale", "relation", "stale by 1",
       [](Weights& held, std::size_t version, const History& old) { held = old[version ? version - 1 : 0]; }},
      {"one", "relation", "stale by 1: m.down_proj",
       [](Weights& held, std::size_t version, const History& old) {
         held[kDown] = old[version ? version - 1 : 0].at(kDown);
       }},
      {"transposed", "relation", "transposed: a.q_proj",
       [](Weights& held, std::size_t, const History&) {
         Weight& weight = held[kQ];
         Weight turned = weight;
         for (std::int64_t i = 0; i < 32; ++i) {
           for (std::int64_t j = 0; j < 32; ++j) turned.at(j, i) = weight.at(i, j);
         }
         weight = turned;
       }},
      {"rows", "relation", "its rows are in another order: m.down_proj",
       [](Weights& held, std::size_t, const History&) {
         Weight& weight = held[kDown];
         std::swap_ranges(&weight.at(0, 0), &weight.at(1, 0), &weight.at(30, 0));
       }},
      {"columns", "relation", "its columns are in another order: m.down_proj",
       [](Weights& held, std::size_t, const History&) {
         for (std::int64_t i = 0; i < 32; ++i) std::swap(held[kDown].at(i, 0), held[kDown].at(i, 7));
       }},
      {"elements", "relation", "its elements are in another order: m.down_proj",
       [](Weights& held, std::size_t, const History&) { std::ranges::reverse(held[kDown].values); }},
      {"other", "relation", "holds the bytes of a.v_proj: a.k_proj",
       [](Weights& held, std::size_t, const History&) { held[kK] = held[kV]; }},
      {"exchanged", "relation", "exchanged: a.k_proj with a.v_proj",
       [](Weights& held, std::size_t, const History&) { std::swap(held[kK], held[kV]); }},
      {"interleaved", "relation", "rows of gate_proj, up_proj are exchanged",
       [](Weights& held, std::size_t, const History&) {
         Weight &gate = held[kGate], &up = held[kUp];
         for (std::int64_t i = 0; i < 24; i += 2) std::swap_ranges(&gate.at(i, 0), &gate.at(i, 0) + 32, &up.at(i, 0));
       }},
      {"zero", "relation", "is zero: m.down_proj",
       [](Weights& held, std::size_t, const History&) { std::ranges::fill(held[kDown].values, 0.0F); }},
      {"scaled", "relation", "scaled: x 2: m.down_proj",
       [](Weights& held, std::size_t, const History&) {
         for (float& value : held[kDown].values) value *= 2;
       }},
      {"half", "relation", "a part of it has the bits of version 0: m.down_proj (rows 0 to 15 of 32)",
       [](Weights& held, std::size_t version, const History& old) {
         if (version)
           std::ranges::copy(old[version - 1].at(kDown).values | std::views::take(512), held[kDown].values.begin());
       }},
      {"noise", "relation", "matches no version",
       [](Weights& held, std::size_t, const History&) {
         std::mt19937 random(1);
         std::normal_distribution<float> draw;
         for (float& value : held[kDown].values) value = 0.1F * draw(random);
       }},
      {"nan", "relation", "holds values that are not finite",
       [](Weights& held, std::size_t, const History&) { held[kDown].values[5] = NAN; }},
      {"lost", "not compared", "version 0: m.down_proj is not in the generator's",
       [](Weights& held, std::size_t, const History&) { held.erase(kDown); }},
      {"more", "not compared", "version 0: x is only in the generator's",
       [](Weights& held, std::size_t, const History&) { held["param/x"] = held[kQ]; }}};
  return made;
}

TEST_CASE("weights: what the generator holds is told by how it differs from the trainer's") {
  const TemporaryFolder folder;
  const std::vector<Weights> history = trained();
  write(folder.file("trainer"), "trainer", history);
  CHECK_FALSE(of_generator(folder.file("trainer")));
  for (const auto& [name, line, text, apply] : faults()) {
    CAPTURE(name);
    std::vector<Weights> held = history;
    for (std::size_t version = 0; version < held.size(); ++version) apply(held[version], version, history);
    write(folder.file(name), "generator", held);
    CHECK(of_generator(folder.file(name)));
    const Answer found = compare_weights(folder.file("trainer"), folder.file(name));
    const std::string said = compare::line_of(found.lines, {line});
    CAPTURE(said);
    CHECK(said.substr(0, text.size()) == text);
    CHECK((found.verdict == compare::Verdict::exact) == (name == "none"));
  }
}

TEST_CASE("weights: a version of one side alone is not compared, and the trainer's between two syncs are") {
  const TemporaryFolder folder;
  const std::vector<Weights> history = trained(), fewer(history.begin(), history.begin() + 2);
  write(folder.file("long"), "trainer", history), write(folder.file("short"), "trainer", fewer);
  write(folder.file("all"), "generator", history), write(folder.file("behind"), "generator", fewer);
  const auto alone = [&](const char* trainer, const char* generator) {
    return compare::line_of(compare_weights(folder.file(trainer), folder.file(generator)).lines, {"not compared"});
  };
  CHECK(alone("short", "all") == "version 2 is only in the generator's");
  CHECK(alone("long", "behind") == "version 2 is only in the trainer's");
  CHECK(alone("long", "all") == "");
}

}  // namespace
}  // namespace zs::rollout
