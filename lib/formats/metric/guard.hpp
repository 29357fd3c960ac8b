// SPDX-License-Identifier: Apache-2.0
// HDF5 data whose damage the HDF5 library may not survive, read in a process of its own.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace zs::metric {

/// True if the image uses structures without checksums (formats before 1.10, texts of variable length), where the
/// library follows damaged addresses until it crashes. What zs writes has none of them.
bool needs_guard(std::string_view image);

/// What `work` gives, computed in a child process. Throws Error with the message of what `work` throws, or where the
/// child crashes or needs more than `seconds` of processor time.
std::string guarded(const std::function<std::string()>& work, unsigned seconds);

}  // namespace zs::metric
