// SPDX-License-Identifier: Apache-2.0
// In which attributes runs differ, and what may be said about their bits because of it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/table.hpp"

namespace zs::attribute {

/// What is known about a run, by any names.
using Facts = std::map<std::string, std::string>;

/// The fact by any of its names, or "".
std::string value(const Facts& facts, std::string_view any_name);

/// The same facts under their primary names, numbers in one spelling; a fact under its own name comes before one under
/// another: what the log says before what the command line asked.
Facts named(const Facts& facts);
/// As named(), with global_batch_size where ranks, micro-batch and accumulation give it, and without what has its
/// effect through an attribute that is also known.
Facts settled(const Facts& facts);

/// The role of an attribute in this run. As role(), but a layout whose `through` is not known decides (2 ranks with an
/// unknown batch may be another global batch), and one that orders sums is arithmetic: a micro-batch always, others
/// where `reduction` is "any".
Role role_in(const Facts& settled, std::string_view name);

/// The settled facts of one role: two runs train the same thing where those that decide are equal.
Facts of_role(const Facts& facts, Role role);

struct Difference {
  std::string name;  ///< primary
  Role role = Role::decides;
  std::vector<std::string> values;  ///< one per run; "" where a run does not say
};

/// Where any two of the runs differ, also where only some say a thing; in the table's order, unknown ones last.
/// Of a role that is not the same in all runs the first in Role's order counts. Measurements and identities are left
/// out.
std::vector<Difference> differences(const std::vector<const Facts*>& runs);
std::vector<Difference> of_role(const std::vector<Difference>& all, Role role);

/// What is to be expected of the final bits of runs with these differences.
enum class Bits : std::uint8_t {
  same,              ///< nothing but the layout differs: different bits are a fault
  other_arithmetic,  ///< not expected to be the same bits, nor called a fault
  other_training,    ///< they train different things
};
Bits expected_bits(const std::vector<Difference>& all);
std::string_view name(Bits bits);

/// "layers (2 and 4) and weight decay (0.1 and not said)"; of more than `most` the rest is counted.
std::string text(const std::vector<Difference>& some, std::size_t most = 6);

/// The sentence that follows: "train different things: they differ in layers (2 and 4)"; "are not expected to be the
/// same bits, because they differ in dtype ..."; "" where the same bits are expected.
std::string reason(const std::vector<Difference>& all);

/// What the state digests of two runs mean, by what they differ in: "a fault: one training in one arithmetic ends with
/// different bits", "other bits: they train different things: ..."; "" where nothing can be said.
std::string verdict_on_bits(const Facts& a, const Facts& b);

}  // namespace zs::attribute
