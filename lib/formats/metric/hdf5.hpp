// SPDX-License-Identifier: Apache-2.0
// Reads the HDF5 form: from a file image to a store. For writing see to_h5 in file.hpp.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "metric/table.hpp"

namespace zs::metric {

/// The store in a file image. Throws Error (without a file name) if the image is damaged or holds no metrics.
Store from_h5(std::string_view image);

/// The attributes of the run in an image, without a look at its records; none if it is not as zs writes it.
std::map<std::string, std::string> facts_of(std::string_view image);

}  // namespace zs::metric
