// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "device/tensor.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::checkpoint {
namespace {

using tensorfile::StateDict;
using tensorfile::Tensor;

constexpr const char* kOther = ": it is a checkpoint of another model";

nlohmann::json parsed(const std::string& text, const std::string& path) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(path, 0, error.what());
  }
}

/// A value of config.json in the one form that is compared.
nlohmann::json canonical(const nlohmann::json& config, const char* key) {
  const nlohmann::json value = config.at(key);
  if (key == std::string("n_inner") && value.is_null() && config.contains("n_embd") &&
      config["n_embd"].is_number_unsigned())
    return 4 * config["n_embd"].get<std::uint64_t>();
  if (value == "gelu_pytorch_tanh") return "gelu_new";  // the same formula
  return value;
}

/// Whether two tensors have the same shape and values.
bool same(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return false;
  std::vector<float> x(static_cast<std::size_t>(a.count())), y(x.size());
  tensorfile::read_f32(a, x);
  tensorfile::read_f32(b, y);
  return x == y;
}

/// The name under which the file has a parameter.
std::string name_in(const StateDict& weights, const unit::Parameter& parameter) {
  return weights.find(parameter.name) || !weights.find(parameter.other_name) ? parameter.name : parameter.other_name;
}

/// Throws unless a tensor that no parameter took may be left out.
void check_extra(const StateDict& weights, const StateDict::Entry& entry, const std::vector<zero::UnitState>& states) {
  for (const zero::UnitState& state : states) {
    for (const unit::Extra& extra : state.unit().extras()) {
      if (!entry.name.ends_with(extra.suffix)) continue;
      if (extra.same_as.empty()) return;
      for (const unit::Parameter& parameter : state.unit().parameters()) {
        if (parameter.name != extra.same_as) continue;
        const Tensor* const tied = weights.find(name_in(weights, parameter));
        if (tied && same(entry.tensor, *tied)) return;
        throw Error(weights.path(), 0, entry.name + " is not " + extra.same_as + ", to which this model ties it");
      }
    }
  }
  throw Error(weights.path(), 0, "has " + entry.name + ", which the model has not" + kOther);
}

/// Throws unless everything in the file that no parameter took may be left out.
void check_rest(const StateDict& weights, const std::set<std::string>& taken,
                const std::vector<zero::UnitState>& states) {
  for (const StateDict::Entry& entry : weights.entries()) {
    if (taken.count(entry.name) == 0) check_extra(weights, entry, states);
  }
}

}  // namespace

void require_same_model(const std::string& folder, const std::string& model_config) {
  const std::string path = folder + "/config.json";
  if (!std::filesystem::exists(path)) return;
  const nlohmann::json theirs = parsed(Input(path).read_all(), path), ours = parsed(model_config, "config.json");
  if (!theirs.is_object()) throw Error(path, 0, "is no object");
  for (const char* const key : {"model_type", "n_layer", "n_head", "n_embd", "n_inner", "n_positions", "vocab_size",
                                "activation_function", "layer_norm_epsilon", "tie_word_embeddings"}) {
    if (!theirs.contains(key) || !ours.contains(key)) continue;
    const nlohmann::json then = canonical(theirs, key), now = canonical(ours, key);
    if (then != now)
      throw Error(path, 0, std::string(key) + " is " + then.dump() + ", of the model " + now.dump() + kOther);
  }
}

void load_parameters(zero::Engine& engine, const std::string& folder, bool verify, device::Hash& hash) {
  const StateDict weights = tensorfile::open_state_dict(folder);
  if (verify) weights.verify();
  std::set<std::string> taken;
  for (zero::UnitState& state : engine.states()) {
    at::Tensor flat = at::empty({state.numel()});
    for (const unit::Parameter& parameter : state.unit().parameters()) {
      const std::string name = name_in(weights, parameter);
      const Tensor& tensor = weights.at(name);
      if (tensor.shape != parameter.shape) {
        throw Error(weights.path(), 0,
                    name + " has the shape " + tensorfile::to_text(tensor.shape) + ", the model " +
                        tensorfile::to_text(parameter.shape) + kOther);
      }
      tensorfile::read_f32(tensor, device::floats(flat).subspan(static_cast<std::size_t>(parameter.offset),
                                                                static_cast<std::size_t>(parameter.numel())));
      taken.insert(name);
    }
    hash.add(device::view(flat));
    state.set_parameters(flat);
  }
  check_rest(weights, taken, engine.states());
}

}  // namespace zs::checkpoint
