// SPDX-License-Identifier: Apache-2.0
// Small trainings with AdamW, in float32 on two ranks: a healthy one is consistent, and each fault that is planted into
// its arithmetic is named at its step and place.
#include "probe/checks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <functional>
#include <random>

#include "base/folder.hpp"
#include "probefile/measure.hpp"
#include "probefile/writer.hpp"

namespace zs::probe {
namespace {

using probefile::StepOf;
using Json = nlohmann::ordered_json;
using Numbers = std::vector<float>;
constexpr int kRanks = 2, kMicros = 2, kSteps = 3, kAt = 2;
constexpr double kRate = 0.01, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8, kClip = 0.5;
const std::vector<std::pair<std::string, int>> kParameters{{"w", 96}, {"b", 16}};

/// What a step of the training computes: a fault changes one of these.
struct Fault {
  std::function<void(std::int64_t, std::map<std::string, Numbers>&)> gradients = [](auto, auto&) {};
  std::function<double(std::int64_t, double)> norm = [](auto, double norm) { return norm; };
  std::function<double(std::int64_t)> clip_by = [](auto) { return 1.0; };  ///< another factor
  std::function<double(std::int64_t)> count = [](std::int64_t step) { return static_cast<double>(step); };
  std::function<double(std::int64_t)> rate = [](auto) { return kRate; };  ///< that the update uses
  std::function<void(std::int64_t, std::map<std::string, Numbers>&)> update = [](auto, auto&) {};  ///< behind it
  std::function<void(std::int64_t, int, std::map<std::string, Numbers>&)> replica = [](auto, auto, auto&) {};
  std::function<void(std::int64_t, int, StepOf&)> row = [](auto, auto, auto&) {};
  std::function<Numbers(std::int64_t, const Numbers&, const Numbers&)> copy =
      [](auto, const Numbers&, const Numbers& master) { return master; };  ///< of the parameters before and after
  int steps = kSteps;
  bool copies = false;
  std::string how = "whole";
};

std::string_view bytes_of(const Numbers& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

std::vector<std::uint16_t> halves_of(const Numbers& numbers) {
  std::vector<std::uint16_t> made;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    made.push_back(static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
  }
  return made;
}

/// Trains, and records it in `folder`.
void train(const std::string& folder, const Fault& fault) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::map<std::string, Numbers> parameters, first, second;
  for (const auto& [name, size] : kParameters) {
    for (int i = 0; i < size; ++i) parameters[name].push_back(normal(random));
    first[name].assign(static_cast<std::size_t>(size), 0), second[name] = first[name];
  }
  std::deque<probefile::Writer> writers;
  for (int rank = 0; rank < kRanks; ++rank)
    writers.emplace_back(folder, probefile::Training{.rank = rank, .ranks = kRanks, .layout = "DDP", .library = "x"},
                         0);
  const auto held = [](const std::string& place, const Numbers& numbers, const std::string& name) {
    return probefile::Held{place + name, {static_cast<std::int64_t>(numbers.size())}, 0, bytes_of(numbers)};
  };
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<probefile::Held> start;
    for (const auto& [name, numbers] : parameters) start.push_back(held("param/", numbers, name));
    writers[static_cast<std::size_t>(rank)].start(0, 0, probefile::rows(start, 1));
  }
  for (std::int64_t step = 1; step <= fault.steps; ++step) {
    std::map<std::pair<int, int>, std::map<std::string, Numbers>> locals;
    std::map<std::string, Numbers> gradients;
    double squares = 0;
    for (const auto& [name, size] : kParameters) {
      Numbers& sum = gradients[name];
      sum.assign(static_cast<std::size_t>(size), 0);
      for (int rank = 0; rank < kRanks; ++rank) {
        for (int micro = 0; micro < kMicros; ++micro) {
          Numbers& local = locals[{rank, micro}][name];
          for (int i = 0; i < size; ++i) local.push_back(normal(random));
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += local[i] / kRanks;
        }
      }
    }
    fault.gradients(step, gradients);
    for (const auto& [name, numbers] : gradients) {
      for (const float x : numbers) squares += static_cast<double>(x) * x;
    }
    const double norm = fault.norm(step, std::sqrt(squares));
    const double factor = std::min(1.0, kClip / (norm + 1e-6)) * fault.clip_by(step);
    for (auto& [name, numbers] : gradients) {
      for (float& x : numbers) x = static_cast<float>(x * factor);
    }
    const auto before = parameters;
    const double count = fault.count(step), rate = fault.rate(step);
    for (auto& [name, numbers] : parameters) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double g = gradients[name][i];
        float &m = first[name][i], &v = second[name][i];
        m = static_cast<float>(kBeta1 * m + (1 - kBeta1) * g),
        v = static_cast<float>(kBeta2 * v + (1 - kBeta2) * g * g);
        const double unbiased = std::sqrt(v / (1 - std::pow(kBeta2, count))) + kEps;
        numbers[i] =
            static_cast<float>(numbers[i] * (1 - rate * kDecay) - rate * m / (1 - std::pow(kBeta1, count)) / unbiased);
      }
    }
    fault.update(step, parameters);
    for (int rank = 0; rank < kRanks; ++rank) {
      auto mine = parameters;
      fault.replica(step, rank, mine);
      std::vector<probefile::Held> tensors, contributions;
      std::map<std::string, std::vector<std::uint16_t>> halves;
      for (const auto& [name, size] : kParameters) {
        tensors.push_back(held("grad/", gradients[name], name));
        tensors.push_back(held("state.exp_avg/", first[name], name));
        tensors.push_back(held("state.exp_avg_sq/", second[name], name));
        tensors.push_back(held("param/", mine[name], name));
        if (fault.copies) {
          halves[name] = halves_of(fault.copy(step, before.at(name), mine[name]));
          tensors.push_back({"model/" + name,
                             {size},
                             0,
                             {reinterpret_cast<const char*>(halves[name].data()), halves[name].size() * 2},
                             tensorfile::Dtype::bf16});
        }
        for (int micro = 0; micro < kMicros; ++micro) {
          contributions.push_back(held("", locals[{rank, micro}][name], name));
          contributions.back().micro = micro, contributions.back().by = rank;
        }
      }
      const Json group{{"lr", kRate},         {"initial_lr", kRate},    {"betas", {kBeta1, kBeta2}},
                       {"eps", kEps},         {"weight_decay", kDecay}, {"optimizer", "AdamW"},
                       {"params", {"w", "b"}}};
      StepOf row{.step = step, .losses = {1, 2}, .scalars = {{"norm", norm}, {"clip", kClip}}};
      row.groups.push_back(group);
      row.counters[std::to_string(step)] = {"w", "b"};
      row.loss = 1.5;
      for (std::uint64_t micro = 0; micro < kMicros; ++micro) {
        const std::uint64_t first_sample =
            static_cast<std::uint64_t>(step) * 100 + static_cast<std::uint64_t>(rank) * 10 + micro * 2;
        row.batch.push_back({first_sample, first_sample + 1});
      }
      fault.row(step, rank, row);
      writers[static_cast<std::size_t>(rank)].step(row, probefile::rows(tensors, 1), probefile::rows(contributions, 1));
    }
  }
  for (probefile::Writer& writer : writers) writer.end(fault.steps, 1, fault.how);
}

std::string line(const Answer& answer, const std::string& key) {
  const auto found = std::ranges::find(answer.lines, key, [](const auto& one) { return one.first; });
  return found == answer.lines.end() ? "" : found->second;
}

Answer checked(const Fault& fault) {
  const TemporaryFolder folder;
  train(folder.path(), fault);
  return check(folder.path());
}

}  // namespace

TEST_CASE("checks: a healthy recording is consistent, also one in bfloat16 with float32 masters") {
  for (const bool copies : {false, true}) {
    Fault none;
    none.copies = copies;
    const Answer answer = checked(none);
    CHECK(line(answer, "verdict") == "consistent");
    CHECK_MESSAGE(compare::status(answer.verdict) == Status::done, line(answer, "headline"));
    for (const char* const name : {"replicas", "gradient", "norm", "counter", "moments", "update", "moves", "samples"})
      CHECK_MESSAGE(line(answer, "holds").find(name) != std::string::npos, name);
    CHECK((line(answer, "holds").find("masters") != std::string::npos) == copies);
  }
}

TEST_CASE("checks: a generator may draw a sample twice") {
  Fault drawn;
  drawn.row = [](std::int64_t, int, StepOf& row) { row.batch = {{7, 8}, {7, 9}}; };
  const TemporaryFolder folder;
  train(folder.path(), drawn);
  CHECK(line(check(folder.path()), "headline").starts_with("step 1: batch: "));
  std::filesystem::create_directory(folder.file("rollout"));
  CHECK(line(check(folder.path()), "verdict") == "consistent");
  CHECK(line(check(folder.path()), "note samples").starts_with("a generator drew the samples"));
}

TEST_CASE("checks: a recording that does not end well decides nothing") {
  Fault crash;
  crash.how = "exception ValueError: boom";
  const Answer answer = checked(crash);
  CHECK(line(answer, "verdict") == "inconclusive");
  CHECK(compare::status(answer.verdict) == Status::inconclusive);
}

TEST_CASE("checks: a planted fault is inconsistent, and named") {
  struct Case {
    std::string name, headline;
    Fault fault;
  };
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const std::string& headline) -> Fault& {
    cases.push_back({name, headline, {}});
    return cases.back().fault;
  };
  const auto at = [](std::int64_t step) { return step == kAt; };
  add("a gradient twice",
      "step 2: gradient of b: x 2 of the mean of its micro-batches' gradients, clipped, and 1 other gradient is not")
      .gradients = [&](std::int64_t step, auto& gradients) {
    for (float& x : gradients["b"]) x *= at(step) ? 2 : 1;
  };
  add("all gradients twice",
      "step 2: gradient of w and 1 more: x 2 (ranks or accumulation) of the mean of its micro-batches' gradients, "
      "clipped")
      .gradients = [&](std::int64_t step, auto& gradients) {
    for (auto& [name, gradient] : gradients) {
      for (float& x : gradient) x *= at(step) ? 2 : 1;
    }
  };
  add("a norm that counts a parameter twice", "step 2: norm: ").norm = [&](std::int64_t step, double norm) {
    return at(step) ? norm * 1.1 : norm;
  };
  add("no clipping", "step 2: gradient of w and 1 more: x ").clip_by = [&](std::int64_t step) {
    return at(step) ? 1.5 : 1.0;
  };
  add("a clock ahead", "step 2: parameter of b and 1 more: has the bias correction of step 3, and its counter says 2")
      .count = [&](std::int64_t step) { return static_cast<double>(step + at(step)); };
  add("a counter that jumps", "step 2: counter of b and 1 more: is 5, expected 2").row = [&](std::int64_t step, int,
                                                                                             StepOf& row) {
    if (at(step)) row.counters = Json{{"5", {"w", "b"}}};
  };
  add("another rate", "step 2: parameter of b and 1 more: x 1/2 of the update").rate = [&](std::int64_t step) {
    return at(step) ? kRate / 2 : kRate;
  };
  add("no update", "step 2: parameter of b: stands still").update = [&, kept = Numbers()](std::int64_t step,
                                                                                          auto& gradients) mutable {
    if (at(step)) gradients["b"] = kept;
    kept = gradients["b"];
  };
  add("scaled behind the update", "step 2: parameter of w: x 1/2 of the updated parameter").update =
      [&](std::int64_t step, auto& gradients) {
        for (float& x : gradients["w"]) x *= at(step) ? 0.5F : 1;
      };
  add("a replica", "step 2: parameter of w: rank 1 holds other values than rank 0").replica =
      [&](std::int64_t step, int rank, auto& gradients) {
        if (at(step) && rank == 1) gradients["w"][5] += 1;
      };
  add("the same samples", "step 2: batch: micro-batch 1 of rank 1 has the samples of micro-batch 1 of rank 0").row =
      [&](std::int64_t step, int, StepOf& row) {
        if (at(step)) row.batch = {{7, 8}, {9, 10}};
      };
  add("a sample twice", "step 2: batch: a sample of micro-batch 2 of rank 0 is also in micro-batch 1 of rank 0").row =
      [&](std::int64_t step, int rank, StepOf& row) {
        if (at(step) && rank == 0) row.batch[1][0] = row.batch[0][0];
      };
  add("samples of the step before", "step 2: batch: has the samples of step 1 again, and step 3 has new ones").row =
      [&](std::int64_t step, int rank, StepOf& row) {
        if (at(step))
          for (auto& micro : row.batch)
            for (std::uint64_t& sample : micro) sample -= 100;
        (void)rank;
      };
  add("another rate on one rank", "step 2: rank 1 updates w with other options than rank 0").row =
      [&](std::int64_t step, int rank, StepOf& row) {
        if (at(step) && rank == 1) row.groups[0]["lr"] = 2 * kRate;
      };
  for (const double norm : {0.3, 3.7}) {  // that is told: of gradients that are not clipped, or would have been
    Fault& fault = add("the loss scale of the next step",
                       "step 2: gradient of w and 1 more: x 1/2 (1 / loss scale after this step over that before) of "
                       "the mean of its micro-batches' gradients");
    fault.gradients = [&](std::int64_t step, auto& gradients) {
      for (auto& [name, gradient] : gradients) {
        for (float& x : gradient) x /= at(step) ? 512 : 1;
      }
    };
    fault.row = [&, norm](std::int64_t step, int, StepOf& row) {
      if (at(step)) row.scalars = {{"norm", norm}, {"clip", kClip}, {"loss_scale", 256}, {"loss_scale_after", 512}};
    };
  }
  add("a loss that is a sum",
      "step 2: loss: 3 is not their mean of the micro-batches' losses, as before, but their mean times the ranks or "
      "their sum")
      .row = [&](std::int64_t step, int, StepOf& row) {
    if (at(step)) row.loss = 3;
  };
  add("not finite", "step 2: loss of rank 0").row = [&](std::int64_t step, int, StepOf& row) {
    if (at(step)) row.loss = NAN;
  };
  Fault& stale =
      add("stale copies",
          "step 2: parameter in 16 bits of w and 1 more: is stale: the rounded copy of the parameter before this step");
  stale.copies = true;
  stale.copy = [&](std::int64_t step, const Numbers& before, const Numbers& master) {
    return at(step) ? before : master;
  };
  add("a gradient of zero", "gradient of b: is zero in all 3 steps").gradients = [](std::int64_t, auto& gradients) {
    std::ranges::fill(gradients["b"], 0.0F);
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Answer answer = checked(one.fault);
    CHECK(line(answer, "verdict") == "INCONSISTENT");
    CHECK(compare::status(answer.verdict) == Status::no);
    if (one.name != "a gradient of zero") CHECK(line(answer, "headline").starts_with(one.headline));
    CHECK_MESSAGE(std::ranges::any_of(answer.lines,
                                      [&](const auto& l) { return l.second.find(one.headline) != std::string::npos; }),
                  line(answer, "headline"));
  }
}

}  // namespace zs::probe
