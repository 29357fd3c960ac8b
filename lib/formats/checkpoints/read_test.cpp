// SPDX-License-Identifier: Apache-2.0
// Each reader on a small checkpoint that is made here, whole and with one thing wrong.
#include "checkpoints/read.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/forms.hpp"
#include "checkpoints/sums.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Storage;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

Tensor f32(const std::vector<float>& values, tensorfile::Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
  return tensorfile::make_tensor(
      Dtype::f32, shape,
      Storage::own(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))));
}

std::vector<float> values_of(const std::optional<Whole>& whole) {
  std::vector<float> values(static_cast<std::size_t>(whole.value().count()));
  read_f32(joined(*whole, ""), values);
  return values;
}
std::vector<float> values_of(const Whole& whole) { return values_of(std::optional(whole)); }

bool has_fault(const State& state, const std::string& text) {
  return std::ranges::any_of(state.faults, [&](const auto& one) { return one.find(text) != std::string::npos; });
}

void save(const std::string& path, const Value& root) { tensorfile::write_torch(path, root, tensorfile::Reals::plain); }

/// Changes the root of a file of torch.save.
template <class Change>
void edit(const std::string& path, Change change) {
  Value root = tensorfile::read_torch_objects(path);
  change(root);
  save(path, root);
}

/// The value under these keys, to be changed.
Value& inner(Value& root, std::initializer_list<const char*> keys) {
  Value* at = &root;
  for (const char* const key : keys) at = const_cast<Value*>(at->find(key));
  return *at;
}

/// The state dict of an optimizer of two parameters, by number.
Dict adam(float moment) {
  const auto state = [&](float first, std::size_t size) {
    return Dict{{{"step", 3.0}, {"exp_avg", f32(std::vector<float>(size, first))}}};
  };
  const Dict group{{{"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}, {"amsgrad", false}, {"params", List{{0, 1}}}}};
  return Dict{{{"state", Dict{{{0, state(moment, 2)}, {1, state(2 * moment, 3)}}}}, {"param_groups", List{{group}}}}};
}

Dict weights() { return Dict{{{"w", f32({1, 2})}, {"b", f32({3, 4, 5})}}}; }

TEST_CASE("read: a file of torch.save with weights alone, with a trainer's dict, and with anything else") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pt");
  const Tensor tied = f32({1, 2});
  save(path, Dict{{{"w", tied}, {"head", tied}, {"epoch", 7}}});
  State state = read(path);
  CHECK(values_of(state.find("w")->weight) == std::vector<float>{1, 2});
  CHECK(state.find("head")->tied == "w");
  CHECK(state.facts.at("model.epoch") == "7");

  // Other elements of the same bytes are no second name.
  const Tensor square = f32({1, 2, 3, 4}, {2, 2});
  Tensor turned = square, row = square, column = square;
  turned.strides = {1, 2};
  row.shape = {1, 2}, row.strides = {2, 1}, column.shape = {1, 2}, column.strides = {9, 1};
  save(path, Dict{{{"w", square}, {"turned", turned}, {"row", row}, {"same", column}}});
  state = read(path);
  CHECK(values_of(state.find("turned")->weight) == std::vector<float>{1, 3, 2, 4});
  for (const auto& [name, tied] : {std::pair{"w", ""}, {"turned", ""}, {"row", ""}, {"same", "row"}})
    CHECK_MESSAGE(state.find(name)->tied == tied, name);

  save(path, Dict{{{"model", weights()}, {"optimizer", adam(5)}, {"step", 3}, {"note", "x"}}});
  state = read(path);
  CHECK(state.step == 3);
  CHECK(values_of(state.find("b")->moments.at("exp_avg")) == std::vector<float>{10, 10, 10});
  CHECK(state.find("w")->step == 3);
  CHECK(state.find("w")->hyper.at("amsgrad") == "False");
  CHECK(state.facts.at("training.note") == "'x'");

  // An optimizer in no form of PyTorch's is kept by its values.
  save(path, Dict{{{"model", weights()}, {"optimizer", Dict{{{"momentum", 0.5}}}}}});
  CHECK(read(path).facts.at("training.optimizer.momentum") == "0.5");

  save(path, List{{f32({1}), Dict{{{"a", f32({2, 3})}, {"n", 4}}}}});
  state = read(path);
  CHECK(values_of(state.find("1.a")->weight) == std::vector<float>{2, 3});
  CHECK(state.facts.at("training.1.n") == "4");
  save(path, Dict{{{"n", 4}}});
  CHECK_THROWS_AS(read(path), Error);
}

/// A folder of Hugging Face's Trainer.
void write_trainer(const std::string& folder) {
  fs::create_directories(folder);
  tensorfile::write_safetensors(folder + "/model.safetensors",
                                {{"wte.weight", f32({1, 2})}, {"ln_f.bias", f32({3, 4, 5})}});
  save(folder + "/optimizer.pt", adam(5));
  save(folder + "/scheduler.pt", Dict{{{"last_epoch", 3}}});
  save(folder + "/rng_state.pth", Dict{{{"python", Tuple{{3, 4}}}}});
  write_file(folder + "/config.json", R"({"n_layer": 2, "rope": {"theta": 1e4}, "transformers_version": "4.1"})");
  write_file(folder + "/trainer_state.json", R"({"global_step": 3, "epoch": 0.5, "log_history": [{"loss": 2.5}]})");
  write_file(folder + "/README.md", "");
}

TEST_CASE("read: a Trainer's folder, and what it says of files that are missing, damaged or of other weights") {
  const TemporaryFolder folder;
  const std::string path = folder.file("checkpoint-3");
  write_trainer(path);
  State state = read(path);
  CHECK(state.framework == "Hugging Face Trainer");
  CHECK(state.faults.empty());
  CHECK(state.step == 3);
  CHECK(values_of(state.find("wte.weight")->moments.at("exp_avg")) == std::vector<float>{5, 5});
  CHECK(state.facts.at("schedule.last_epoch") == "3");
  CHECK(state.facts.at("random.0.python") == "(3, 4)");
  CHECK(state.facts.at("training.log_history").starts_with("sha256 "));
  CHECK(state.config == std::map<std::string, std::string>{{"n_layer", "2"}, {"rope.theta", "10000"}});
  CHECK(state.unread == std::vector<std::string>{"README.md"});

  edit(path + "/optimizer.pt", [](Value& root) {
    auto& groups = inner(root, {"param_groups"}).get<List>()->values;
    groups.push_back(Value(groups.front()));
  });
  CHECK(has_fault(read(path), "/optimizer.pt: has the settings of parameter 0 twice"));
  save(path + "/optimizer.pt", adam(5));

  tensorfile::write_torch(path + "/pytorch_model.bin",
                          Dict{{{"wte.weight", f32({1, 2})}, {"ln_f.bias", f32({3, 4, 5})}}});
  CHECK(read(path).faults.empty());
  tensorfile::write_torch(path + "/pytorch_model.bin",
                          Dict{{{"wte.weight", f32({1, 9})}, {"ln_f.bias", f32({3, 4, 5})}}});
  CHECK(has_fault(read(path), "pytorch_model.bin: has another wte.weight than model.safetensors"));
  fs::remove(path + "/pytorch_model.bin");
  fs::remove(path + "/trainer_state.json");
  state = read(path);
  CHECK(state.framework == "Hugging Face Trainer");
  CHECK(has_fault(state, "trainer_state.json: is missing"));
  write_file(path + "/trainer_state.json", "{");
  CHECK(has_fault(read(path), "trainer_state.json: is not JSON"));
  fs::resize_file(path + "/scheduler.pt", 100);
  CHECK(has_fault(read(path), "scheduler.pt: "));
}

TEST_CASE("read: Accelerate's folder lacks the random states of a rank") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  fs::create_directories(path);
  tensorfile::write_safetensors(path + "/model.safetensors", {{"w", f32({1, 2})}, {"b", f32({3, 4, 5})}});
  save(path + "/optimizer.bin", adam(5));
  for (const char* const rank : {"0", "1", "2"})
    save(path + "/random_states_" + rank + ".pkl", Dict{{{"step", std::string(rank)}}});
  State state = read(path);
  CHECK(state.framework == "Accelerate");
  CHECK(state.ranks == 3);
  CHECK(state.faults.empty());
  fs::remove(path + "/random_states_1.pkl");
  CHECK(has_fault(read(path), "the random states of rank 1 are missing"));
}

/// A checkpoint of zs on two ranks: of w each has an element, of b rank 0 one and rank 1 two.
void write_zs(const std::string& folder) {
  fs::create_directories(folder + "/accelerator_states");
  tensorfile::write_torch(folder + "/pytorch_model.bin", weights());
  tensorfile::write_torch(folder + "/gradients.pt", weights());
  const auto shard = [&](const char* rank, const Dict& moments, const Dict& offset) {
    tensorfile::write_torch(folder + "/accelerator_states/optimizer_0000" + rank + ".pt",
                            Dict{{{"exp_avg", moments}, {"exp_avg_sq", moments}, {"offset", offset}}});
  };
  shard("0", Dict{{{"w", f32({6})}, {"b", f32({7})}}}, Dict{{{"w", 0}, {"b", 0}}});
  shard("1", Dict{{{"w", f32({8})}, {"b", f32({9, 10})}}}, Dict{{{"w", 1}, {"b", 1}}});
  write_file(folder + "/config.json", R"({"n_layer": 1.0})");
  write_file(folder + "/accelerator_states/state.json",
             R"({"step": 4, "updates": 3, "world_size": 2, "zero_stage": 1, "optimizer": {"name": "adamw", "lr": 0.5,
                 "betas": [0.9, 0.99], "no_decay": ["b"], "weight_decay": 0.1}, "loss_scaler": {"skipped": 1}})");
}

void seal(const std::string& folder) {
  std::string sums;
  fs::remove(folder + "/" + kSums);
  for (const std::string& file : files(folder))
    sums += sha256(Input(folder + "/" + file).read_all()) + "  " + file + "\n";
  write_file(folder + "/" + kSums, sums);
}

TEST_CASE("read: a checkpoint of zs, its parts joined, and its damage") {
  const TemporaryFolder folder;
  const std::string path = folder.file("checkpoint_4"), shard = path + "/accelerator_states/optimizer_00001.pt";
  write_zs(path);
  State state = read(path);
  CHECK(state.faults.empty());
  CHECK(state.step == 4);
  CHECK(state.skipped == 1);
  CHECK(values_of(state.find("b")->moments.at("exp_avg")) == std::vector<float>{7, 9, 10});
  CHECK(values_of(state.find("b")->gradients.at("gradient")) == std::vector<float>{3, 4, 5});
  CHECK(state.find("w")->step == 3);
  CHECK(state.find("w")->hyper.at("weight_decay") == "0.1");
  CHECK(state.find("b")->hyper.at("weight_decay") == "0");
  CHECK(state.config.at("n_layer") == "1");

  seal(path);
  CHECK(read(path).faults.empty());
  fs::remove(shard);
  CHECK(has_fault(read(path), "is missing, and SHA256SUMS lists it"));
  seal(path);
  CHECK(defect(read(path).find("b")->moments.at("exp_avg")) == "no file has elements 1 to 2");
  fs::copy_file(path + "/accelerator_states/optimizer_00000.pt", shard);
  seal(path);
  CHECK(defect(read(path).find("w")->moments.at("exp_avg")).starts_with("two files have elements 0 to 0"));
  fs::resize_file(path + "/gradients.pt", 100);
  CHECK(has_fault(read(path), "gradients.pt: does not have the checksum"));
  seal(path);
  CHECK(has_fault(read(path), "gradients.pt: "));
}

/// A state to be written in other programs' forms: two groups, a weight in 16 bits beside its master is left out.
State trained() {
  State state;
  state.path = "made", state.framework = "DeepSpeed", state.version = "0.19.8";
  state.step = 3, state.skipped = 0, state.ranks = 2;
  float next = 1;
  for (const auto& [name, size] : {std::pair{"w", 6}, {"b", 5}}) {
    Parameter& parameter = state.parameter(name);
    const auto numbers = [&] {
      std::vector<float> values;
      for (int i = 0; i < size; ++i) values.push_back(next++);
      return whole(f32(values), "");
    };
    parameter.master = numbers(), parameter.weight = parameter.master;
    parameter.moments["exp_avg"] = numbers(), parameter.moments["exp_avg_sq"] = numbers();
    parameter.step = 3, parameter.group = name == std::string("w") ? 0 : 1;
    parameter.hyper = {{"lr", "0.5"}, {"betas", "(0.9, 0.999)"}, {"eps", "1e-08"}, {"weight_decay", "0.1"}};
  }
  state.facts["schedule.last_batch_iteration"] = "2", state.facts["scaler.cur_scale"] = "1";
  return state;
}

/// The files of the optimizer in a written checkpoint, by rank.
std::vector<std::string> optimizer_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const std::string& file : files(folder)) {
    if (file.ends_with("optim_states.pt")) found.push_back(folder + "/" + file);
  }
  return found;
}

TEST_CASE("read: DeepSpeed's shards at each stage, and what its ranks say otherwise") {
  const State made = trained();
  for (const std::int64_t stage : {1, 2, 3}) {
    const TemporaryFolder folder;
    write_deepspeed(made, folder.path(), {"deepspeed", 2, stage, ""}, false);
    const auto written = optimizer_files(folder.path());
    REQUIRE(written.size() == 2);
    const State state = read(folder.path());
    CHECK(state.faults.empty());
    CHECK(state.stage == stage);
    for (const char* const name : {"w", "b"}) {
      CHECK(values_of(state.find(name)->master) == values_of(made.find(name)->master));
      CHECK(values_of(state.find(name)->moments.at("exp_avg")) == values_of(made.find(name)->moments.at("exp_avg")));
      CHECK(state.find(name)->hyper.at("lr") == "0.5");
    }
    // The settings of each rank's file are its own: a training that resumes goes by them.
    const char* const base = stage == 3 ? "optimizer_state_dict" : "base_optimizer_state";
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (const auto& [key, value, text] : {std::tuple<const char*, Value, const char*>{"lr", 0.75, "0.75"},
                                             {"eps", 0.5, "0.5"},
                                             {"weight_decay", 0.25, "0.25"},
                                             {"betas", Tuple{{0.5, 0.5}}, "(0.5, 0.5)"}}) {
        const std::string keep = Input(written[rank]).read_all();
        edit(written[rank], [&](Value& root) {
          for (Value& group : inner(root, {"optimizer_state_dict", base, "param_groups"}).get<List>()->values)
            inner(group, {key}) = value;
        });
        const State other = read(folder.path());
        CHECK_MESSAGE(other.faults.size() == 2, stage << " " << key);  // one for each group
        CHECK(has_fault(other, std::string("rank 0 has ") + key + " "));
        CHECK(has_fault(other, text));
        write_file(written[rank], keep);
      }
    }
    const std::string keep = Input(written[1]).read_all();
    if (stage == 3) {
      edit(written[1], [&](Value& root) {
        auto& groups = inner(root, {"optimizer_state_dict", base, "state"}).get<Dict>()->items;
        REQUIRE(groups.size() == 2);
        inner(groups.front().value, {"step"}) = Value(7.0);
      });
      CHECK(has_fault(read(folder.path()), "its sub-groups have not taken the same number of steps"));
      write_file(written[1], keep);
    }
    const std::string model = state.folder + "/" + state.files.front().name;
    const std::string kept = Input(model).read_all();
    edit(model, [&](Value& root) { inner(root, {"module"}) = List{}; });
    CHECK(has_fault(read(folder.path()), "has no entry module that is a dict of tensors"));
    write_file(model, kept);
    edit(written[1], [&](Value& root) {
      inner(root, {"optimizer_state_dict", "zero_stage"}) =
          tensorfile::Object("deepspeed.runtime.zero.config.ZeroStageEnum", {Value(stage == 3 ? 1 : 3)});
    });
    CHECK(has_fault(read(folder.path()), "rank 0 has zero_stage "));
    write_file(written[1], keep);
    edit(written[1], [&](Value& root) {
      inner(root, {"optimizer_state_dict", "loss_scaler"}).get<tensorfile::Object>()->state[0] =
          Dict{{{"cur_scale", 4.0}, {"dynamic", false}}};
    });
    CHECK(has_fault(read(folder.path()), "rank 0 has loss_scaler "));
    fs::remove(written[1]);
    CHECK(has_fault(read(folder.path()), "the file of rank 1 is missing"));
  }
}

TEST_CASE("read: DeepSpeed's universal form, and PyTorch's distributed one") {
  const State made = trained();
  const TemporaryFolder universal, distributed;
  write_deepspeed(made, universal.path(), {"universal", {}, {}, ""}, true);
  write_dcp(made, distributed.path(), {"dcp", 2, {}, ""});
  for (const std::string& path : {universal.path(), distributed.path()}) {
    const State state = read(path);
    CHECK(state.faults.empty());
    for (const char* const name : {"w", "b"}) {
      const Parameter& one = *state.find(name);
      CHECK(values_of(one.master ? one.master : one.weight) == values_of(made.find(name)->master));
      CHECK(values_of(one.moments.at("exp_avg_sq")) == values_of(made.find(name)->moments.at("exp_avg_sq")));
      CHECK(one.step == 3);
      CHECK(one.hyper.at("betas") == "(0.9, 0.999)");
    }
  }
  fs::remove(universal.file("global_step3_universal/zero/w/exp_avg.pt"));
  CHECK(has_fault(read(universal.path()), "has no exp_avg.pt, which other parameters have"));
  fs::remove(distributed.file("__1_0.distcp"));
  CHECK(!read(distributed.path()).faults.empty());
  fs::remove(distributed.file(".metadata"));
  CHECK_THROWS_WITH_AS(
      read(distributed.path()),
      (distributed.path() + "/.metadata: is missing, and is written last: the save did not end; take an "
                            "older checkpoint")
          .c_str(),
      Error);
}

TEST_CASE("read: what a program goes on from and another part repeats is a fault if it is gone or is other") {
  State made = trained();
  made.parameter("f").weight = whole(f32({1, 2}), ""), made.parameter("f").frozen = true;
  const TemporaryFolder shards, universal, distributed;
  write_deepspeed(made, shards.path(), {"deepspeed", 2, 2, ""}, false);
  REQUIRE(read(shards.path()).faults.empty());
  const auto drop = [](Value& root, const char* key) {
    std::erase_if(root.get<Dict>()->items, [&](const tensorfile::Item& item) { return key_text(item.key) == key; });
  };
  const std::string model = read(shards.path()).folder + "/mp_rank_00_model_states.pt", kept = Input(model).read_all();
  edit(model, [](Value& root) { inner(root, {"frozen_param_fragments", "f"}) = f32({1, 3}); });
  CHECK(has_fault(read(shards.path()), "has not the same f in its module and in frozen_param_fragments"));
  write_file(model, kept);
  edit(model, [&](Value& root) { drop(inner(root, {"module"}), "f"); });
  CHECK(has_fault(read(shards.path()), "has not the same f in its module and in frozen_param_fragments"));
  write_file(model, kept);
  edit(model, [&](Value& root) { drop(inner(root, {"frozen_param_fragments"}), "f"); });
  CHECK(has_fault(read(shards.path()), "has other parameters in frozen_param_shapes than in frozen_param_fragments"));
  write_file(model, kept);
  for (const std::string& file : optimizer_files(shards.path()))
    edit(file, [&](Value& root) { drop(inner(root, {"optimizer_state_dict"}), "partition_count"); });
  CHECK(has_fault(read(shards.path()), "is one of ? ranks, the model file of 2"));

  write_deepspeed(made, universal.path(), {"universal", {}, {}, ""}, true);
  // DeepSpeed reads no folder of a parameter that is not trained.
  const State whole_one = read(universal.path());
  CHECK(!whole_one.find("f")->master);
  CHECK(whole_one.unread == std::vector<std::string>{"zero/f/"});
  const std::string groups = whole_one.folder + "/zero/optimizer_state.pt";
  edit(groups, [](Value& root) {  // as ds_to_universal.py writes them from ZeRO-3
    root.get<Dict>()->items.push_back(
        {"optimizer_state_dict", Dict{{{"param_groups", inner(root, {"param_groups"})}}}});
  });
  CHECK(read(universal.path()).faults.empty());
  edit(groups, [&](Value& root) { drop(root, "param_groups"); });
  CHECK(has_fault(read(universal.path()), "has not the same param_groups twice"));

  write_dcp(made, distributed.path(), {"dcp", 1, {}, ""});
  const std::string metadata = distributed.file(".metadata");
  Value root = tensorfile::unpickle(Input(metadata).read_all(), metadata, {}, tensorfile::Names::any);
  for (tensorfile::Item& item : inner(root, {"state_dict_metadata"}).get<Dict>()->items) {
    if (!key_text(item.key).ends_with("w.step")) continue;
    auto& chunks = inner(item.value, {"chunks"}).get<List>()->values;
    chunks.push_back(Value(chunks.front()));
  }
  std::vector<tensorfile::StoragePtr> none;
  write_file(metadata, tensorfile::pickle(root, none, tensorfile::Reals::plain));
  CHECK(has_fault(read(distributed.path()), "w.step: two files have elements 0 to 0"));
}

}  // namespace
}  // namespace zs::checkpoints
