// SPDX-License-Identifier: Apache-2.0
// How optimizers move a parameter: the rule of a group's class and options.
#pragma once
#include <optional>
#include <string>

#include "probe/diagnosis.hpp"

namespace zs::probe {

enum class Kind { adam, sgd, lion, muon };

struct Rule {
  Kind kind = Kind::adam;
  double rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0, momentum = 0, dampening = 0;
  bool decoupled = true, amsgrad = false, maximize = false, nesterov = false;
};

/// The rule of a group; nothing if its class, the package that has it, or an option of it is not known.
std::optional<Rule> rule_of(const Group& group);

/// The class for a message: "optimi.AdamW", "FusedAdam with bias_correction".
std::string rule_name(const Group& group);

/// The number of an option; `otherwise` if the group has none.
double number_of(const Group& group, const std::string& key, double otherwise);

/// The names of the state: of Adam's first and second moment, of momentum.
struct Slots {
  std::string first, second;
};
Slots slots_of(const Rule& rule, const Step& step, const std::string& parameter);

}  // namespace zs::probe
