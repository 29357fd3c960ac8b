// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "pretrained/export.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A tensor of the file, by the parameters in it, and the unit that it is of.
struct Place {
  zero::UnitState* state;
  std::vector<const unit::Parameter*> parameters;

  const unit::Parameter& first() const { return *parameters.front(); }
};

/// In the order of the file: all are float32, so by name. With `adapters`: only the adapters and other trained
/// parameters.
std::vector<Place> places(zero::Engine& engine, bool adapters) {
  std::vector<Place> found;
  for (zero::UnitState& state : engine.states()) {
    for (const auto& parameters : unit::tensors(state.unit())) {
      if (!adapters || parameters[0]->added || parameters[0]->trained) found.push_back({&state, parameters});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Place& a, const Place& b) { return a.first().name_in_files() < b.first().name_in_files(); });
  return found;
}

}  // namespace

void prepare_pretrained(comm::Group& group, const std::string& folder) {
  comm::together(group, "making of " + folder, [&] {
    if (group.rank() != 0) return;
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure) throw Error(folder, 0, failure.message());
    for (const char* const other :
         {"model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
      if (fs::exists(fs::path(folder) / other))
        throw Error(folder + "/" + other, 0, "is there already: give --save_pretrained an empty folder");
  });
}

void save_pretrained(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model,
                     const std::string& tokenizer) {
  const bool adapters = !model.adapter.empty();
  // A unit is gathered at its first parameter in the file, and again if another unit's parameter came in between.
  zero::UnitState* gathered = nullptr;
  at::Tensor whole;
  const auto gather = [&](const Place& place) {
    if (place.state != gathered) whole = place.state->gather_parameters();
    gathered = place.state;
  };
  const std::vector<Place> held = places(engine, adapters);
  if (group.rank() != 0) {
    for (const Place& place : held) gather(place);
  } else {
    tensorfile::NamedTensors tensors;
    for (const Place& place : held) {
      tensors.emplace_back((adapters ? kInPeft : "") + place.first().name_in_files(), for_file(place.parameters, [&] {
                             gather(place);
                             return whole;
                           }));
    }
    tensorfile::write_safetensors(folder + (adapters ? kAdapterWeights : "/model.safetensors"), tensors);
  }
  comm::together(group, "writing of " + folder, [&] {
    if (group.rank() != 0) return;
    write_file(folder + (adapters ? "/adapter_config.json" : "/config.json"), adapters ? model.adapter : model.config);
    if (!model.preprocessor.empty()) write_file(folder + "/preprocessor_config.json", model.preprocessor);
    if (!tokenizer.empty()) pretrained::copy_tokenizer(tokenizer, folder);
  });
}

}  // namespace zs::checkpoint
