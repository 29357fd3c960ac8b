// SPDX-License-Identifier: Apache-2.0
// For tests: pairs of recordings that are equal, or differ in one thing: a side lacks something, both
// do, a file is torn, a line is there twice, a file is of another rank.
#pragma once
#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"
#include "compare/pairs_test.hpp"

namespace zs::probe {

using compare::anywhere;
using compare::below;
using compare::Random;

/// A recording as one thinks of it: of each rank the lines, the first is the header, then its start, the last the end.
struct Recording {
  using Json = nlohmann::ordered_json;
  std::vector<std::vector<Json>> ranks;
  std::vector<std::string> tails;  ///< by rank, in place of the last line where it is not empty

  Json& header(std::size_t rank = 0) { return ranks[rank].front(); }
  Json& end(std::size_t rank = 0) { return ranks[rank].back(); }
  std::size_t steps() const { return ranks.front().size() - 3; }
  /// A tensor of a step, both from 0.
  Json& tensor(std::size_t rank, std::size_t step, std::size_t number) {
    return ranks[rank][2 + step]["tensors"][number];
  }

  void write(const std::string& folder) const {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::string text;
      for (const Json& line : ranks[rank]) {
        const bool cut = rank < tails.size() && !tails[rank].empty() && &line == &ranks[rank].back();
        text += cut ? tails[rank] : line.dump() + "\n";
      }
      std::ofstream(folder + "/rank-" + std::to_string(rank) + ".jsonl", std::ios::binary) << text;  // not synced
    }
  }
};

struct ProbePair {
  std::string kind;
  Recording a, b;
  bool equal = false;
};

/// `cut`: each tensor lies on all ranks in parts, else each rank has all of it. The values depend on `seed` alone, so
/// that the same training may be cut otherwise.
inline Recording recording(std::uint64_t seed, std::size_t ranks, bool cut, std::uint64_t id) {
  using Json = Recording::Json;
  Random random(seed);
  const std::size_t steps = 3 + below(random, 5);
  Recording made;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    made.ranks.push_back({Json{{"zs_probe", 2},
                               {"rank", rank},
                               {"world_size", ranks},
                               {"torch", "2.11.0"},
                               {"id", fmt::format("{:016x}", id * 8 + rank)},
                               {"layout", "plain"},
                               {"framework", ""},
                               {"tied", Json::object()},
                               {"frozen", Json::array()},
                               {"unseen", Json::array()}},
                          Json{{"start", 0}, {"counted", nullptr}, {"tensors", Json::array()}}});
  }
  for (std::size_t step = 0; step <= steps; ++step) {
    const double loss = 1 + static_cast<double>(below(random, 1000)) / 1000;
    for (auto& lines : made.ranks) {
      if (step > 0)
        lines.push_back(
            {{"step", step},
             {"loss", loss},
             {"losses", Json::array({loss})},
             {"scalars", {{"norm", 2 * loss}}},
             {"groups", Json::array({{{"lr", 0.5}, {"amsgrad", false}, {"params", {"w", "b"}}, {"optimizer", "SGD"}}})},
             {"counters", {{std::to_string(step), {"w", "b"}}}},
             {"batch", Json::array()},
             {"locals", Json::array()},
             {"tensors", Json::array()},
             {"values", nullptr}});
    }
    for (const std::string name : {"grad/w", "grad/b", "param/w", "param/b"}) {
      if (step == 0 && name.starts_with("grad/")) continue;
      const std::int64_t size = name.ends_with('w') ? 12 : 6;
      std::vector<std::uint64_t> digests;
      for (int third = 0; third < 3; ++third) digests.push_back(random());
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        // The parts are thirds, so that 1 and 3 ranks have all of them.
        const bool part = cut && ranks == 3;
        const std::vector<double> sums(8, part ? 0.25 * static_cast<double>(rank + 1) : 1.5);
        const std::string sketch(reinterpret_cast<const char*>(sums.data()), 64);
        const std::uint64_t digest = part ? digests[rank] : digests[0] + digests[1] + digests[2];
        made.ranks[rank].back()["tensors"].push_back({{"name", name},
                                                      {"dtype", "F32"},
                                                      {"of", size},
                                                      {"shape", {size / 3, 3}},
                                                      {"begin", part ? static_cast<std::int64_t>(rank) * size / 3 : 0},
                                                      {"count", part ? size / 3 : size},
                                                      {"digest", fmt::format("{:016x}", digest)},
                                                      {"squares", part ? 1.0 : 3.0},
                                                      {"sketch", to_base64(sketch)}});
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank)
    made.ranks[rank].push_back(
        {{"end", steps}, {"rank", rank}, {"lines", steps}, {"every", 1}, {"since", 0}, {"how", "whole"}});
  return made;
}

/// Leaves the steps that a stride records, as the recorder would have.
inline void thin(Recording& recording, std::size_t every) {
  for (auto& lines : recording.ranks) {
    std::erase_if(lines, [&](const Recording::Json& line) {
      if (!line.contains("step")) return false;
      const auto step = line["step"].get<std::size_t>();
      return step != 1 && step % every != 0;
    });
    lines.back()["lines"] = lines.size() - 3, lines.back()["every"] = every;
  }
}

/// `count` pairs of each kind.
inline std::vector<ProbePair> probe_pairs(std::uint64_t seed, int count) {
  using Json = Recording::Json;
  Random random(seed);
  std::vector<ProbePair> pairs;
  using Change = std::function<void(Recording&, Recording&)>;
  const auto add = [&](const std::string& kind, bool equal, const Change& change) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t training = random();
      const std::size_t ranks = 1 + 2 * below(random, 2);
      const bool cut = below(random, 2) == 1;
      ProbePair pair{kind, recording(training, ranks, cut, 1), recording(training, ranks, cut, 2), equal};
      change(pair.a, pair.b);
      pairs.push_back(std::move(pair));
    }
  };
  const auto any_rank = [&](const Recording& recording) { return below(random, recording.ranks.size()); };
  const auto any_step = [&](const Recording& recording) { return anywhere(random, recording.steps()); };
  const auto tensors = [](Json& line, const std::function<bool(const Json&)>& goes) {
    Json left = Json::array();
    for (const Json& tensor : line["tensors"]) {
      if (!goes(tensor)) left.push_back(tensor);
    }
    line["tensors"] = left;
  };
  const auto is_gradient = [](const Json& tensor) { return tensor["name"].get<std::string>().starts_with("grad/"); };
  /// The same change on every rank of a step.
  const auto on_ranks = [&](Recording& recording, std::size_t step, const std::function<void(Json&)>& change) {
    for (auto& lines : recording.ranks) change(lines[2 + step]);
  };

  add("equal: the same values", true, [](Recording&, Recording&) {});
  add("equal: no losses on either side", true, [&](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) {
      for (std::size_t step = 0; step < side->steps(); ++step)
        on_ranks(*side, step, [](Json& line) { line["loss"] = nullptr; });
    }
  });
  add("equal: a coarser stride", true, [](Recording&, Recording& b) { thin(b, 2); });
  add("equal: two strides", true, [](Recording& a, Recording& b) { thin(a, 2), thin(b, 3); });
  for (int i = 0; i < count; ++i) {
    const std::uint64_t training = random();
    pairs.push_back(
        {"equal: whole and cut over ranks", recording(training, 1, false, 1), recording(training, 3, true, 2), true});
    pairs.push_back({"equal: parameters at the end of a coarse stride", recording(training, 1, false, 1),
                     recording(training, 1, false, 2), true});
    Recording& coarse = pairs.back().b;
    const Json last = coarse.ranks[0][coarse.steps() + 1];
    thin(coarse, 100);
    coarse.ranks[0].insert(coarse.ranks[0].end() - 1, last);
    Json& closing = coarse.ranks[0][3];
    closing["only"] = {"param"};
    closing["loss"] = nullptr;
    tensors(closing, is_gradient);
    coarse.end()["lines"] = 2;
  }

  add("one side lacks the gradients", false, [&](Recording&, Recording& b) {
    for (std::size_t step = 0; step < b.steps(); ++step)
      on_ranks(b, step, [&](Json& line) { tensors(line, is_gradient); });
  });
  add("one side lacks the gradients of a step", false,
      [&](Recording&, Recording& b) { on_ranks(b, any_step(b), [&](Json& line) { tensors(line, is_gradient); }); });
  add("one side lacks a tensor at a step", false, [&](Recording&, Recording& b) {
    const std::size_t number = below(random, 4);
    on_ranks(b, any_step(b), [&](Json& line) { line["tensors"].erase(number); });
  });
  add("one side lacks the losses", false, [&](Recording& a, Recording& b) {
    Recording& side = below(random, 2) ? a : b;
    for (std::size_t step = 0; step < side.steps(); ++step)
      on_ranks(side, step, [](Json& line) { line["loss"] = nullptr; });
  });
  add("one side lacks the loss of a rank at a step", false,
      [&](Recording&, Recording& b) { b.ranks[any_rank(b)][2 + any_step(b)]["loss"] = nullptr; });
  add("one side lacks a step", false, [&](Recording&, Recording& b) {
    const auto step = static_cast<std::ptrdiff_t>(2 + any_step(b));
    for (auto& lines : b.ranks) lines.erase(lines.begin() + step);
  });
  add("one side lacks a step, and its count says so too", false, [&](Recording&, Recording& b) {
    const auto step = static_cast<std::ptrdiff_t>(2 + any_step(b));
    for (auto& lines : b.ranks) lines.erase(lines.begin() + step), lines.back()["lines"] = lines.size() - 3;
  });
  add("one side lacks the last steps", false, [&](Recording&, Recording& b) {
    for (auto& lines : b.ranks) {
      lines.erase(lines.end() - 2);
      lines.back()["lines"] = lines.back()["end"] = lines.size() - 3;
    }
  });
  add("one side lacks a step on one rank", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, false, 1), b = recording(training, 3, false, 2);
    auto& lines = b.ranks[any_rank(b)];
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(2 + any_step(b)));
    lines.back()["lines"] = lines.size() - 3;
  });
  add("one side lacks the end of a rank", false, [&](Recording&, Recording& b) { b.ranks[any_rank(b)].pop_back(); });
  add("one side lacks a part of a tensor", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, true, 1), b = recording(training, 3, true, 2);
    Json& tensor = b.tensor(any_rank(b), any_step(b), below(random, 4));
    tensor["count"] = 0, tensor["digest"] = "0000000000000000", tensor["squares"] = 0.0;
  });
  add("both lack a step", false, [&](Recording& a, Recording& b) {
    const auto step = static_cast<std::ptrdiff_t>(2 + any_step(b));
    for (Recording* const side : {&a, &b}) {
      for (auto& lines : side->ranks) lines.erase(lines.begin() + step);
    }
  });
  add("both lack the end", false, [&](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) side->ranks[below(random, side->ranks.size())].pop_back();
  });
  add("both lack a part of a tensor", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, true, 1), b = recording(training, 3, true, 2);
    const std::size_t rank = any_rank(b), step = any_step(b), number = below(random, 4);
    for (Recording* const side : {&a, &b}) side->tensor(rank, step, number)["count"] = 0;
  });
  add("both lack all tensors", false, [&](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) {
      for (std::size_t step = 0; step < side->steps(); ++step)
        on_ranks(*side, step, [](Json& line) { line["tensors"] = Json::array(); });
    }
  });
  const auto tear = [&](Recording& recording) {  // as a full disk or a kill does
    const std::size_t rank = any_rank(recording);
    auto& lines = recording.ranks[rank];
    lines.resize(3 + below(random, lines.size() - 2));
    const std::string whole = lines.back().dump();
    recording.tails.resize(recording.ranks.size());
    recording.tails[rank] = whole.substr(0, 1 + below(random, whole.size()));
  };
  add("torn in one", false, [&](Recording&, Recording& b) { tear(b); });
  add("torn in both", false, [&](Recording& a, Recording& b) { tear(a), tear(b); });
  add("torn, and other values behind", false, [&](Recording&, Recording& b) {
    tear(b);
    b.tensor(0, 0, 0)["digest"] = "0123456789abcdef";
  });
  add("a step twice", false, [&](Recording&, Recording& b) {
    auto& lines = b.ranks[any_rank(b)];
    const std::size_t step = 2 + anywhere(random, lines.size() - 3);
    const Json copy = lines[step];
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(step), copy);
    if (below(random, 2)) lines.back()["lines"] = lines.size() - 3;
  });
  add("a step twice in both", false, [&](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) {
      for (auto& lines : side->ranks) lines.insert(lines.begin() + 2, Json(lines[2]));
    }
  });
  add("a tensor twice", false, [&](Recording&, Recording& b) {
    Json& tensors = b.ranks[any_rank(b)][2 + any_step(b)]["tensors"];
    tensors.push_back(Json(tensors[below(random, 4)]));
  });
  add("an end twice", false, [&](Recording&, Recording& b) {
    auto& lines = b.ranks[any_rank(b)];
    lines.push_back(Json(lines.back()));
  });
  add("steps in another order", false, [&](Recording&, Recording& b) {
    auto& lines = b.ranks[any_rank(b)];
    std::swap(lines[2], lines[3]);
  });
  add("a file of another rank", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, true, 1), b = recording(training, 3, true, 2);
    b.ranks[1] = b.ranks[2];
  });
  add("a header of another rank", false, [](Recording&, Recording& b) { b.header()["rank"] = 5; });
  add("an end of another rank", false, [](Recording&, Recording& b) { b.end()["rank"] = 5; });
  add("an end of another step", false, [&](Recording&, Recording& b) {
    Json& end = b.end(any_rank(b))["end"];
    end = end.get<std::int64_t>() + (below(random, 2) ? 1 : -1);
  });
  add("another number of ranks", false, [](Recording&, Recording& b) { b.header()["world_size"] = 2; });
  add("a file of a rank more", false, [](Recording&, Recording& b) { b.ranks.push_back(b.ranks.back()); });
  add("a line that is not known", false,
      [&](Recording&, Recording& b) { b.ranks[any_rank(b)][2 + any_step(b)]["produced"] = 1; });
  add("a tensor with what is not known", false,
      [&](Recording&, Recording& b) { b.tensor(any_rank(b), any_step(b), 0)["sketched"] = 1; });
  add("a line of something else", false, [&](Recording&, Recording& b) {
    auto& lines = b.ranks[any_rank(b)];
    lines.insert(lines.begin() + 1, Json{{"event", "checkpoint"}});
  });
  add("a copy", false, [](Recording& a, Recording& b) { b = a; });
  add("a copy that names no recording", false, [](Recording& a, Recording& b) {
    for (auto& lines : a.ranks) lines.front().erase("id");
    b = a;
  });

  add("one bit of a digest", false, [&](Recording&, Recording& b) {
    const std::size_t number = below(random, 4);
    on_ranks(b, any_step(b), [&](Json& line) {
      std::string digest = line["tensors"][number]["digest"];
      digest.back() = digest.back() == '0' ? '1' : '0';
      line["tensors"][number]["digest"] = digest;
    });
  });
  add("replicas that differ", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, false, 1), b = recording(training, 3, false, 2);
    b.tensor(any_rank(b), any_step(b), below(random, 4))["digest"] = "0123456789abcdef";
  });
  add("replicas that differ alike in both", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, false, 1);
    a.tensor(any_rank(a), any_step(a), below(random, 4))["digest"] = "0123456789abcdef";
    b = a;
    for (auto& lines : b.ranks) lines.front()["id"] = "x";
  });
  add("another shape", false, [&](Recording&, Recording& b) {
    const std::size_t number = below(random, 4);
    on_ranks(b, any_step(b), [&](Json& line) {
      Json& shape = line["tensors"][number]["shape"];
      shape = {shape[1], shape[0]};
      if (shape[0] == shape[1]) shape = {9};
      if (line["tensors"][number]["of"] == 6) shape = {6};
    });
  });
  add("another type", false, [&](Recording&, Recording& b) {
    const std::size_t number = below(random, 4);
    on_ranks(b, any_step(b), [&](Json& line) { line["tensors"][number]["dtype"] = "F16"; });
  });
  add("one ulp of a loss", false, [&](Recording&, Recording& b) {
    Json& loss = b.ranks[any_rank(b)][2 + any_step(b)]["loss"];
    loss = std::nextafter(loss.get<double>(), 100.0);
  });
  add("a loss of no number in both", false, [&](Recording& a, Recording& b) {
    const std::size_t step = any_step(b);
    const char* const word = below(random, 2) ? "nan" : "inf";
    for (Recording* const side : {&a, &b}) on_ranks(*side, step, [&](Json& line) { line["loss"] = word; });
  });
  add("a loss of no number in one", false,
      [&](Recording& a, Recording& b) { (below(random, 2) ? a : b).ranks[0][2 + any_step(b)]["loss"] = "nan"; });
  add("a norm of no number in one, digests alike", false,
      [&](Recording&, Recording& b) { b.tensor(any_rank(b), any_step(b), below(random, 4))["squares"] = "nan"; });
  add("a norm of no number in both", false, [&](Recording& a, Recording& b) {
    const std::size_t step = any_step(b), number = below(random, 4);
    const char* const word = below(random, 2) ? "nan" : "inf";
    for (Recording* const side : {&a, &b})
      on_ranks(*side, step, [&](Json& line) { line["tensors"][number]["squares"] = word; });
  });
  add("both end by an exception", false, [&](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) {
      for (auto& lines : side->ranks) lines.back()["how"] = "exception ValueError: boom";
    }
  });
  add("what is not seen", false, [](Recording& a, Recording& b) {
    for (Recording* const side : {&a, &b}) side->end()["unseen"] = {"an optimizer"};
  });
  add("another option, of words", false, [&](Recording&, Recording& b) {
    on_ranks(b, any_step(b), [](Json& line) { line["groups"][0]["amsgrad"] = true; });
  });
  add("an option that one side lacks", false, [&](Recording&, Recording& b) {
    on_ranks(b, any_step(b), [](Json& line) { line["groups"][0].erase("amsgrad"); });
  });
  add("another counter of steps", false, [&](Recording&, Recording& b) {
    on_ranks(b, any_step(b), [](Json& line) { line["counters"] = {{"77", {"w", "b"}}}; });
  });
  add("a rate of one rank", false, [&](Recording& a, Recording& b) {
    const std::uint64_t training = random();
    a = recording(training, 3, true, 1), b = recording(training, 3, true, 2);
    b.ranks[1][2 + any_step(b)]["groups"][0]["lr"] = 0.25;
  });
  add("another norm, of the step", false,
      [&](Recording&, Recording& b) { on_ranks(b, any_step(b), [](Json& line) { line["scalars"]["norm"] = 77.0; }); });
  add("another start", false, [&](Recording&, Recording& b) {
    for (auto& lines : b.ranks) lines[1]["tensors"][0]["digest"] = "0123456789abcdef";
  });
  add("no start", false, [](Recording&, Recording& b) {
    for (auto& lines : b.ranks) lines.erase(lines.begin() + 1);
  });
  return pairs;
}

}  // namespace zs::probe
