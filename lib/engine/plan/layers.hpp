// SPDX-License-Identifier: Apache-2.0
// A model by its config.json, and what was measured of some of its layers as a profile of all.
#pragma once
#include <cstdint>
#include <string>

#include "plan/profile.hpp"

namespace zs::plan {

/// The number of layers that a folder's config.json, as Hugging Face writes it, says. Throws zs::Error, located, where
/// it says none, or where one of the keys that sizes come from is not what the profile's model has.
std::int64_t layers_of(const std::string& folder, const Profile& profile);

/// The profile of the same model with so many layers. Its layers, units one after another that have one size and are
/// numbered, take the mean of what was measured of them. Throws zs::Error where there are none.
Profile with_layers(const Profile& profile, std::int64_t layers);

}  // namespace zs::plan
