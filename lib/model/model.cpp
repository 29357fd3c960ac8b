// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include "base/error.hpp"
#include "base/name.hpp"
#include "model/gpt2.hpp"

namespace zs::model {

std::vector<std::string> names() { return gpt2_names(); }

std::vector<unit::Parameter> begun(std::vector<unit::Parameter> parameters, const Settings& settings) {
  for (unit::Parameter& parameter : parameters) {
    if (!settings.init_gaussian) continue;
    parameter.init = unit::Parameter::Init::normal;
    parameter.mean = settings.init_mean;
    parameter.std = settings.init_std;
  }
  return parameters;
}

Model make(const Settings& settings) {
  auto model = make_gpt2(settings);
  if (!model) {
    std::string list;
    for (const std::string& name : names()) list += (list.empty() ? "" : ", ") + name;
    throw Error("model '" + settings.name + "' is not known" + did_you_mean(settings.name, names()) + " (there are " +
                list + ")");
  }
  return std::move(*model);
}

}  // namespace zs::model
