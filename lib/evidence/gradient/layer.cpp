// SPDX-License-Identifier: Apache-2.0
#include "gradient/layer.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/number.hpp"

namespace zs::gradient {
namespace {

using Parts = std::vector<std::string>;

Parts parts(const std::string& name) {
  std::istringstream stream(name);
  Parts result;
  for (std::string part; std::getline(stream, part, '.');) result.push_back(part);
  if (result.empty()) result.push_back(name);
  return result;
}

/// The place of the first part that is a number, or the number of parts.
std::size_t number_at(const Parts& parts) {
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
  };
  return static_cast<std::size_t>(std::find_if(parts.begin(), parts.end(), is_number) - parts.begin());
}

/// The common first part of all blocks' names, "transformer", or "".
std::string shared_root(const std::vector<Parts>& names) {
  std::string root;
  for (const Parts& name : names) {
    const std::size_t at = number_at(name);
    if (at == name.size()) continue;
    if (at < 2 || (!root.empty() && root != name[0])) return "";
    root = name[0];
  }
  return root;
}

}  // namespace

std::vector<Layer> layers(const std::vector<std::string>& names) {
  std::vector<Parts> split;
  split.reserve(names.size());
  for (const std::string& name : names) split.push_back(parts(name));
  const std::string root = shared_root(split);
  std::vector<Layer> all;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Parts& name = split[i];
    const std::size_t number = number_at(name), begin = !root.empty() && name.size() > 1 && name[0] == root ? 1 : 0;
    const bool block = number < name.size();
    std::string layer = name[begin];
    for (std::size_t part = begin + 1; block && part <= number; ++part) layer += "." + name[part];
    const auto [place, is_new] = places.try_emplace(layer, all.size());
    if (is_new) all.push_back({layer, block, {}});
    all[place->second].tensors.push_back(i);
  }
  return all;
}

}  // namespace zs::gradient
