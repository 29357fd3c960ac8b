// SPDX-License-Identifier: Apache-2.0
// What the losses of a run are counted in, by what else it recorded.
#pragma once
#include <algorithm>
#include <string_view>

namespace zs::metric {

/// Units of a mean over tokens, and of one over images.
inline constexpr const char *kLossOfTokens = "nats/token", *kLossOfImages = "nats";
/// The column of a run that trains on images: images of a step, where a run of text has tokens.
inline constexpr const char* kImages = "images";

/// Gives the losses among `columns` (Column or ColumnInfo) their unit where the run counts images.
template <typename Columns>
void set_loss_unit(Columns& columns) {
  const auto named = [](std::string_view name) { return [name](const auto& column) { return column.name == name; }; };
  if (std::none_of(columns.begin(), columns.end(), named(kImages))) return;
  for (const std::string_view name : {"loss", "valid_loss"}) {
    const auto found = std::find_if(columns.begin(), columns.end(), named(name));
    if (found != columns.end()) found->unit = kLossOfImages;
  }
}

}  // namespace zs::metric
