// SPDX-License-Identifier: Apache-2.0
// The attributes in which runs differ, and what follows for their bits.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/table.hpp"

namespace zs::attribute {

/// Facts about a run: attribute (any of its names) -> value.
using Facts = std::map<std::string, std::string>;

/// The fact under any of the attribute's names, or "".
std::string value(const Facts& facts, std::string_view any_name);

/// The same facts under their primary names, numbers in one spelling. If an attribute occurs under several names, its
/// primary name wins: a log's value over the command line's.
Facts named(const Facts& facts);
/// Like named(), plus global_batch_size if ranks, micro-batch and accumulation are known, and minus each attribute
/// whose `through` is known too.
Facts settled(const Facts& facts);

/// The role of an attribute in this run. As role(), but a layout whose `through` is unknown decides (2 ranks with an
/// unknown batch may be another global batch), and a layout that orders sums is arithmetic: a micro-batch.
Role role_in(const Facts& settled, std::string_view name);

/// The settled facts of one role. Two runs train the same thing if their facts of Role::decides are equal.
Facts of_role(const Facts& facts, Role role);

struct Difference {
  std::string name;  ///< primary
  Role role = Role::decides;
  std::vector<std::string> values;  ///< one per run; "" if the run does not have it
};

/// The attributes in which any two runs differ, also if only some runs have the attribute; in the table's order,
/// unknown ones last. If an attribute has several roles among the runs, the first in Role's order counts. Measurements
/// and identities are left out.
std::vector<Difference> differences(const std::vector<const Facts*>& runs);
std::vector<Difference> of_role(const std::vector<Difference>& differences, Role role);

/// The expected relation of the final bits of runs with these differences.
enum class Bits : std::uint8_t {
  same,              ///< only the layout differs: different bits are a fault
  other_arithmetic,  ///< bits are expected to differ, and different bits are not a fault
  other_training,    ///< the runs train different things
};
Bits expected_bits(const std::vector<Difference>& differences);
std::string_view name(Bits bits);

/// "layers (2 and 4) and weight decay (0.1 and not recorded)"; after `most` items the rest is counted.
std::string text(const std::vector<Difference>& some, std::size_t most = 6);

/// The conclusion as a clause: "train different things: they differ in layers (2 and 4)"; "are not expected to be the
/// same bits, because they differ in dtype ..."; "" if the same bits are expected.
std::string reason(const std::vector<Difference>& differences);

/// The meaning of two runs' state digests: "a fault: one training in one arithmetic ends with different bits", "other
/// bits: they train different things: ..."; "" if nothing follows.
std::string verdict_on_bits(const Facts& a, const Facts& b);

}  // namespace zs::attribute
