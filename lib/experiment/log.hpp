// SPDX-License-Identifier: Apache-2.0
// What stands in the log of a training, as far as scripts must know.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zs::experiment {

/// `log` without what was trained after step `done`, which will be trained again, without the result until then, and
/// without what a launcher said of its end.
std::string log_up_to(std::string_view log, std::int64_t done);

/// How far a log has come.
struct Reached {
  std::int64_t step = 0, expected = 0;  ///< 0: not known yet
  std::string loss;                     ///< of that step, as it stands there
};
/// Adds what `text`, the next whole lines of the log, says.
void add_lines(std::string_view text, Reached& reached);

}  // namespace zs::experiment
