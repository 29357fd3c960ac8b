// SPDX-License-Identifier: Apache-2.0
#include "gradient/select.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::gradient {
namespace {

using Json = nlohmann::ordered_json;

std::size_t place_of(const History& history, const std::string& name) {
  const auto found = std::ranges::find(history.layers, name, &Layer::name);
  return static_cast<std::size_t>(found - history.layers.begin());
}

bool has_tensor(const History& history, const std::string& name) {
  return std::ranges::find(history.names, name) != history.names.end();
}

/// Calls `use` with the kind, name, measure, cosine and noise of all that a checkpoint has.
void each(const History& history, std::size_t place,
          const std::function<void(const char*, const std::string&, const Measure&, double, const Noise&)>& use) {
  const Checkpoint& checkpoint = history.checkpoints[place];
  use("whole", "", checkpoint.whole, history.cosine(place), history.noise(place));
  for (std::size_t i = 0; i < history.layers.size(); ++i)
    use("layer", history.layers[i].name, checkpoint.layers[i], history.layer_cosine(place, i),
        history.layer_noise(place, i));
  for (std::size_t i = 0; i < history.names.size(); ++i)
    use("tensor", history.names[i], checkpoint.tensors[i], history.tensor_cosine(place, i),
        history.tensor_noise(place, i));
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(to_text(value)); }

}  // namespace

History by_tensor(History history) {
  history.layers.clear();
  for (std::size_t i = 0; i < history.names.size(); ++i) history.layers.push_back({history.names[i], false, {i}});
  for (Checkpoint& checkpoint : history.checkpoints) {
    checkpoint.layers = checkpoint.tensors;
    checkpoint.layer_dots = checkpoint.tensor_dots;
    checkpoint.layer_squares = checkpoint.tensor_squares;
  }
  return history;
}

History only(History history, const std::vector<std::string>& names) {
  const bool tensors = std::ranges::any_of(names, [&](const std::string& name) {
    return place_of(history, name) == history.layers.size() && has_tensor(history, name);
  });
  if (tensors) history = by_tensor(std::move(history));
  History chosen = history;
  chosen.layers.clear();
  for (Checkpoint& checkpoint : chosen.checkpoints)
    checkpoint.layers.clear(), checkpoint.layer_dots.clear(), checkpoint.layer_squares.clear();
  for (const std::string& name : names) {
    const std::size_t place = place_of(history, name);
    const bool found = place < history.layers.size();
    if (!found) chosen.missing.push_back(name);
    chosen.layers.push_back(found ? history.layers[place] : Layer{name, false, {}});
    for (std::size_t i = 0; i < chosen.checkpoints.size(); ++i) {
      const Checkpoint& from = history.checkpoints[i];
      chosen.checkpoints[i].layers.push_back(found ? from.layers[place] : Measure{});
      if (from.micro_batches > 0) chosen.checkpoints[i].layer_squares.push_back(found ? from.layer_squares[place] : 0);
      if (!from.layer_dots.empty()) chosen.checkpoints[i].layer_dots.push_back(found ? from.layer_dots[place] : 0);
    }
  }
  return chosen;
}

std::string to_tsv(const History& history) {
  std::string text =
      "place\tcheckpoint\tkind\tname\tvalues\tnorm\trms\tmean\tvariance\tlargest\tzeros\tnans\tinfinities\tcosine\t"
      "micro_batches\tbatch_variance\tnoise_scale\n";
  const auto known = [](double value) { return std::isnan(value) ? "" : to_text(value); };
  for (std::size_t i = 0; i < history.checkpoints.size(); ++i) {
    const Checkpoint& checkpoint = history.checkpoints[i];
    each(history, i,
         [&](const char* kind, const std::string& name, const Measure& measure, double cosine, const Noise& noise) {
           text += to_text(history.place(i)) + "\t" + printable(checkpoint.source.checkpoint) + "\t" + kind + "\t" +
                   printable(name) + "\t" + to_text(measure.count) + "\t" + to_text(measure.norm()) + "\t" +
                   (measure.count > 0 ? to_text(measure.rms()) : "") + "\t" + to_text(measure.mean) + "\t" +
                   (measure.finite() > 0 ? to_text(measure.variance()) : "") + "\t" + to_text(measure.largest) + "\t" +
                   to_text(measure.zeros) + "\t" + to_text(measure.nans) + "\t" + to_text(measure.infinities) + "\t" +
                   known(cosine) + "\t" +
                   (checkpoint.micro_batches > 0 ? to_text(static_cast<std::int64_t>(checkpoint.micro_batches)) : "") +
                   "\t" + known(noise.variance) + "\t" + known(noise.scale) + "\n";
         });
  }
  return text;
}

std::string to_json(const History& history) {
  Json document = {{"subject", history.subject}, {"checkpoints", Json::array()}, {"missing", history.missing}};
  for (std::size_t i = 0; i < history.checkpoints.size(); ++i) {
    Json checkpoint = {{"place", history.place(i)},
                       {"checkpoint", history.checkpoints[i].source.checkpoint},
                       {"path", history.checkpoints[i].source.path},
                       {"whole", Json::object()},
                       {"layers", Json::array()},
                       {"tensors", Json::array()}};
    if (history.checkpoints[i].micro_batches > 0) checkpoint["micro_batches"] = history.checkpoints[i].micro_batches;
    each(history, i,
         [&](const char* kind, const std::string& name, const Measure& measure, double cosine, const Noise& noise) {
           Json one = {{"name", name},
                       {"values", measure.count},
                       {"norm", number(measure.norm())},
                       {"rms", number(measure.rms())},
                       {"mean", number(measure.mean)},
                       {"variance", number(measure.variance())},
                       {"largest", number(measure.largest)},
                       {"zeros", measure.zeros},
                       {"nans", measure.nans},
                       {"infinities", measure.infinities},
                       {"cosine", std::isnan(cosine) ? Json() : Json(cosine)}};
           if (history.checkpoints[i].micro_batches > 0)
             one["batch_variance"] = number(noise.variance), one["noise_scale"] = number(noise.scale);
           if (name.empty() && kind == std::string("whole")) {
             one.erase("name");
             checkpoint["whole"] = std::move(one);
           } else {
             checkpoint[std::string(kind) + "s"].push_back(std::move(one));
           }
         });
    document["checkpoints"].push_back(std::move(checkpoint));
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zs::gradient
