// SPDX-License-Identifier: Apache-2.0
// What the names of PyTorch's distributed checkpoints mean.
#include "checkpoints/dcp.hpp"

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/forms.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/pickle.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Item;
using tensorfile::Tuple;
using tensorfile::Value;

std::string meaning(const std::string& fqn, bool megatron = false) {
  const Key key = key_of(fqn, megatron);
  const char* const kinds[] = {"weight", "master", "moment", "step", "hyper", "fact"};
  return std::string(kinds[static_cast<int>(key.kind)]) + " " + key.name + (key.moment.empty() ? "" : " " + key.moment);
}

TEST_CASE("dcp: modules may be named as the parts of a program are") {
  // Megatron-core alone puts the moment first.
  for (const char* const module : {"param", "exp_avg", "exp_avg_sq", "fp32_param", "momentum_buffer", "chained_0"}) {
    const std::string name = std::string(module) + ".weight";
    CHECK(meaning("model." + name) == "weight " + name);
    CHECK(meaning("optimizer.state." + name + ".exp_avg") == "moment " + name + " exp_avg");
    CHECK(meaning("optimizer.state." + name + ".step") == "step " + name + " step");
  }
  CHECK(meaning("optimizer.state.exp_avg.decoder.weight", true) == "moment decoder.weight exp_avg");
  CHECK(meaning("optimizer.state.param.decoder.weight", true) == "master decoder.weight");
  CHECK(meaning("chained_1.optimizer.state.fp32_param.decoder.weight", true) == "master decoder.weight");
  // Random states, and weights at the top.
  for (const char* const name : {"random_proj.weight", "randomize.bias", "random_states_proj.weight"})
    CHECK(meaning(name) == "weight " + std::string(name));
  CHECK(meaning("random.0.cpu") == "fact random.0.cpu");
  CHECK(meaning("rng_state") == "fact random.rng_state");
  CHECK(meaning("rng_state_cuda") == "fact random.rng_state_cuda");
  CHECK(meaning("rng_state/shard_0_1", true) == "fact random.rng_state/shard_0_1");
}

TEST_CASE("dcp: all parts may be under one key of the program") {
  State made;
  made.path = "made", made.step = 3;
  Parameter& parameter = made.parameter("w");
  const float numbers[] = {1, 2};
  const auto values = [&] {
    return whole(make_tensor(tensorfile::Dtype::f32, {2},
                             tensorfile::Storage::own({reinterpret_cast<const char*>(numbers), sizeof numbers})),
                 "");
  };
  parameter.weight = values(), parameter.moments["exp_avg"] = values(), parameter.step = 3, parameter.group = 0;
  for (const char* const key : {"app", "training"}) {
    const TemporaryFolder folder;
    write_dcp(made, folder.path(), {"dcp", 1, {}, ""});
    const std::string metadata = folder.file(".metadata");
    Value root = tensorfile::unpickle(Input(metadata).read_all(), metadata, {}, tensorfile::Names::any);
    for (Item& item : const_cast<Value*>(root.find("planner_data"))->get<tensorfile::Dict>()->items) {
      auto& path = item.value.get<Tuple>()->values;
      path.insert(path.begin(), Value(key));
    }
    std::vector<tensorfile::StoragePtr> none;
    write_file(metadata, tensorfile::pickle(root, none, tensorfile::Reals::plain));
    const State state = read(folder.path());
    CHECK(state.faults.empty());
    REQUIRE(state.parameters.size() == 1);
    CHECK(state.find("w")->moments.contains("exp_avg"));
    CHECK(state.find("w")->step == 3);
    CHECK(state.find("w")->hyper.contains("lr"));
    CHECK(state.step == 3);
  }
}

}  // namespace
}  // namespace zs::checkpoints
