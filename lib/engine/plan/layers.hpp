// SPDX-License-Identifier: Apache-2.0
// A model by its config.json, and a profile for all its layers from measurements of some of them.
#pragma once
#include <cstdint>
#include <string>

#include "plan/profile.hpp"

namespace zs::plan {

/// The number of layers in a folder's config.json (Hugging Face's format). Throws zs::Error, located, if it is missing,
/// or if a key that determines sizes differs from the profile's model.
std::int64_t layers_of(const std::string& folder, const Profile& profile);

/// The profile of the same model with `layers` layers. Its layers, consecutive numbered units of one size, get the mean
/// of the measured ones. Throws zs::Error if there are none.
Profile with_layers(const Profile& profile, std::int64_t layers);

}  // namespace zs::plan
