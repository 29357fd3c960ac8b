// SPDX-License-Identifier: Apache-2.0
#include "train/export.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/weights.hpp"
#include "device/tensor.hpp"
#include "h5/image.hpp"
#include "tensorfile/torch.hpp"

namespace zs::train {

void save_initial(const std::string& folder, const unit::Units& units, std::uint64_t seed,
                  const unit::Beginning& begin) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder, 0, failure.message());
  tensorfile::Dict weights;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const at::Tensor flat = at::empty({units[i]->numel()});
    if (begin)
      begin(i, 0, device::floats(flat));
    else
      unit::initialise(*units[i], seed, 0, device::floats(flat));
    for (const auto& parameters : unit::tensors(*units[i]))
      weights.items.push_back(
          {parameters[0]->name_in_files(), checkpoint::for_file(parameters, [flat] { return flat; })});
  }
  tensorfile::write_torch(folder + "/pytorch_model.bin", std::move(weights));
}

namespace {

/// Appends the numbers of a tensor, and notes its shape behind `outer`.
template <typename T>
void append(std::vector<T>& all, std::vector<std::uint64_t>& shape, std::initializer_list<std::int64_t> outer,
            const at::Tensor& tensor) {
  all.insert(all.end(), tensor.data_ptr<T>(), tensor.data_ptr<T>() + tensor.numel());
  shape.assign(outer.begin(), outer.end());
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
}

}  // namespace

void dump_batches(const std::string& path, Batches& batches, std::int64_t steps, std::int64_t leaves) {
  std::vector<std::int64_t> tokens, targets;
  std::vector<float> pixels;
  std::vector<std::uint64_t> shape, target_shape;
  for (std::int64_t step = 1; step <= steps; ++step) {
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      const unit::Batch batch = batches.micro_batch(step, leaf);
      if (batches.labels() > 0)
        append(pixels, shape, {steps, leaves}, batch.inputs);
      else
        append(tokens, shape, {steps, leaves}, batch.inputs);
      append(targets, target_shape, {steps, leaves}, batch.targets);
    }
  }
  h5::Image image = h5::Image::create();
  if (batches.labels() > 0)
    image.root().write_array("pixels", pixels, shape);
  else
    image.root().write_array("tokens", tokens, shape);
  image.root().write_array("targets", targets, target_shape);
  write_file(path, image.finish());
}

}  // namespace zs::train
