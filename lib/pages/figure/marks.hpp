// SPDX-License-Identifier: Apache-2.0
// The marks of a figure as data: curves, bars, cells, and their colours.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zs::figure {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// A colour of the theme: a hue of the palette, plain or strong (darker on paper, lighter on a dark page), or one of
/// the fixed roles. Hues beyond the palette are its strong ones: twice as many as it has colours are different.
struct Ink {
  enum class Role : std::uint8_t { palette, text, note, grid, paper, failure };
  std::size_t hue = 0;
  bool strong = false;
  Role role = Role::palette;

  Ink() = default;
  Ink(std::size_t hue, bool strong = false) : hue(hue), strong(strong) {}  // implicit on purpose
  Ink(Role role) : role(role) {}
  bool operator==(const Ink&) const = default;
};

/// One curve. A y that is not finite is a gap.
struct Series {
  std::string name;  ///< as in the legend
  Ink colour{};
  std::vector<double> x, y;           ///< equal length, x ascending
  std::vector<double> raw{};          ///< if y is smoothed: the original values, drawn faintly behind it; as long as y
  std::vector<double> low{}, high{};  ///< a band around y, as long as y; empty for none
  std::string note{};                 ///< shown after the name in the legend, "FAILED"
  bool rest = false;                  ///< one of many: drawn in grey, without its name
  bool behind = false;                ///< drawn before the others
  /// Among coinciding curves this one is number `layer` of `layers`; renderers stripe them. `under` is the index of the
  /// first of them.
  std::size_t layer = 0, layers = 1, under = 0;
};

/// One bar. Without a value (not finite) only its label is drawn, marked as a failure if `failed`.
struct Bar {
  std::string name;
  Ink colour{};
  double value = kNone;
  double low = kNone, high = kNone;  ///< error bar; not finite: none
  std::string label{};               ///< the value with its unit, printed at the bar's end
  bool failed = false;
  double inner = kNone;        ///< a second value, marked by a tick inside the bar; not finite: none
  double from = 0;             ///< the start of the bar: above 0 it is a box
  std::vector<double> dots{};  ///< single values, drawn as points
};

/// One cell of a heat map.
struct Cell {
  std::size_t column = 0, row = 0;
  double value = kNone;
  std::string label{};
  bool best = false;
};

}  // namespace zs::figure
