// SPDX-License-Identifier: Apache-2.0
// Random edits of the real recordings in tests/data/probe. ZS_EDITS_SEED=N chooses others, ZS_EDITS=N how many of each
// kind, ZS_SHOW_EDITS=1 lists all kinds.
#include "compare/edits_test.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "probe/answer.hpp"

namespace zs::probe {
namespace {

namespace fs = std::filesystem;
using compare::Files;
using compare::Json;
using compare::Operation;
using compare::Spot;
using compare::Verdict;

constexpr const char* kData = "tests/data/probe/";

Files read_files(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl") continue;
    std::istringstream text(Input(entry.path().string()).read_all());
    for (std::string line; std::getline(text, line);)
      files[entry.path().filename().string()].emplace_back(Json::parse(line));
  }
  return files;
}

void write_files(const std::string& folder, const Files& files) {
  for (const auto& [name, lines] : files) {
    std::string text;
    for (const compare::Line& line : lines) text += line.text() + "\n";
    std::ofstream(folder + "/" + name, std::ios::binary) << text;  // not synced, as write_file() does
  }
}

/// Another recording of the same training.
void rename(Files& files) {
  std::uint64_t id = 0xabc0;
  for (auto& [name, lines] : files) lines.front().change()["id"] = fmt::format("{:016x}", id++);
}

/// The verdict, or the error's text.
struct Said {
  Verdict verdict = Verdict::failed;
  std::string text;
};

Said judged(const std::string& a, const std::string& b) {
  try {
    const Answer answer = compare(a, b, {});
    return {answer.verdict, std::string(compare::name(answer.verdict))};
  } catch (const Error& error) {
    return {Verdict::failed, error.what()};
  }
}

/// What may differ unnoticed: where the kind contains `kind`, the operation begins with `operation`, and, if `between`,
/// layouts differ.
struct Allowed {
  std::string kind, operation, reason;
  bool between = false;
};
const std::vector<Allowed>& allowed() {
  static const std::string kSum = "a tensor is the sum of its parts, whichever rank has them",
                           kSet = "the order of a list whose entries have names says nothing",
                           kCut = "between layouts a micro-batch's gradient counts if its sum differs",
                           kOther = "on other ranks and micro-batches it is of other samples",
                           kHow = "how an optimizer computes, not what", kTold = "the answer says it";
  static const std::vector<Allowed> kAllowed{
      {"zs_probe /id", "changed", "another recording has another id"},
      {"zs_probe /id", "moved", "another recording has another id"},
      {"zs_probe /torch", "changed", kTold},
      {"zs_probe /framework", "changed", kTold},
      {"zs_probe /layout", "changed", kTold},
      {"end /since", "", "it says nothing without a stride"},
      {"end /every", "null", "a stride of 1 and none are one"},
      {"/targets[]", "element", "a count that is not known says nothing"},
      {"/counters/", "element dropped", "the other rank lists it too"},
      {"/tensors[", "element swapped", kSet},
      {"/locals[]", "element swapped", kSet},
      {"/batch[][]", "element swapped", kSet},
      {"/params[]", "element swapped", kSet},
      {"/counters/", "element swapped", kSet},
      {"/squares", "changed by one ulp", "a sum's last bits depend on the order of its terms"},
      {"/sketch", "changed by one ulp", "a sum's last bits depend on the order of its terms"},
      {"/tensors[", "moved to another rank", kSum},
      {"/tensors[", "element moved to another rank", kSum},
      {"start", "line swapped with that of another rank", kSum},
      {"/batch[]", "element moved to another rank", "a step's samples count, whichever rank reads them"},
      {"/batch[]", "moved to another rank", "a step's samples count, whichever rank reads them"},
      {"/groups[]/foreach", "", kHow},
      {"/groups[]/fused", "", kHow},
      {"/groups[]/capturable", "", kHow},
      {"/groups[]/differentiable", "", kHow},
      {"/rng/python", "", "programs draw names and ports from Python's generator"},
      {"step", "line swapped with that of another rank", kSum, true},
      {"end /every", "changed", "layouts are recorded at other strides", true},
      {"/batch[]", "element swapped", "a step's samples count, whatever micro-batch they are in", true},
      {"/locals[]", "", kCut, true},
      {"step /loss", "", kOther, true},
      {"step /rng/", "", "other ranks have other generators", true},
      {"step /targets", "", kOther, true},
  };
  return kAllowed;
}

const Allowed* reason_for(const std::string& kind, const std::string& operation, bool between) {
  for (const Allowed& row : allowed()) {
    if (kind.find(row.kind) != std::string::npos && operation.starts_with(row.operation) && (between || !row.between))
      return &row;
  }
  return nullptr;
}

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::stoull(text) : otherwise;
}

/// The edits of one recording, compared with `reference`, which it equals exactly or up to rounding.
class Edits {
 public:
  Edits(const std::string& reference, const std::string& edited, std::uint64_t seed)
      : title_(reference == edited ? edited : reference + " and " + edited),
        reference_(read_files(kData + reference)),
        edited_(read_files(kData + edited)),
        seed_(seed) {
    rename(edited_);
    for (const char* const side : {"a", "b"}) fs::create_directories(folder_.file(side));
    write_files(folder_.file("a"), reference_);
    write_files(folder_.file("b"), edited_);
    usual_ = judged(folder_.file("a"), folder_.file("b"));
    CHECK_MESSAGE(usual_.verdict == (reference == edited ? Verdict::exact : Verdict::rounding),
                  title_ << ": " << usual_.text);
  }

  /// `most` edits of each kind of place and operation.
  void run(std::uint64_t most) {
    for (const Operation& operation : compare::operations()) {
      std::map<std::string, std::vector<Spot>> kinds;
      for (Spot& spot : compare::spots(edited_, operation.on)) kinds[spot.kind].push_back(std::move(spot));
      for (auto& [kind, spots] : kinds) {
        compare::Random random(seed_ ^ std::hash<std::string>()(title_ + kind + operation.name));
        std::shuffle(spots.begin(), spots.end(), random);
        std::uint64_t made = 0;
        for (const Spot& spot : spots) {
          if (made == most) break;
          made += one(operation, spot, random);
        }
      }
    }
  }

  struct Count {
    int edits = 0, passed = 0;
    std::string example;
  };
  const std::map<std::string, Count>& counts() const { return counts_; }
  const std::string& title() const { return title_; }
  int all() const { return all_; }
  const std::set<const Allowed*>& used() const { return used_; }

 private:
  bool one(const Operation& operation, const Spot& spot, compare::Random& random) {
    Files files = edited_;
    const std::uint64_t state = random();
    compare::Random mine(state);
    if (!operation.apply(files, spot, mine)) return false;
    const bool cross = usual_.verdict == Verdict::rounding;
    // Between layouts bits differ: a digest that is another says nothing new.
    if (cross && (operation.little || spot.kind.ends_with("/digest"))) return false;
    write_files(folder_.file("b"), files);
    if (operation.both) {
      Files other = reference_;
      compare::Random same(state);
      if (!other.contains(spot.file) || spot.line >= other[spot.file].size() || !operation.apply(other, spot, same))
        return false;
      write_files(folder_.file("a"), other);
    }
    const Said said = judged(folder_.file("a"), folder_.file("b"));
    if (operation.both) write_files(folder_.file("a"), reference_);
    // A digest says whether bits differ, not by how much.
    const bool little = operation.little || spot.kind.ends_with("/digest");
    const bool noticed = said.verdict > Verdict::rounding || (little && said.verdict == Verdict::rounding);
    ++all_;
    const Allowed* const why = reason_for(spot.kind, operation.name, cross);
    if (!noticed && why) used_.insert(why);
    Count& count = counts_[spot.kind + ": " + operation.name];
    ++count.edits;
    if (!noticed && !why) {
      ++count.passed;
      if (count.example.empty())
        count.example = fmt::format("{} line {} {}: {} is now {}: {}", spot.file, spot.line + 1, spot.path.to_string(),
                                    cut(value(edited_, spot).dump()), cut(value(files, spot).dump()), said.text);
    }
    return true;
  }

  static std::string cut(const std::string& text) { return text.size() > 60 ? text.substr(0, 57) + "..." : text; }
  static Json value(const Files& files, const Spot& spot) {
    const auto& lines = files.at(spot.file);
    if (spot.line >= lines.size() || !lines[spot.line].json().contains(spot.path)) return "gone";
    return lines[spot.line].json().at(spot.path);
  }

  std::string title_;
  Files reference_, edited_;
  std::uint64_t seed_;
  TemporaryFolder folder_;
  Said usual_;
  std::map<std::string, Count> counts_;
  std::set<const Allowed*> used_;
  int all_ = 0;
};

}  // namespace

TEST_CASE("edits: each edit of a real recording is noticed") {
  const std::uint64_t seed = number_of("ZS_EDITS_SEED", 1), most = number_of("ZS_EDITS", 2);
  const bool show = std::getenv("ZS_SHOW_EDITS") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  int edit_count = 0, passed = 0;
  std::set<const Allowed*> used;
  for (const auto& [reference, edited] : {std::pair{"whole", "whole"}, {"sharded", "sharded"}, {"whole", "sharded"}}) {
    Edits edits(reference, edited, seed);
    edits.run(most);
    edit_count += edits.all();
    used.insert(edits.used().begin(), edits.used().end());
    for (const auto& [kind, count] : edits.counts()) {
      passed += count.passed;
      if (count.passed > 0 || show)
        MESSAGE(fmt::format("{}: {}: {} of {} unnoticed; {}", edits.title(), kind, count.passed, count.edits,
                            count.example));
    }
  }
  if (seed == 1) {  // a row that excuses nothing goes
    for (const Allowed& row : allowed())
      CHECK_MESSAGE(used.contains(&row), "nothing needs the excuse of " << row.kind << ", " << row.operation);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  MESSAGE(fmt::format("{} edits, {} unnoticed, seed {}, {:.1f} s", edit_count, passed, seed, seconds.count()));
  CHECK_MESSAGE(passed == 0, "unnoticed edits, seed " << seed);
}

}  // namespace zs::probe
