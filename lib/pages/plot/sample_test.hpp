// SPDX-License-Identifier: Apache-2.0
// A batch as the tests need it: six conditions of one training, equal losses, different time and memory.
// Included by tests only.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "metric/table.hpp"
#include "stat/summary.hpp"
#include "summary/condition.hpp"

namespace zs::plot {

struct Sample {
  bool identical = true;  ///< the same losses and digests in every condition
  std::string failing{};  ///< this condition stops after 30 steps with exit code 9
  std::string absent{};   ///< this one fails before its first metric line
  int steps = 100;
  bool digests = true;
  bool attributes = true;  ///< the runs say what was trained
};

inline const std::array<const char*, 6> kSampleConditions = {"z1_baseline",    "z2_baseline",    "z3_baseline",
                                                             "z1_deepcompile", "z2_deepcompile", "z3_deepcompile"};

/// The same sequence on every machine.
inline double sample_noise(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<double>(state >> 11) / 9007199254740992.0 - 0.5;
}

inline metric::Run sample_run(const std::string& name, std::size_t place, const Sample& sample, int steps) {
  metric::Run run;
  run.name = name;
  const int stage = name[1] - '0';
  const bool compiled = name.find("deepcompile") != std::string::npos;
  if (sample.attributes) {
    run.attributes = {
        {"model.name", "gpt2"},
        {"dataset", "/usr/share/common-licenses"},
        {"world_size", "2"},
        {"dtype", "fp32"},
        {"gradient_accumulation_steps", "4"},
        {"batch_size", "2"},
        {"seq_length", "256"},
        {"seed", "42"},
        {"revision", "dd1367c0"},
        {"host", "node07"},
        {"cpu", "AMD EPYC 9474F 48-Core Processor"},
        {"backend", "zero"},
        {"zero_stage", std::to_string(stage)},
        {"compile", "false"},
        {"deepcompile", compiled ? "true" : "false"},
        {"passes", compiled ? "prefetch,selective_gather" : ""},
        {"expected_steps", std::to_string(sample.steps)},
        {"command", "zs-train --zero_stage " + std::to_string(stage) + (compiled ? " --deepcompile" : "")}};
    if (run.attributes["passes"].empty()) run.attributes.erase("passes");
  }
  run.attributes["exit_code"] = steps == sample.steps ? "0" : "9";
  run.attributes["source"] = name + ".log";
  run.attributes["source_sha256"] = std::string(63, 'a') + std::to_string(place);
  for (const char* name : {"step", "epoch", "loss", "iteration_time", "alloc_mem", "peak_mem", "tokens", "line"})
    run.records.column(name);
  std::uint64_t losses = sample.identical ? 7 : 7 + place, times = 100 + place;
  for (int step = 1; step <= steps; ++step) {
    run.records.column("step").integers().push_back(step);
    run.records.column("epoch").integers().push_back(1 + step / 60);
    run.records.column("loss").reals().push_back(2.2 + 8.6 * std::exp(-step / 14.0) + 0.18 * sample_noise(losses));
    const double slow = step <= 5 ? 3.0 / step : 0;
    const double speed = (compiled ? 0.90 : 1.0) * (0.8 + 0.11 * stage);
    run.records.column("iteration_time").reals().push_back(0.62 * speed * (1 + slow) + 0.03 * sample_noise(times));
    run.records.column("alloc_mem").integers().push_back(2'100'000'000 / stage);
    run.records.column("peak_mem").integers().push_back(3'400'000'000 / stage + (compiled ? 310'000'000 : 0));
    run.records.column("tokens").integers().push_back(4096);
    run.records.column("line").integers().push_back(40 + 2 * step);
  }
  if (sample.digests && steps == sample.steps) {
    run.attributes["state_digest"] =
        "f3a1c09b5d7e42886b0c9d1f2e3a4b5" + std::string(sample.identical ? "c" : std::to_string(place));
  }
  return run;
}

/// A store as zs-aggregate makes it.
inline metric::Store sample_batch(const Sample& sample = {}) {
  metric::Store store;
  for (std::size_t place = 0; place < kSampleConditions.size(); ++place) {
    const std::string name = kSampleConditions[place];
    const int steps = name == sample.absent ? 0 : name == sample.failing ? 30 : sample.steps;
    store.runs.push_back(sample_run(name, place, sample, steps));
  }
  return stat::summarize(std::move(store), {}).store;
}

}  // namespace zs::plot
