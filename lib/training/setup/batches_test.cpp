// SPDX-License-Identifier: Apache-2.0
#include "setup/batches.hpp"

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "config/reading.hpp"
#include "model/forward_test.hpp"

namespace zs::setup {
namespace {

/// A file of 60 documents of 2 to 51 letters.
std::string documents(const TemporaryFolder& folder) {
  std::string text;
  for (std::size_t i = 0; i < 60; ++i) text += "{\"text\": \"" + std::string(1 + i * 7 % 50, 'a') + "b\"}\n";
  write_file(folder.file("x.jsonl"), text);
  return folder.file("x.jsonl");
}

}  // namespace

TEST_CASE("batches: padded or packed: the losses of a step's micro-batches have the mean over all targets that count") {
  const TemporaryFolder folder;
  const std::string path = documents(folder);
  for (const std::string packing : {"none", "masked"}) {
    for (const std::string name : {"tiny", "tiny-llama"}) {
      for (const bool fused : {false, true}) {
        CAPTURE(name);
        CAPTURE(fused);
        config::Config config = config::Config::parse(
            "data: {packing: " + packing + ", dataset_path: " + path +
                "}\ntraining: {batch_size: 3, eval: true, eval_batch_size: 4}\nmodel.context_length: 16\n",
            "c.yaml");
        config.add_defaults();
        config.set("model.name", name, "test");
        config.set("model.num_layers", "1", "test");
        config.set("zero.compile", fused ? "true" : "false", "test");
        const setup::Settings settings = setup::settings(config, 1);
        const model::Model model = model::make(settings.model);
        setup::Batches batches(settings, model, 4);
        double sum = 0, mean = 0;
        std::int64_t counted = 0;
        // Adds the losses of a micro-batch, and returns what its last unit gives.
        const auto loss = [&](const unit::Batch& batch) {
          REQUIRE(batch.weight);
          const auto [logits, last] = model::forward(model, batch);
          const at::Tensor each = -at::log_softmax(logits.to(at::kDouble), -1)
                                       .gather(-1, batch.targets.clamp_min(0).unsqueeze(-1))
                                       .squeeze(-1);
          const at::Tensor counts = batch.targets.ne(data::kPadding);
          CHECK((packing == "masked" || !counts.all().item<bool>()));  // a row may be full
          CHECK(batch.lengths.sum().item<std::int64_t>() == counts.sum().item<std::int64_t>());
          sum += each.masked_select(counts).sum().item<double>();
          counted += counts.sum().item<std::int64_t>();
          return last.item<double>();
        };
        for (std::int64_t leaf = 0; leaf < 4; ++leaf) mean += loss(batches.training(2, leaf)) / 4;
        CHECK(counted == batches.tokens(2));
        CHECK(mean == doctest::Approx(sum / static_cast<double>(counted)).epsilon(1e-6));
        // Of what is held out the last micro-batch is smaller.
        sum = mean = 0;
        counted = 0;
        double samples = 0;
        for (std::int64_t leaf = 0; leaf < batches.micro_batches(setup::Part::validation); ++leaf) {
          const unit::Batch batch = batches.held_out(setup::Part::validation, leaf);
          mean += loss(batch) * static_cast<double>(batch.samples());
          samples += static_cast<double>(batch.samples());
        }
        CHECK(mean / samples == doctest::Approx(sum / static_cast<double>(counted)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("batches: padded or packed: a step's mean is the same whichever micro-batches its samples are in") {
  const TemporaryFolder folder;
  const std::string path = documents(folder);
  for (const std::string packing : {"none", "masked"}) {
    std::vector<std::int64_t> targets, seen;
    std::vector<double> weights;
    for (const std::int64_t leaves : {1, 2, 4, 8}) {
      config::Config config = config::Config::parse("data: {packing: " + packing + ", dataset_path: " + path +
                                                        "}\ntraining: {batch_size: " + std::to_string(8 / leaves) +
                                                        "}\nmodel.context_length: 16\n",
                                                    "c.yaml");
      config.add_defaults();
      const setup::Settings settings = setup::settings(config, 1);
      setup::Batches batches(settings, model::make(settings.model), leaves);
      double weighted = 0;
      std::vector<std::int64_t> tokens;
      for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
        const unit::Batch batch = batches.training(2, leaf);
        const auto count = batch.targets.ge(0).sum().item<std::int64_t>();
        // What a target is multiplied with in the end: the same wherever its micro-batch is.
        weights.push_back(static_cast<double>(*batch.weight) / static_cast<double>(count) /
                          static_cast<double>(leaves));
        weighted += weights.back() * static_cast<double>(count);
        const at::Tensor flat = batch.targets.reshape({-1});
        tokens.insert(tokens.end(), flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel());
      }
      CHECK(weighted == doctest::Approx(1).epsilon(1e-6));
      targets.push_back(batches.tokens(2));
      if (seen.empty()) seen = tokens;
      CHECK(seen == tokens);
    }
    for (const double weight : weights)
      CHECK(weight == doctest::Approx(1 / static_cast<double>(targets[0])).epsilon(1e-6));
    for (const std::int64_t each : targets) CHECK(each == targets[0]);
  }
}

}  // namespace zs::setup
