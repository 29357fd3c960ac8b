// SPDX-License-Identifier: Apache-2.0
// Which images a folder holds, of which classes, in which parts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::image {

/// Of one part of a data set.
struct Part {
  std::vector<std::string> paths{};
  std::vector<std::int64_t> labels{};  ///< as many
  std::int64_t size() const { return static_cast<std::int64_t>(paths.size()); }
  void add(std::string path, std::int64_t label);
};

/// In each part the first images of all classes, then the second ones, and so on: any beginning of it has its share of
/// each. In a class they are in the order of their paths.
struct Listing {
  std::vector<std::string> classes{};     ///< by label, in the order of their names
  Part training{}, validation{}, test{};  ///< the last two are empty where the folder does not name them
  std::vector<std::string> left_out{};    ///< files that are no images by their names
};

/// The folder is Food-101's (images/CLASS/*.jpg, meta/train.txt, and meta/test.txt as validation), or has train/ and
/// perhaps valid/ (or val/, validation/, dev/) and test/, each with a folder for each class, or has the folders of
/// classes itself. Throws zs::Error, located, at anything else: a class without an image, a class that train/ has not.
Listing list(const std::string& folder);

/// The names of a folder's classes; none where it is no folder of images.
std::vector<std::string> classes_of(const std::string& folder);

/// Moves the last share of each class, at least one image in all, from one part to another.
void divide(Part& from, Part& to, double share);

}  // namespace zs::image
