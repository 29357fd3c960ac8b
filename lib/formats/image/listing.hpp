// SPDX-License-Identifier: Apache-2.0
// Lists the images of a folder with their classes and parts (training, validation, test).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::image {

/// One part of a data set.
struct Part {
  std::vector<std::string> paths{};
  std::vector<std::int64_t> labels{};  ///< as many as images
  std::int64_t size() const { return static_cast<std::int64_t>(paths.size()); }
  void add(std::string path, std::int64_t label);
};

/// Each part has the first images of all classes, then the second ones, and so on, so that any prefix has its share of
/// each class. Within a class images are in the order of their paths.
struct Listing {
  std::vector<std::string> classes{};     ///< by label, in alphabetical order
  Part training{}, validation{}, test{};  ///< the last two are empty if the folder has no such parts
  std::vector<std::string> left_out{};    ///< files without an image's extension
};

/// The folder is Food-101's (images/CLASS/*.jpg, meta/train.txt, and meta/test.txt as validation), or has train/ and
/// optionally valid/ (or val/, validation/, dev/) and test/, each with a folder per class, or consists of the classes'
/// folders. Throws zs::Error, located, at anything else: a class without an image, a class that is missing in train/.
Listing list(const std::string& folder);

/// The names of a folder's classes; none if it is not a folder of images.
std::vector<std::string> classes_of(const std::string& folder);

/// Moves the last `share` of each class, at least one image in all, from one part to another.
void divide(Part& from, Part& to, double share);

}  // namespace zs::image
