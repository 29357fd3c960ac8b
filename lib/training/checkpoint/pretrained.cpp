// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/adapter.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "pretrained/export.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A parameter and the unit that it is of.
struct Place {
  zero::UnitState* state;
  const unit::Parameter* parameter;
};

/// In the order in which the file has them: all are float32, so by name. Of `adapters`: those, and what is trained
/// beside them.
std::vector<Place> places(zero::Engine& engine, bool adapters) {
  std::vector<Place> all;
  for (zero::UnitState& state : engine.states()) {
    for (const unit::Parameter& parameter : state.unit().parameters()) {
      if (!adapters || parameter.added || parameter.trained) all.push_back({&state, &parameter});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Place& a, const Place& b) { return a.parameter->name < b.parameter->name; });
  return all;
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
  // A unit is gathered where its first parameter stands in the file, and again where another's stood between.
  zero::UnitState* gathered = nullptr;
  at::Tensor whole;
  const auto gather = [&](const Place& place) {
    if (place.state != gathered) whole = place.state->gather_parameters();
    gathered = place.state;
  };
  const std::vector<Place> all = places(engine, adapters);
  if (group.rank() != 0) {
    for (const Place& place : all) gather(place);
  } else {
    tensorfile::NamedTensors tensors;
    for (const Place& place : all) {
      const auto produce = [&, place](const tensorfile::Sink& sink) {
        gather(place);
        const auto values = device::floats(whole).subspan(static_cast<std::size_t>(place.parameter->offset),
                                                          static_cast<std::size_t>(place.parameter->numel()));
        sink({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
      };
      const auto size = static_cast<std::uint64_t>(place.parameter->numel()) * sizeof(float);
      tensors.emplace_back((adapters ? kInPeft : "") + place.parameter->name,
                           tensorfile::make_tensor(tensorfile::Dtype::f32, place.parameter->shape,
                                                   tensorfile::Storage::produce(size, produce)));
    }
    tensorfile::write_safetensors(folder + (adapters ? kAdapterWeights : "/model.safetensors"), tensors);
  }
  comm::together(group, "writing of " + folder, [&] {
    if (group.rank() != 0) return;
    write_file(folder + (adapters ? "/adapter_config.json" : "/config.json"), adapters ? model.adapter : model.config);
    if (!tokenizer.empty()) pretrained::copy_tokenizer(tokenizer, folder);
  });
}

}  // namespace zs::checkpoint
