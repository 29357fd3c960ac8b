// SPDX-License-Identifier: Apache-2.0
// The values of curves for the script of an HTML page.
#pragma once
#include <string>

#include "figure/figure.hpp"
#include "figure/theme.hpp"

namespace zs::figure {

/// The curves of a panel as JSON:
/// {"x":LABEL,"series":[{"name":..,"colour":N,"x":[..],"y":[..]}|{"name":..,"colour":N,"same":INDEX}]}, null for a
/// value that is not finite; "same" if all values are equal to an earlier curve's.
std::string curves_json(const Panel& panel, const Theme& theme);

}  // namespace zs::figure
