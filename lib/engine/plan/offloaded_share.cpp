// SPDX-License-Identifier: Apache-2.0
#include "plan/offloaded_share.hpp"

#include <cmath>

namespace zs::plan {
namespace {

/// Of all ranks that divide the unit.
double elements(const Unit& unit) { return static_cast<double>(unit.trained()) * unit.among; }

}  // namespace

void offload_share(Shape& shape, double ratio) {
  double surplus = 0;  // elements that are away beyond `ratio` of those so far
  for (Unit& unit : shape.units) {
    const double numbers = elements(unit), stays = surplus - ratio * numbers, away = stays + numbers;
    unit.stays = ratio <= 0 || std::abs(stays) < std::abs(away);
    surplus = unit.stays ? stays : away;
  }
}

double offloaded_share(const Shape& shape) {
  double away = 0;
  for (const Unit& unit : shape.units) away += shape.offloads(unit) ? elements(unit) : 0;
  const double all = trained(shape);
  return all > 0 ? away / all : 0;
}

}  // namespace zs::plan
