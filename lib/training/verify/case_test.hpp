// SPDX-License-Identifier: Apache-2.0
// A small training that tests of this folder verify.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>

#include "base/file.hpp"
#include "verify/side_by_side.hpp"

namespace zs::verify {

/// A text to train on that is gone at the end.
struct Text {
  std::string path =
      (std::filesystem::temp_directory_path() / ("zs-verify-" + std::to_string(::getpid()) + ".txt")).string();
  Text() {
    std::mt19937 random(1);
    std::string text;
    for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + random() % 26);
    write_file(path, text);
  }
  ~Text() { std::filesystem::remove(path); }
};

inline Request request(const Text& text, int stage, int micro_steps, std::int64_t steps) {
  Request request;
  request.train.model = {.name = "tiny", .num_layers = 1, .seq_length = 8, .dropout = 0.1};
  request.train.engine.max_grad_norm = 1;
  request.train.stage = stage;
  request.train.micro_steps = micro_steps;
  request.train.dataset = text.path;
  request.train.max_steps = steps;
  request.train.schedule.learning_rate = 1e-3;
  request.train.schedule.name = "constant";
  return request;
}

/// A verdict, and the name of the parameter that it finds different.
struct Outcome {
  Verdict verdict;
  std::string parameter;
};

/// Verifies on so many ranks of this process; 0: on those of the request.
inline Outcome compared(Request request, int ranks = 0) {
  Outcome outcome;
  if (ranks > 0) request.train.ranks = ranks;
  comm::run_in_process(request.train.ranks, [&](comm::Group& group) {
    SideBySide sides(group, request);
    const Verdict verdict = sides.run({});
    if (group.rank() == 0)
      outcome = {verdict, verdict.finding.parameter >= 0 ? sides.parameter_name(verdict.finding) : ""};
  });
  return outcome;
}

}  // namespace zs::verify
