// SPDX-License-Identifier: Apache-2.0
// Reads the HDF5 form: from a file image to a store. For writing see to_h5 in file.hpp.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "metric/table.hpp"

namespace zs::metric {

/// The store in a file image. Throws Error (without a file name) if the image is damaged or holds no metrics.
Store from_h5(std::string_view image);

/// The attributes of the run in an image, without a look at its records; none if it is not as zs writes it.
std::map<std::string, std::string> facts_of(std::string_view image);

// Reads HDF5 data that might crash the HDF5 library in a separate process.

/// True if the image uses structures without checksums (formats before 1.10, texts of variable length): the library
/// follows damaged addresses in them until it crashes. Files of zs have none.
bool needs_guard(std::string_view image);

/// The result of `work`, computed in a child process. Throws Error with the message of an exception of `work`, or if
/// the child crashes or needs more than `seconds` of processor time.
std::string guarded(const std::function<std::string()>& work, unsigned seconds);

}  // namespace zs::metric
