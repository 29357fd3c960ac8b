// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs::data {

namespace fs = std::filesystem;

std::int64_t Dataset::targets(std::int64_t) const { return 1; }

Samples read(const Dataset& dataset, std::int64_t first, std::int64_t count) {
  std::vector<Draw> draws;
  for (std::int64_t i = 0; i < count; ++i) draws.push_back({first + i, 0});
  return dataset.read(draws);
}

std::vector<std::string> HeldOut::without_effect(bool has_validation, bool has_test) const {
  std::vector<std::string> notes;
  if (has_validation && validation != HeldOut{}.validation)
    notes.emplace_back("validation_fraction has no effect: the data set has a validation part");
  if (has_test && test != HeldOut{}.test)
    notes.emplace_back("test_fraction has no effect: the data set has a test part");
  return notes;
}

std::string find(const std::string& name) {
  if (is_there(name)) return name;
  const char* const root = std::getenv("ZS_DATA");
  const std::string missing = "No such file or directory";
  if (!root || !*root)
    throw Error(name, 0, missing + "; a data set's name is looked for in the folder $ZS_DATA, which is not set");
  for (const std::string& known : {name, fs::path(name).filename().string()}) {
    const fs::path path = fs::path(root) / known;
    if (!known.empty() && is_there(path)) return path.string();
  }
  const fs::path place = fs::path(root) / fs::path(name).filename();
  throw Error(name, 0,
              missing + ", nor in $ZS_DATA: put the data set at " + place.string() + " (nothing is downloaded)");
}

}  // namespace zs::data
