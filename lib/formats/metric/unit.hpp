// SPDX-License-Identifier: Apache-2.0
// The unit of a run's losses, from its other records.
#pragma once
#include <algorithm>
#include <string_view>

namespace zs::metric {

/// Units of a mean over tokens, and of a mean over images.
inline constexpr const char *kLossOfTokens = "nats/token", *kLossOfImages = "nats";
/// The column of a run that trains on images: images per step, instead of tokens.
inline constexpr const char* kImages = "images";

/// Sets the unit of the losses among `columns` (Column or ColumnInfo) if the run counts images.
template <typename Columns>
void set_loss_unit(Columns& columns) {
  const auto named = [](std::string_view name) { return [name](const auto& column) { return column.name == name; }; };
  if (std::ranges::none_of(columns, named(kImages))) return;
  for (const std::string_view name : {"loss", "valid_loss"}) {
    const auto found = std::ranges::find_if(columns, named(name));
    if (found != columns.end()) found->unit = kLossOfImages;
  }
}

}  // namespace zs::metric
