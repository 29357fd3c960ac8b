// SPDX-License-Identifier: Apache-2.0
// Images as a data set: decoded when they are asked for, by several threads.
#pragma once
#include <string>

#include "data/dataset.hpp"
#include "image/transform.hpp"

namespace zs::data {

/// What is made up where no data set is named: a pattern for each class, with noise.
inline constexpr const char* kGenerated = "generated";

struct Images {
  std::string path;  ///< a folder as image::list() reads it, or kGenerated
  image::Transform transform{};
  std::uint64_t seed = 0;   ///< of random crops
  std::int64_t labels = 0;  ///< of the model
  double percentage = 100;  ///< of each class
  std::int64_t most = 0;    ///< images to train on; 0: all
  HeldOut held_out{};
  bool skip_bad = false;  ///< leave out images that cannot be decoded, which takes a look at all of them
  int threads = 1;
};

/// Every file is read once, for the checksum, and its form is looked at. Throws zs::Error, located, at a folder that is
/// none of images, at more classes than labels, and at bad images: with their number and the first of them.
Split images(const Images& images);

}  // namespace zs::data
