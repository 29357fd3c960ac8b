// SPDX-License-Identifier: Apache-2.0
#include "setup/preprocessor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "model/configuration.hpp"

namespace zs::setup {
namespace {

using model::Configuration;

constexpr double kScale = 1.0 / 255;

/// Throws unless the class of the file does what zs computes; returns whether the defaults are those of ViT's.
bool is_vit(const Configuration& file) {
  const char* const key = file.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  const std::string type = file.text(key, "ViTImageProcessor");
  for (const char* const family : {"ViT", "CLIP", "DeiT", "Bit"}) {
    for (const char* const kind : {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor"}) {
      if (type == std::string(family) + kind) return type.starts_with("ViT");
    }
  }
  file.refuse(key, "is '" + type +
                       "', zs knows ViTImageProcessor, CLIPImageProcessor, DeiTImageProcessor and "
                       "BitImageProcessor: write one that makes the same samples");
}

std::array<double, 3> channels(const Configuration& file, const char* key, bool positive) {
  if (!file.has(key)) return {0.5, 0.5, 0.5};
  const nlohmann::json& value = file.values()[key];
  std::vector<std::optional<double>> given;
  const auto add = [&](const nlohmann::json& one) {
    given.push_back(one.is_number() ? std::optional(one.get<double>()) : std::nullopt);
  };
  if (!value.is_array())
    add(value);
  else if (value.size() == 3)
    std::ranges::for_each(value, add);
  const auto made = of_channels(given, positive);
  if (!made) file.refuse(key, "is " + value.dump() + kOfChannels);
  return *made;
}

/// The side of a square; 0 if it is none.
std::int64_t square(const Configuration& file, const char* key) {
  if (!file.has(key)) return 224;
  if (!file.values()[key].is_object()) return file.integer(key, 224);
  const Configuration size = file.part(key);
  const std::int64_t height = size.integer("height", 0);
  return height == size.integer("width", 0) ? height : 0;
}

/// How an image becomes a square of `size`: whole, or its middle.
bool takes_middle(const Configuration& file, std::int64_t size, bool chosen) {
  const bool crops = file.boolean("do_center_crop", false);
  const bool by_edge = file.has("size") && file.values()["size"].is_object() && file.part("size").has("shortest_edge");
  const std::int64_t side = by_edge ? file.part("size").integer("shortest_edge", 0) : square(file, "size");
  if (side == 0 || (by_edge && !crops) || (crops && square(file, "crop_size") != side)) {
    const std::string text = to_text(size);
    file.refuse("size", (file.has("size") ? "is " + file.values()["size"].dump() : "is missing") + ", do_center_crop " +
                            (crops ? "true" : "false") + ": zs takes the whole image, {\"height\": " + text +
                            ", \"width\": " + text + "} without do_center_crop, or the middle, {\"shortest_edge\": " +
                            text + "} with do_center_crop and a crop_size of " + text + ": write one of them");
  }
  if (side != size && !chosen) {
    file.refuse("size", "is " + to_text(side) + " pixels a side, and the model takes " + to_text(size) +
                            ": set --image_size " + to_text(side) + ", or write " + to_text(size));
  }
  return by_edge;
}

}  // namespace

std::optional<std::array<double, 3>> of_channels(const std::vector<std::optional<double>>& given, bool positive) {
  if (given.size() != 1 && given.size() != 3) return {};
  std::array<double, 3> made{};
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::optional<double>& one = given[i % given.size()];
    if (!one || !std::isfinite(*one) || (positive && !(*one > 0))) return {};
    made[i] = *one;
  }
  return made;
}

image::Transform read_preprocessor(const std::string& folder, std::int64_t size, bool chosen) {
  image::Transform transform{.size = size};
  const std::string path = folder + "/" + kPreprocessor;
  if (!std::filesystem::is_directory(folder) || !std::filesystem::exists(path)) return transform;
  const Configuration file = Configuration::read(path);
  if (!is_vit(file)) {
    for (const char* const key : {"size", "resample", "do_center_crop", "image_mean", "image_std"}) {
      if (!file.values().contains(key))
        file.refuse(key, "is missing, and the default of its class is not known: write it");
    }
  }
  file.require_known(
      "image_processor_type feature_extractor_type processor_class do_resize size resample do_center_crop crop_size "
      "do_rescale rescale_factor do_normalize image_mean image_std do_convert_rgb default_to_square data_format "
      "input_data_format return_tensors disable_grouping",
      "an image processor");
  if (!file.boolean("do_resize", true))
    file.refuse("do_resize", "is false: zs makes every image as large as the model takes it, write true");
  const std::int64_t filter = file.integer("resample", 2, 0);
  if (filter != 2 && filter != 3)
    file.refuse("resample", "is " + to_text(filter) + ", zs knows 2 (bilinear) and 3 (bicubic): write one of them");
  transform.filter = filter == 3 ? image::Filter::bicubic : image::Filter::bilinear;
  transform.middle = takes_middle(file, size, chosen);
  if (file.boolean("do_normalize", true)) {
    transform.mean = channels(file, "image_mean", false);
    transform.std = channels(file, "image_std", true);
  } else {
    transform.mean.fill(0), transform.std.fill(1);
  }
  // zs divides by 255: another factor is in the mean and the deviation.
  const double factor = file.boolean("do_rescale", true) ? file.real("rescale_factor", kScale) / kScale : 1 / kScale;
  if (!(factor > 0)) file.refuse("rescale_factor", "is 0, expected more");
  if (std::abs(factor - 1) > 1e-6) {
    for (double& mean : transform.mean) mean /= factor;
    for (double& std : transform.std) std /= factor;
  }
  return transform;
}

std::string preprocessor_json(const image::Transform& transform) {
  const bool middle = transform.middle || transform.augmentation;
  using Json = nlohmann::ordered_json;
  const Json square = {{"height", transform.size}, {"width", transform.size}};
  Json json = {{"image_processor_type", middle ? "CLIPImageProcessor" : "ViTImageProcessor"},
               {"do_resize", true},
               {"size", middle ? Json{{"shortest_edge", transform.size}} : square},
               {"resample", transform.filter == image::Filter::bicubic ? 3 : 2},
               {"do_center_crop", middle}};
  if (middle) json["crop_size"] = square;
  json.update(Json{{"do_convert_rgb", true},
                   {"do_rescale", true},
                   {"rescale_factor", kScale},
                   {"do_normalize", true},
                   {"image_mean", transform.mean},
                   {"image_std", transform.std}});
  return json.dump(2) + "\n";
}

}  // namespace zs::setup
