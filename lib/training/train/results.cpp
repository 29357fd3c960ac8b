// SPDX-License-Identifier: Apache-2.0
#include "train/results.hpp"

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/weights.hpp"
#include "device/tensor.hpp"
#include "h5/image.hpp"
#include "tensorfile/torch.hpp"

namespace zs::train {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no nan.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json read(const std::string& path) {
  if (!std::filesystem::exists(path)) return Json::object();
  if (std::filesystem::is_directory(path)) throw Error(path, 0, "is a folder: --results takes a file");
  // It is read only to be written again.
  const std::string bytes = read_regular(std::filesystem::canonical(path).string(), most_in_memory()).bytes;
  Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw Error(path, 0, "is not a JSON object; --results only adds to one: name another file");
  return json;
}

/// Appends the numbers of a tensor, and notes its shape behind `outer`.
template <typename T>
void append(std::vector<T>& values, std::vector<std::uint64_t>& shape, std::initializer_list<std::int64_t> outer,
            const at::Tensor& tensor) {
  values.insert(values.end(), tensor.data_ptr<T>(), tensor.data_ptr<T>() + tensor.numel());
  shape.assign(outer.begin(), outer.end());
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
}

}  // namespace

std::string method_name(const Settings& settings) {
  if (!settings.method.empty()) return settings.method;
  const bool zero = settings.backend == "zero" || settings.backend == "deepspeed";
  return zero ? "zero" + std::to_string(settings.stage) : settings.backend;
}

void require_results(const std::string& path) { read(path); }

void write_results(const std::string& path, const std::string& method, const Outcome& outcome,
                   const metric::Table& records) {
  const auto& epochs = records.find("epoch")->integers();
  const auto &losses = records.find("loss")->reals(), &times = records.find("iteration_time")->reals();
  Json by_epoch = Json::array();
  double time = 0;
  for (std::size_t begin = 0, end = 0; begin < epochs.size(); begin = end) {
    double sum = 0;
    for (end = begin; end < epochs.size() && epochs[end] == epochs[begin]; ++end)
      sum += losses[end], time += times[end];
    by_epoch.push_back(number(sum / static_cast<double>(end - begin)));
  }
  Json result = {{"final_loss", number(outcome.final_loss)},
                 {"train_losses", by_epoch},
                 {"epoch_duration", number(time / static_cast<double>(by_epoch.size()))},
                 {"peak_memory_gb", static_cast<double>(outcome.peak_mem) / 1e9},
                 {"throughput", number(outcome.throughput)},
                 {"steps", outcome.steps},
                 {"state_digest", outcome.state_digest}};
  // The accuracy on images that are held out to the end, or else on the validation images, in per cent.
  for (const char* const name : {"final_valid_accuracy", "test_accuracy"}) {
    for (const auto& [key, value] : outcome.facts) {
      if (key == name) result["final_accuracy"] = number(100 * parse_real(value).value_or(std::nan("")));
    }
  }
  if (!metric::is_absent(outcome.valid_loss)) result["final_valid_loss"] = number(outcome.valid_loss);
  for (const auto& [key, value] : outcome.facts) {
    if (key == "final_valid_step") result[key] = parse_int(value).value_or(0);
  }
  if (!outcome.diverged.empty()) result["error"] = outcome.diverged;
  Json results = read(path);
  results[method] = std::move(result);
  write_file(path, results.dump(2) + "\n");
}

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
