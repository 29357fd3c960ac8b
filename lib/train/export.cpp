// SPDX-License-Identifier: Apache-2.0
#include "train/export.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "device/tensor.hpp"
#include "h5/image.hpp"
#include "tensorfile/torch.hpp"

namespace zs::train {

void save_initial(const std::string& folder, const unit::Units& units, std::uint64_t seed,
                  const unit::Beginning& begin) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder, 0, failure.message());
  std::vector<at::Tensor> kept;  // the file borrows their memory
  tensorfile::Dict weights;
  for (const auto& unit : units) {
    const at::Tensor flat = kept.emplace_back(at::empty({unit->numel()}));
    if (begin)
      begin(kept.size() - 1, 0, device::floats(flat));
    else
      unit::initialise(*unit, seed, flat);
    for (const unit::Parameter& parameter : unit->parameters()) {
      const std::span<const float> values = device::floats(flat).subspan(static_cast<std::size_t>(parameter.offset),
                                                                         static_cast<std::size_t>(parameter.numel()));
      weights.items.push_back({parameter.name, tensorfile::borrow_f32(parameter.shape, values)});
    }
  }
  tensorfile::write_torch(folder + "/pytorch_model.bin", std::move(weights));
}

void dump_batches(const std::string& path, Batches& batches, std::int64_t steps, std::int64_t leaves) {
  std::vector<std::int64_t> tokens, targets, shape;
  const auto append = [](std::vector<std::int64_t>& all, const at::Tensor& tensor) {
    all.insert(all.end(), tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel());
  };
  for (std::int64_t step = 1; step <= steps; ++step) {
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      const unit::Batch batch = batches.training(step, leaf);
      append(tokens, batch.inputs);
      append(targets, batch.targets);
      shape = {steps, leaves, batch.samples(), batch.inputs.size(1)};
    }
  }
  h5::Image image = h5::Image::create();
  const std::vector<std::uint64_t> extents(shape.begin(), shape.end());
  image.root().write_array("tokens", tokens, extents);
  image.root().write_array("targets", targets, extents);
  write_file(path, image.finish());
}

}  // namespace zs::train
