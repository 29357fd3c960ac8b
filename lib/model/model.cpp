// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include "base/error.hpp"
#include "base/name.hpp"
#include "model/gpt2.hpp"

namespace zs::model {

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all = {&gpt2()};
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Family* const family : families()) all.insert(all.end(), family->models.begin(), family->models.end());
  return all;
}

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
  std::string list;
  for (const Family* const family : families()) {
    for (const std::string& name : family->models) {
      if (name == settings.name) return family->make(settings);
      list += (list.empty() ? "" : ", ") + name;
    }
  }
  throw Error("model '" + settings.name + "' is not known" + did_you_mean(settings.name, names()) + " (there are " +
              list + ")");
}

}  // namespace zs::model
