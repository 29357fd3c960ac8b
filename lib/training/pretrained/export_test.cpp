// SPDX-License-Identifier: Apache-2.0
#include "pretrained/export.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::pretrained {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names names_in(const std::string& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string text_of(const std::string& path) { return Input(path).read_all(); }

/// A checkpoint whose only weight is this number.
void write_checkpoint(const std::string& folder, float value) {
  fs::create_directories(folder);
  const std::vector<float> values = {value};
  tensorfile::write_safetensors(folder + "/model.safetensors", {{"w", tensorfile::borrow_f32({1}, values)}});
  write_file(folder + "/config.json", R"({"model_type": "gpt2"})");
}

float weight_in(const std::string& folder) {
  const tensorfile::StateDict held = tensorfile::open_state_dict(folder + "/model.safetensors");
  std::vector<float> values(1);
  tensorfile::read_f32(held.entries().at(0).tensor, values);
  return values[0];
}

TEST_CASE("export: a checkpoint is chosen by its step or its name; without one it is the final one") {
  const TemporaryFolder run;
  write_checkpoint(run.file("checkpoint_9"), 9), write_checkpoint(run.file("checkpoint_10"), 10);
  write_checkpoint(run.file("best_checkpoint"), 5);  // not one of a run's
  const auto exported = [&](const std::string& name) {
    const TemporaryFolder to;
    export_run(run.path(), name, to.file("new"));
    return weight_in(to.file("new"));
  };
  CHECK(exported("9") == 9);
  CHECK(exported("checkpoint_10") == 10);
  CHECK_THROWS_WITH(
      exported(""),
      doctest::Contains("has no final_checkpoint: name one of checkpoint_9, checkpoint_10 with --checkpoint"));
  write_checkpoint(run.file("final_checkpoint"), 11);
  CHECK(exported("") == 11);
  CHECK(exported("final") == 11);
  CHECK_THROWS_WITH(exported("8"), doctest::Contains("name one of checkpoint_9, checkpoint_10, final_checkpoint"));
  const TemporaryFolder none;
  CHECK_THROWS_WITH(export_run(none.path(), "", none.file("new")),
                    doctest::Contains("has no checkpoint: train with --save_steps"));
}

TEST_CASE("export: a folder with files, a checkpoint without a model, and one that was changed are errors") {
  const TemporaryFolder run, full;
  const std::string checkpoint = run.file("final_checkpoint");
  write_checkpoint(checkpoint, 1);
  write_file(full.file("mine"), "");
  CHECK_THROWS_WITH(export_run(run.path(), "", full.path()), doctest::Contains("is not empty: name a new folder"));
  CHECK(names_in(full.path()) == Names{"mine"});
  write_file(checkpoint + "/SHA256SUMS", sha256(text_of(checkpoint + "/model.safetensors")) + "  model.safetensors\n");
  CHECK(export_run(run.path(), "", run.file("a")).tensors == 1);
  write_checkpoint(checkpoint, 2);
  CHECK_THROWS_WITH(export_run(run.path(), "", run.file("b")), doctest::Contains("model.safetensors"));
  fs::remove(checkpoint + "/SHA256SUMS"), fs::remove(checkpoint + "/config.json");
  CHECK_THROWS_WITH(export_run(run.path(), "", run.file("c")),
                    doctest::Contains("which model the weights are of is not known"));
}

TEST_CASE("export: the tokenizer is the run's own, else that of its model's folder") {
  const TemporaryFolder run, model, tokenizer;
  write_checkpoint(run.file("final_checkpoint"), 1);
  write_file(model.file("tokenizer.json"), "of the model"), write_file(model.file("model.safetensors"), "x");
  write_file(tokenizer.file("vocab.json"), "{}"), write_file(tokenizer.file("merges.txt"), "");
  const auto exported = [&](const std::string& configuration, const std::string& to) {
    write_file(run.file("config.yaml"), configuration);
    const Exported done = export_run(run.path(), "", run.file(to));
    CHECK_FALSE(done.merged);
    Names names = names_in(run.file(to));
    CHECK(done.tokenizer == (names.size() > 2));
    return names;
  };
  CHECK(exported("model:\n  name: " + model.path() + "\n", "a") ==
        Names{"config.json", "model.safetensors", "tokenizer.json"});
  CHECK(exported("model:\n  name: " + model.path() + "\n  tokenizer: " + tokenizer.file("merges.txt") + "\n", "b") ==
        Names{"config.json", "merges.txt", "model.safetensors", "vocab.json"});
  CHECK(exported("model:\n  name: gpt2\n", "c") == Names{"config.json", "model.safetensors"});
}

TEST_CASE("export: a tokenizer's file gets the name that from_pretrained looks for, and token ids stay the model's") {
  const TemporaryFolder from, to;
  const auto copied = [&](const std::string& name) {
    write_file(from.file(name), name);
    CHECK(copy_tokenizer(from.file(name), to.path()) == 1);
  };
  copied("spiece.model"), copied("bpe.json");
  CHECK(names_in(to.path()) == Names{"tokenizer.json", "tokenizer.model"});
  CHECK(text_of(to.file("tokenizer.json")) == "bpe.json");
  write_file(from.file("config.json"), R"({"bos_token_id": 1, "eos_token_id": [2, 3], "vocab_size": 9})");
  write_file(to.file("config.json"), R"({"eos_token_id": 7, "hidden_size": 4})");
  CHECK(copy_tokenizer(from.path(), to.path()) == 0);
  CHECK(text_of(to.file("config.json")) ==
        "{\n  \"eos_token_id\": 7,\n  \"hidden_size\": 4,\n  \"bos_token_id\": 1\n}\n");
  CHECK(copy_tokenizer(to.path(), to.path()) == 0);
  write_file(from.file("config.json"), "[]");
  CHECK_THROWS_WITH(copy_tokenizer(from.path(), to.path()),
                    doctest::Contains("config.json:1: expected an object of settings"));
}

}  // namespace
}  // namespace zs::pretrained
