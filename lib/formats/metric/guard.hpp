// SPDX-License-Identifier: Apache-2.0
// Reads HDF5 data that might crash the HDF5 library in a separate process.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace zs::metric {

/// True if the image uses structures without checksums (formats before 1.10, texts of variable length): the library
/// follows damaged addresses in them until it crashes. Files of zs have none.
bool needs_guard(std::string_view image);

/// The result of `work`, computed in a child process. Throws Error with the message of an exception of `work`, or if
/// the child crashes or needs more than `seconds` of processor time.
std::string guarded(const std::function<std::string()>& work, unsigned seconds);

}  // namespace zs::metric
