// SPDX-License-Identifier: Apache-2.0
#include "setup/describe.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "base/folder.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "train/trainer.hpp"

using zs::attribute::Facts;
using zs::config::Config;

namespace {

Config small(const std::string& dataset) {
  Config config;
  for (const auto& [key, value] : {std::pair{"model.name", "tiny"},
                                   {"model.num_layers", "1"},
                                   {"model.context_length", "8"},
                                   {"training.max_steps", "2"}})
    config.set(key, value, "test");
  config.set("data.dataset_path", dataset, "test");
  config.add_defaults();
  config.check();
  return config;
}

}  // namespace

TEST_CASE("a run records its whole configuration and its arithmetic, each attribute under a name of the table") {
  const zs::TemporaryFolder folder;
  const std::string text = folder.file("text");
  std::ofstream(text) << std::string(2000, 'x') << "some text to train on";
  const Config config = small(text);
  Facts facts;
  zs::comm::run_in_process(1, [&](zs::comm::Group& group) {
    zs::train::Trainer trainer(group, zs::setup::settings(config, 1));
    zs::metric::Run run;
    zs::metric::MemoryWriter memory(run);
    trainer.run("", zs::setup::configured(config), {.log = {}, .metrics = {&memory}, .progress = {}});
    facts = run.attributes;
  });
  for (const zs::config::Known& row : zs::config::known()) {
    if (row.fallback.empty() || row.key == std::string("training.products")) continue;  // those of a GPU
    INFO(row.key);
    CHECK(!zs::attribute::value(facts, row.key).empty());
  }
  for (const char* const name :
       {"kernels", "dtype", "torch", "blas", "instruction_set", "device", "threads", "cpu", "dataset_sha256"}) {
    INFO(name);
    CHECK(!zs::attribute::value(facts, name).empty());
  }
  CHECK(facts.at("model.num_layers") == "1");
  CHECK(facts.at("global_batch_size") == "1");
  CHECK(facts.at("state_digest").size() == 32);
  for (const auto& [key, value] : facts) {
    INFO(key);
    REQUIRE(zs::attribute::find(key) != nullptr);
    CHECK(zs::attribute::primary(key) == key);
    CHECK(!value.empty());
  }
}
