// SPDX-License-Identifier: Apache-2.0
#include "state/describe.hpp"

#include <set>

#include "base/checksum.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::state {

std::vector<std::pair<std::string, std::string>> header(const State& state) {
  std::vector<std::pair<std::string, std::string>> lines = {{"checkpoint", state.path}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) lines.emplace_back(key, text);
  };
  const auto number = [](const std::optional<std::int64_t>& value) { return value ? to_text(*value) : std::string(); };
  if (state.folder != state.path) add("folder", state.folder);
  add("framework", state.framework + (state.version.empty() ? "" : " " + state.version));
  add("layout", state.layout);
  add("stage", number(state.stage));
  add("step", number(state.step));
  if (state.skipped && *state.skipped > 0) add("skipped steps", number(state.skipped));
  std::set<double> steps;
  std::int64_t trained = 0, frozen = 0, buffers = 0, tied = 0;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.step) steps.insert(*parameter.step);
    (parameter.buffer ? buffers : !parameter.tied.empty() ? tied : parameter.frozen ? frozen : trained) += 1;
  }
  if (steps.size() == 1) add("optimizer steps", to_text(*steps.begin()));
  if (steps.size() > 1) add("optimizer steps", to_text(*steps.begin()) + " to " + to_text(*steps.rbegin()));
  add("ranks", number(state.ranks));
  add("parameters", to_text(trained) + (frozen ? ", " + to_text(frozen) + " frozen" : "") +
                        (tied ? ", " + to_text(tied) + " tied" : "") +
                        (buffers ? ", " + to_text(buffers) + " buffers" : ""));
  std::uint64_t bytes = 0;
  for (const checkpoints::File& file : state.files) bytes += file.bytes;
  add("files", std::to_string(state.files.size()) + ", " + to_bytes_text(static_cast<double>(bytes)));
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const Parameter& parameter : state.parameters) {
    for (const char* const key : {"lr", "weight_decay", "betas", "eps"}) {
      const auto found = parameter.hyper.find(key);
      if (found == parameter.hyper.end()) continue;
      auto& [first, other] = settings[key];
      if (first.empty()) first = found->second;
      if (first != found->second) other = found->second;
    }
  }
  for (const auto& [key, values] : settings)
    add(key.c_str(), values.first + (values.second.empty() ? "" : ", in another group " + values.second));
  std::map<std::string, std::int64_t> kinds;
  for (const auto& [name, text] : state.facts) ++kinds[std::string(checkpoints::kind_of(name))];
  for (const auto& [kind, count] : kinds) add((kind + " values").c_str(), to_text(count));
  add("objects", zs::joined(state.objects));
  add("not read", zs::joined(state.unread));
  for (const std::string& note : state.notes) add("note", note);
  return lines;
}

std::vector<std::pair<std::string, const Whole*>> tensors_of(const Parameter& parameter) {
  std::vector<std::pair<std::string, const Whole*>> tensors;
  if (parameter.weight) tensors.emplace_back(parameter.buffer ? "buffer" : "weight", &*parameter.weight);
  if (parameter.master) tensors.emplace_back("master", &*parameter.master);
  for (const auto* const held : {&parameter.moments, &parameter.gradients}) {
    for (const auto& [kind, whole] : *held) tensors.emplace_back(kind, &whole);
  }
  return tensors;
}

Sheet kinds(const State& state) {
  struct Sum {
    std::int64_t tensors = 0, elements = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  std::vector<std::pair<std::string, std::string>> order;
  for (const Parameter& parameter : state.parameters) {
    for (const auto& [kind, whole] : tensors_of(parameter)) {
      const std::pair<std::string, std::string> key{kind, std::string(name_of(whole->dtype))};
      if (!sums.contains(key)) order.push_back(key);
      Sum& sum = sums[key];
      ++sum.tensors, sum.elements += whole->count(), sum.bytes += whole->bytes();
    }
  }
  Sheet sheet{{"kind", "type", "tensors", "elements", "bytes"}, {}};
  for (const auto& key : order) {
    const Sum& sum = sums[key];
    sheet.rows.push_back({key.first, key.second, to_text(sum.tensors), to_text(sum.elements),
                          to_text(static_cast<std::int64_t>(sum.bytes))});
  }
  return sheet;
}

Sheet ranks(const State& state) {
  struct Held {
    std::int64_t files = 0, elements = 0;
    std::uint64_t bytes = 0;
  };
  std::map<int, Held> held;
  for (const checkpoints::File& file : state.files) {
    if (file.rank >= 0) ++held[file.rank].files, held[file.rank].bytes += file.bytes;
  }
  for (const Parameter& parameter : state.parameters) {
    for (const auto& [kind, whole] : tensors_of(parameter)) {
      for (const Piece& piece : whole->pieces) {
        if (piece.rank >= 0) held[piece.rank].elements += piece.tensor.count();
      }
    }
  }
  Sheet sheet{{"rank", "files", "bytes", "elements"}, {}};
  for (const auto& [rank, one] : held)
    sheet.rows.push_back({std::to_string(rank), to_text(one.files), to_text(static_cast<std::int64_t>(one.bytes)),
                          to_text(one.elements)});
  return sheet;
}

Sheet tensors(const State& state, bool digests) {
  Sheet sheet{{"name", "kind", "type", "shape", "step", "tied", "parts", "files"}, {}};
  if (digests) sheet.header.emplace_back("sha256");
  for (const Parameter& parameter : state.parameters) {
    for (const auto& [kind, whole] : tensors_of(parameter)) {
      std::set<std::string> files;
      for (const Piece& piece : whole->pieces) files.insert(piece.file);
      sheet.rows.push_back({parameter.name, kind, std::string(name_of(whole->dtype)), tensorfile::to_text(whole->shape),
                            parameter.step ? to_text(*parameter.step) : "", parameter.tied,
                            std::to_string(whole->pieces.size()), zs::joined(files, " ")});
      if (digests) sheet.rows.back().push_back(sha256(joined_bytes(*whole, parameter.name + ": " + kind)));
    }
  }
  return sheet;
}

}  // namespace zs::state
