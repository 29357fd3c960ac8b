// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "base/name.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {

const std::vector<Entry>& dialects() {
  static const std::vector<Entry> kDialects = {
      {"reference",
       "ds_verify_loss and zs-train: the metric line and the closing line",
       "Epoch 1, Step 40, Loss: 10.555366 sync: True time: 0.4812662601470947 alloc_mem: 28307113472 peak_mem: 50064946688",
       {"Epoch ", "Step ", "sync: ", "alloc_mem: ", " iteration time: "},
       make_reference},
      {"zs",
       "zs-train: facts about the run",
       "run: model.name=gpt2",
       {"run: ", "Summary: ", "state_digest: "},
       make_zs},
      {"launch",
       "launch scripts and argparse: facts about the run",
       "ZERO_STAGE: 3",
       {"Namespace(", "BACKEND: ", "ZERO_STAGE: ", "NUM_PROCESSES: ", "NUM_NODES: ", "MODEL: ", "GRADIENT_ACCUMULATION_STEPS: ", "EXTRA_OPTS: ", "Logging to logs/"},
       make_launch},
  };
  return kDialects;
}

const Entry& dialect_named(std::string_view name) {
  const auto& all = dialects();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& entry) { return entry.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const Entry& entry : all) names.emplace_back(entry.name);
  throw UsageError("--dialect: there is no '" + std::string(name) + "'" + did_you_mean(name, names));
}

}  // namespace zs::parse
