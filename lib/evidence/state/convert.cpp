// SPDX-License-Identifier: Apache-2.0
#include "state/convert.hpp"

#include <filesystem>

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

/// The groups that other programs read are AdamW's.
void require_adamw(const State& state) {
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

/// Writes the file and compares it with its source.
void write(const std::string& path, const Outgoing& outgoing, const tensorfile::Metadata& metadata, Converted& made) {
  tensorfile::NamedTensors tensors;
  for (const auto& [name, whole] : outgoing) tensors.emplace_back(name, streamed(*whole, name));
  tensorfile::write_safetensors(path, tensors, metadata);
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
  write(folder.path() + "/model.safetensors", weights(state), {{"format", "pt"}}, made);
  configuration(state, folder.path());
  std::map<std::string, std::size_t> left;
  std::size_t steps = 0, tied = 0;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.weight && parameter.master && parameter.weight->dtype != parameter.master->dtype)
      ++left["float32 masters"];
    for (const auto& [kind, whole] : parameter.moments) ++left[kind];
    steps += parameter.step ? 1 : 0;
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

Converted convert_safetensors(const State& state, const std::string& to) {
  NewFolder folder(to);
  Converted made;
  write(folder.path() + "/model.safetensors", weights(state), {{"format", "pt"}}, made);
  configuration(state, folder.path());
  Outgoing optimizer;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.weight && parameter.master) optimizer.emplace_back("master." + parameter.name, &*parameter.master);
    for (const auto& [kind, whole] : parameter.moments) optimizer.emplace_back(kind + "." + parameter.name, &whole);
  }
  write(folder.path() + "/" + kOptimizerFile, optimizer, metadata_of(state), made);
  // Values other than tensors are read back too.
  State back;
  for (const Parameter& parameter : state.parameters) back.parameter(parameter.name);
  add_safetensors(back, folder.path() + "/" + kOptimizerFile);
  for (const Parameter& parameter : state.parameters) {
    const Parameter& other = *back.find(parameter.name);
    if (other.step != parameter.step || other.hyper != parameter.hyper || other.tied != parameter.tied)
      throw Error(to, 0, parameter.name + ": its step or settings were not written as they were read");
  }
  if (back.facts != state.facts || back.step != state.step)
    throw Error(to, 0, "a schedule or random state was not written as it was read");
  folder.publish();
  return made;
}

/// Reads the result back and compares: throws Error if it differs from the source, and adds to `made` what the form
/// cannot store.
void require_same(const State& state, const std::string& written, const std::string& to, Converted& made) {
  const State back = read(written);
  if (!back.faults.empty()) throw Error(to, 0, "was not written whole: " + back.faults.front());
  const state::Difference found = diff(state, back, {});
  for (const auto& [key, value] : found.lines) {  // a number that is not finite may well be the same
    if (key == "what" || (key == "reason" && found.verdict != compare::Verdict::inconclusive))
      throw Error(to, 0, "what was written is not what was read: " + value);
    if (key == "only in " + state.path) made.left_out.push_back(value);
  }
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
  for (const Parameter& parameter : back.parameters) {
    made.tensors +=
        (parameter.weight ? 1 : 0) + (parameter.master ? 1 : 0) + static_cast<int>(parameter.moments.size());
  }
  for (const File& file : back.files) made.bytes += file.bytes;
}

}  // namespace

Converted convert(const State& from, const std::string& to, const Form& form) {
  require_whole(from);
  if (form.name == "hf") return convert_hf(from, to);
  if (form.name == "safetensors") return convert_safetensors(from, to);
  require_adamw(from);
  State state = from;
  const std::string counted = count_both_ways(state.facts);
  std::vector<std::string> names;
  for (const Parameter& parameter : state.parameters) names.push_back(parameter.name);
  if (!state.ordered && sort_as_modules(names)) state.sort(names), state.ordered = true;
  NewFolder folder(to);
  Converted made;
  const std::vector<std::string> lost = form.name == "dcp"
                                            ? write_dcp(state, folder.path(), form)
                                            : write_deepspeed(state, folder.path(), form, form.name == "universal");
  require_same(state, folder.path(), to, made);
  for (const std::string& fact : lost) {
    if (kind_of(fact) == "training") made.left_out.push_back(fact);
  }
  folder.publish();
  if (!counted.empty()) made.assumed.push_back(counted);
  return made;
}

}  // namespace zs::state
