// SPDX-License-Identifier: Apache-2.0
// Images as a data set: several threads decode them on demand.
#pragma once
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "image/transform.hpp"

namespace zs::data {

/// Generated images, used if no data set is named: a pattern for each class, with noise.
inline constexpr const char* kGenerated = "generated";

struct Images {
  std::string path;  ///< a folder as image::list() reads it, or kGenerated
  image::Transform transform{};
  std::uint64_t seed = 0;             ///< for random crops
  std::vector<std::string> labels{};  ///< of the model, by number: the names of the classes
  double percentage = 100;            ///< of each class
  std::int64_t most = 0;              ///< images to train on; 0: all
  HeldOut held_out{};
  bool skip_bad = false;  ///< leave out images that cannot be decoded, which needs a check of all of them
  int threads = 1;
};

/// Reads every file once, for the checksum, and checks its format. Throws zs::Error, located, at a folder without
/// images, at more classes than labels, at a class that is no label, and at bad images: with their number and the
/// first of them.
Split images(const Images& images);

}  // namespace zs::data
