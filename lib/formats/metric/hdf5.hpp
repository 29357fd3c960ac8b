// SPDX-License-Identifier: Apache-2.0
// The HDF5 form, read: one file image to one store. Writing is to_h5 in file.hpp.
#pragma once
#include <string_view>

#include "metric/table.hpp"

namespace zs::metric {

/// The store in a file image. Throws Error (without a file name) where the image is damaged or holds no metrics.
Store from_h5(std::string_view image);

}  // namespace zs::metric
