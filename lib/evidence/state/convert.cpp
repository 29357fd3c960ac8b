// SPDX-License-Identifier: Apache-2.0
#include "state/convert.hpp"

#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/optimizer.hpp"
#include "checkpoints/outgoing.hpp"
#include "checkpoints/read.hpp"
#include "checkpoints/weights.hpp"
#include "state/diff.hpp"
#include "state/items.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using namespace checkpoints;

/// Tensors on their way to a file, by the names that they get there.
using Outgoing = std::vector<std::pair<std::string, const Whole*>>;

/// Other programs find the state of a parameter by its name, and the groups that they read are AdamW's.
void require_named(const State& state, const Form& form) {
  for (const Parameter& parameter : state.parameters) {
    // Plain SGD has no state, and its settings are of all: PyTorch needs no names.
    const bool held = !parameter.moments.empty() || parameter.step || form.name != "dcp";
    if (held && parameter.name.starts_with('#'))
      throw Error(
          state.path, 0,
          "numbers the optimizer's states, and shapes do not tell whose each is: convert --to hf or safetensors");
  }
  const auto said = state.facts.find("training.optimizer");
  if (said == state.facts.end() || said->second == "adamw" || said->second == "adam") return;
  throw Error(state.path, 0,
              "was trained with the optimizer " + said->second +
                  ", and zs writes AdamW's groups alone: convert --to hf or safetensors");
}

void require_whole(const State& state) {
  if (state.faults.empty()) return;
  throw Error(state.faults.front() +
              (state.faults.size() > 1
                   ? " (and " + to_text(static_cast<std::int64_t>(state.faults.size() - 1)) + " more faults)"
                   : "") +
              "; a checkpoint that is not whole is not converted");
}

void write(const std::string& path, const Outgoing& outgoing, const tensorfile::Metadata& metadata) {
  tensorfile::NamedTensors tensors;
  for (const auto& [name, whole] : outgoing) tensors.emplace_back(name, streamed(*whole, name));
  tensorfile::write_safetensors(path, tensors, metadata);
}

/// Compares a written file with its source.
void require_equal(const std::string& path, const Outgoing& outgoing, Converted& made) {
  std::map<std::string, const Whole*> expected(outgoing.begin(), outgoing.end());
  const tensorfile::Safetensors back = tensorfile::read_safetensors(path);
  for (const auto& [name, tensor] : back.tensors) {
    const auto found = expected.find(name);
    if (found == expected.end()) throw Error(path, 0, name + ": was not meant to be written: this is a fault of zs");
    const tensorfile::Tensor source = joined(*found->second, name);
    const bool same = source.dtype == tensor.dtype && source.shape == tensor.shape && same_bits(source, tensor);
    if (!same) throw Error(path, 0, name + ": what was written is not what was read: is the disk full or damaged?");
    source.storage->forget(), tensor.storage->forget();
    ++made.tensors, made.bytes += found->second->bytes();
    expected.erase(found);
  }
  if (!expected.empty()) throw Error(path, 0, expected.begin()->first + ": was not written");
}

Outgoing weights(const State& state) {
  Outgoing outgoing;
  for (const Parameter& parameter : state.parameters) {
    if (!parameter.tied.empty() && state.find(parameter.tied)) continue;
    if (parameter.weight)
      outgoing.emplace_back(parameter.name, &*parameter.weight);
    else if (parameter.master)
      outgoing.emplace_back(parameter.name, &*parameter.master);
  }
  if (outgoing.empty()) throw Error(state.path, 0, "holds no weights");
  return outgoing;
}

void configuration(const State& state, const std::string& to) {
  std::error_code failure;
  const std::string from = state.folder + "/config.json";
  if (!fs::is_regular_file(from, failure)) return;
  fs::copy_file(from, to + "/config.json", failure);
  if (failure) throw Error(to + "/config.json", 0, failure.message());
}

std::string number_of(std::size_t count, const std::string& what) {
  return to_text(static_cast<std::int64_t>(count)) + " " + what;
}

Converted convert_hf(const State& state, const std::string& to) {
  for (const Parameter& parameter : state.parameters) {
    if (parameter.name.ends_with(".lora_A.weight"))
      throw Error(state.path, 0,
                  "has adapters (" + parameter.name +
                      "), which no class of transformers knows: zs-runs export RUN DIR merges those of a run");
  }
  NewFolder folder(to);
  Converted made;
  const std::string file = folder.path() + "/model.safetensors";
  write(file, weights(state), {{"format", "pt"}});
  require_equal(file, weights(state), made);
  configuration(state, folder.path());
  std::map<std::string, std::size_t> left;
  std::size_t steps = 0, tied = 0;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.weight && parameter.master && parameter.weight->dtype != parameter.master->dtype)
      ++left["float32 masters"];
    for (const auto& [kind, whole] : parameter.moments) ++left[kind];
    steps += parameter.step || !parameter.values.empty() ? 1 : 0;
    tied += !parameter.tied.empty() && state.find(parameter.tied) ? 1 : 0;
  }
  for (const auto& [kind, count] : left) made.left_out.push_back(kind + " of " + number_of(count, "parameters"));
  if (steps > 0) made.left_out.push_back("the optimizer's steps and settings");
  if (tied > 0) made.left_out.push_back(number_of(tied, "names of tied parameters"));
  if (!state.facts.empty())
    made.left_out.push_back(number_of(state.facts.size(), "values of schedule, scaler, random states and training"));
  folder.publish();
  return made;
}

/// All of the state, in files of safetensors.
void write_states(const State& state, const std::string& to) {
  write(to + "/model.safetensors", weights(state), {{"format", "pt"}});
  configuration(state, to);
  Outgoing optimizer;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.weight && parameter.master) optimizer.emplace_back("master." + parameter.name, &*parameter.master);
    for (const auto& [kind, whole] : parameter.moments) optimizer.emplace_back(kind + "." + parameter.name, &whole);
  }
  std::map<std::string, Whole> values;
  const tensorfile::Metadata metadata = metadata_of(state, values);
  for (const auto& [name, whole] : values) optimizer.emplace_back(name, &whole);
  write(to + "/" + kOptimizerFile, optimizer, metadata);
}

/// Reads the result back and compares: throws Error if it differs from the source, and adds to `made` what the form
/// cannot store.
void require_same(const State& state, const std::string& written, const std::string& to, Converted& made) {
  State back = read(written);
  for (const auto& [fact, text] : state.facts) {
    if (kind_of(fact) != "training" || back.facts.contains(fact)) continue;
    // PyTorch's form has it in another dict.
    const std::string there = "training.train_state." + fact.substr(fact.find('.') + 1);
    if (auto held = back.facts.extract(there)) held.key() = fact, back.facts.insert(std::move(held));
    if (auto held = back.values.extract(there)) held.key() = fact, back.values.insert(std::move(held));
  }
  if (!back.faults.empty()) throw Error(to, 0, "was not written whole: " + back.faults.front());
  const state::Difference found = diff(state, back, {}, {}, Extent::every);
  for (const auto& [key, value] : found.lines) {  // a number that is not finite may well be the same
    if (key == "what" || (key == "reason" && found.verdict != compare::Verdict::inconclusive))
      throw Error(to, 0, "what was written is not what was read: " + value);
    if (key == "only in " + state.path) made.left_out.push_back(value);
  }
  std::set<std::string> digests;
  const auto note = [&](const std::string& name, const std::string& text) {
    if (text.find("sha256 ") != std::string::npos && !literal(text)) digests.insert(name);
  };
  for (const auto& [fact, text] : back.facts) {
    if (!back.values.contains(fact)) note(fact, text);
  }
  for (const Parameter& parameter : back.parameters) {
    for (const auto& [key, text] : parameter.hyper) note(key, text);
  }
  for (const std::string& name : digests) made.left_out.push_back(name + ": all but its digest");
  for (const Parameter& parameter : back.parameters) {
    made.tensors +=
        (parameter.weight ? 1 : 0) + (parameter.master ? 1 : 0) + static_cast<int>(parameter.moments.size());
  }
  for (const File& file : back.files) made.bytes += file.bytes;
}

/// What other programs need and this state does not have.
void assume(State& state, Converted& made) {
  std::vector<std::string> unsaid;
  for (const auto& group : groups(state)) {
    for (const char* const key : {"lr", "betas", "eps", "weight_decay"}) {
      if (!group.front()->hyper.contains(key) && std::ranges::find(unsaid, key) == unsaid.end())
        unsaid.emplace_back(key);
    }
  }
  if (!unsaid.empty())
    made.assumed.push_back(zs::joined(unsaid) +
                           " of the optimizer, which the checkpoint does not say: torch.optim.AdamW's");
  if (const std::string counted = count_both_ways(state.facts); !counted.empty()) made.assumed.push_back(counted);
  std::vector<std::string> names;
  for (const Parameter& parameter : state.parameters) names.push_back(parameter.name);
  if (!state.ordered && sort_as_modules(names)) state.sort(names), state.ordered = true;
}

}  // namespace

Converted convert(const State& from, const std::string& to, const Form& form) {
  require_whole(from);
  if (form.name == "hf") return convert_hf(from, to);
  const bool others = form.name != "safetensors";  // another program goes on from it
  State state = from;
  Converted made;
  if (others) require_named(state, form), assume(state, made);
  NewFolder folder(to);
  if (!others)
    write_states(state, folder.path());
  else if (form.name == "dcp")
    write_dcp(state, folder.path(), form);
  else
    write_deepspeed(state, folder.path(), form, form.name == "universal");
  require_same(state, folder.path(), to, made);
  folder.publish();
  return made;
}

}  // namespace zs::state
