// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "device/tensor.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;

/// `use` of what state.json holds; its failures become errors with the path.
template <typename Use>
auto read_json(const std::string& folder, Use use) {
  const std::string path = folder + "/accelerator_states/state.json";
  try {
    const auto json = nlohmann::json::parse(Input(path).read_all());
    if (json.at("format") != "zs-checkpoint 1") throw Error(path, 0, "is of another format than this zs reads");
    return use(json);
  } catch (const nlohmann::json::exception& error) {
    throw Error(path, 0, error.what());
  }
}

/// Ranks check the files in turns; every rank throws if one did.
void verify_all(comm::Group& group, const std::string& folder) {
  std::string problem;
  try {
    std::int64_t turn = 0;
    for (const auto& [file, digest] : read_sums(folder)) {
      if (turn++ % group.size() == group.rank()) verify(folder, file, digest);
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  for (const std::string& each : group.exchange(problem, "checking of " + folder)) {
    if (!each.empty()) throw Error(each);
  }
}

/// Copies the overlap of one stored part with what this rank owns; the elements copied.
std::int64_t copy_part(const tensorfile::Value& root, const char* moment, const unit::Parameter& parameter,
                       comm::Slice owned, at::Tensor into, const std::string& path) {
  const tensorfile::Value* const dict = root.find(moment);
  const tensorfile::Value* const value = dict ? dict->find(parameter.name) : nullptr;
  if (!value) return 0;
  const tensorfile::Tensor* const tensor = value->get<tensorfile::Tensor>();
  const tensorfile::Value* const offsets = root.find("offset");
  const tensorfile::Value* const offset = offsets ? offsets->find(parameter.name) : nullptr;
  if (!tensor || !offset) throw Error(path, 0, std::string(moment) + " of " + parameter.name + " is malformed");
  std::vector<float> values(static_cast<std::size_t>(tensor->count()));
  tensorfile::read_f32(*tensor, values);
  const std::int64_t first = parameter.offset + offset->integer(path);
  const std::int64_t begin = std::max(first, owned.begin), end = std::min(first + tensor->count(), owned.end);
  if (begin >= end) return 0;
  std::copy(values.begin() + (begin - first), values.begin() + (end - first),
            device::floats(into).begin() + (begin - owned.begin));
  return end - begin;
}

void load_moments(zero::Engine& engine, const std::string& folder, std::int64_t updates) {
  std::vector<at::Tensor> exp_avg, exp_avg_sq;
  std::vector<std::int64_t> missing;
  for (const zero::UnitState& state : engine.states()) {
    exp_avg.push_back(at::zeros({state.owned().size()}));
    exp_avg_sq.push_back(at::zeros({state.owned().size()}));
    missing.push_back(state.owned().size());
  }
  const std::string states = folder + "/accelerator_states";
  for (const std::string& file : files(states)) {
    if (!file.ends_with(".pt")) continue;
    const std::string path = states + "/" + file;
    const tensorfile::Value root = tensorfile::read_torch(path);
    for (std::size_t unit = 0; unit < missing.size(); ++unit) {
      const zero::UnitState& state = engine.states()[unit];
      for (const unit::Parameter& parameter : state.unit().parameters()) {
        missing[unit] -= copy_part(root, "exp_avg", parameter, state.owned(), exp_avg[unit], path);
        copy_part(root, "exp_avg_sq", parameter, state.owned(), exp_avg_sq[unit], path);
      }
    }
  }
  for (std::size_t unit = 0; unit < missing.size(); ++unit) {
    if (missing[unit] != 0) {
      throw Error(states, 0,
                  "the optimizer state of " + engine.states()[unit].unit().name() +
                      " is not complete: a rank's file is missing");
    }
    engine.optimizer(unit).restore(exp_avg[unit], exp_avg_sq[unit], updates);
  }
}

}  // namespace

std::optional<Progress> peek(const std::string& folder) {
  if (!fs::exists(folder)) throw Error(folder, 0, "there is no such checkpoint");
  if (!fs::exists(folder + "/accelerator_states")) return {};
  return read_json(folder, [](const nlohmann::json& json) {
    Progress progress;
    progress.step = json.at("step");
    progress.leaves = json.at("leaves");
    progress.batch_size = json.at("batch_size");
    progress.seq_length = json.at("seq_length");
    progress.seed = json.at("sampler").at("seed");
    progress.sampler_position = json.at("sampler").at("position");
    progress.learning_rate = json.at("learning_rate");
    progress.dataset_sha256 = json.at("dataset_sha256");
    progress.dtype = json.at("dtype");
    return progress;
  });
}

std::optional<Progress> load(comm::Group& group, zero::Engine& engine, const std::string& folder,
                             const std::string& model_config) {
  const bool ours = fs::exists(folder + "/accelerator_states");
  if (ours) verify_all(group, folder);
  const auto progress = peek(folder);
  require_same_model(folder, model_config);
  load_parameters(engine, folder, !ours);  // of ours all bytes were compared
  if (!progress) return {};
  const std::int64_t updates = read_json(folder, [&](const nlohmann::json& json) {
    const auto& scaler = json.at("loss_scaler");
    engine.restore(json.at("updates"), {scaler.at("scale"), scaler.at("iteration"), scaler.at("last_overflow"),
                                        scaler.at("skipped"), scaler.at("hysteresis")});
    return json.at("updates").get<std::int64_t>();
  });
  load_moments(engine, folder, updates);
  return progress;
}

}  // namespace zs::checkpoint
