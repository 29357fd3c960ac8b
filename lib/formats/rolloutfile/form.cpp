// SPDX-License-Identifier: Apache-2.0
#include "rolloutfile/form.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "rolloutfile/rows.hpp"

namespace zs::rolloutfile {
namespace {

namespace fs = std::filesystem;
using enum Container;

constexpr std::array kForms{
    Form{"zs", "rollout-", ".jsonl", "\"zs_rollout\"", lines, "ids", nullptr, nullptr, "mask", "gen", "train", "ref",
         "entropy", "version", "record both sides with zs_probe"},
    Form{"zs", "rollout", ".h5", "zs_rollout", hdf5, "ids", nullptr, nullptr, "mask", "gen", "train", "ref", "entropy",
         "version", "record both sides with zs_probe"},
    Form{"NeMo-RL", "train_data_step", ".jsonl", "\"generation_logprobs\"", lines, "token_ids", nullptr, nullptr,
         "token_loss_mask", "generation_logprobs", "prev_logprobs", nullptr, nullptr, nullptr, ""},
    Form{"torchtitan", "rollout_samples", ".jsonl", "\"completion_token_ids\"", lines, "completion_token_ids",
         "prompt_token_ids", nullptr, nullptr, "completion_logprobs", nullptr, nullptr, nullptr, "max_policy_version",
         "torchtitan dumps the generator alone, with log_tensors and log_logprobs: record the trainer with zs_probe"},
    Form{"slime", "", ".pt", "rollout_id", torch, "tokens", nullptr, "response_length", "loss_mask",
         "rollout_log_probs", "log_probs", "ref_log_probs", "entropy", "weight_versions",
         "start slime with --dump-details DIR, and name rollout_data/N.pt and train_data/N.pt"},
    Form{"SkyRL", "", "_training_input.pkl", "TrainingInputBatch", pickle, "sequences", nullptr, "response_mask",
         "loss_mask", "rollout_logprobs", "action_log_probs", "base_action_log_probs", nullptr, nullptr,
         "set trainer.algorithm to use rollout log-probabilities: generator.sampling_params.logprobs"},
    Form{"prime-rl", "rank_", ".bin", "", msgpack, "0", nullptr, nullptr, "1", "3", nullptr, "9", nullptr, nullptr,
         "prime-rl dumps the generator alone: record the trainer with zs_probe"},
};

constexpr std::size_t kLooked = 1 << 16;  // bytes

std::string first_of(const std::string& path) {
  Input input(path);
  return read_start(input, kLooked);
}

/// Whether bytes begin as a list of lists of lists of msgpack.
bool nested_lists(std::string_view bytes) {
  for (int depth = 0; depth < 3; ++depth) {
    if (bytes.empty()) return false;
    const auto byte = static_cast<unsigned char>(bytes.front());
    const bool small = byte >= 0x90 && byte <= 0x9f, medium = byte == 0xdc;
    if (!small && !medium && byte != 0xdd) return false;
    bytes.remove_prefix(std::min<std::size_t>(bytes.size(), small ? 1 : medium ? 3 : 5));
  }
  return true;
}

bool is_of(const Form& form, const std::string& name, std::string_view bytes) {
  const bool named = name.starts_with(form.begins) && name.ends_with(form.ends);
  if (form.container == lines) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    // A long line may have its mark after the first bytes.
    return line.starts_with('{') && (line.find(form.mark) != line.npos || (named && line.size() >= kLooked));
  }
  if (!named) return false;
  return form.container == msgpack ? nested_lists(bytes) : bytes.substr(0, 4096).find(form.mark) != bytes.npos;
}

bool named_so(const std::string& name) {
  return std::ranges::any_of(kForms, [&](const Form& form) {
    return *form.begins
               ? name.starts_with(form.begins) && name.ends_with(form.ends)
               : name.ends_with(form.ends) && (form.container != torch || parse_int(fs::path(name).stem().string()));
  });
}

/// The dumps in a folder and in its known subfolders, by name and first bytes.
std::vector<std::string> dumps_in(const std::string& folder, bool inside = true, bool one = false) {
  std::vector<std::string> found;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string path = entry.string(), name = entry.filename().string();
    if (is_folder(entry)) {
      const bool known = name == "rollout_data" || name == "train_data" || name == "dumped_data" || name == "rollout" ||
                         (name.starts_with("step_") && parse_int(name.substr(5)));
      if (!inside || !known) continue;
      for (std::string& dump : dumps_in(path, false, one)) found.push_back(std::move(dump));
    } else if (named_so(name) && form_of(path, first_of(path))) {
      found.push_back(path);
    }
    if (one && !found.empty()) break;
  }
  std::ranges::sort(found, [](const std::string& x, const std::string& y) {
    return std::pair(last_number(x), x) < std::pair(last_number(y), y);
  });
  return found;
}

}  // namespace

const Form* form_of(const std::string& path, std::string_view bytes) {
  const std::string name = fs::path(path).filename().string();
  const auto found = std::ranges::find_if(kForms, [&](const Form& form) { return is_of(form, name, bytes); });
  return found == kForms.end() ? nullptr : &*found;
}

bool has_dumps(const std::string& folder) { return !dumps_in(folder, true, true).empty(); }

std::string text_alone(const std::string& path) {
  const std::string bytes = first_of(path);
  const std::string_view line = std::string_view(bytes).substr(0, bytes.find('\n'));
  const auto has = [&](std::string_view key) { return line.find(key) != line.npos; };
  if (line.starts_with('{') && has("\"gts\"") && has("\"output\""))
    return "is verl's dump of text, without token ids and log-probabilities: set "
           "actor_rollout_ref.rollout.calculate_log_probs=True and record with zs_probe";
  if (line.starts_with('{') && has("\"head_version\"") && has("\"completion\""))
    return "is AReaL's dump of text, without token ids and log-probabilities: record with zs_probe";
  if (bytes.starts_with("PAR1") && fs::path(path).filename().string().starts_with("completions_"))
    return "is TRL's dump of text, without token ids and log-probabilities: record with ZS_PROBE=DIR python -m "
           "zs_probe";
  return "";
}

Dump read(const std::string& path) {
  const std::vector<std::string> files = is_folder(path) ? dumps_in(path) : std::vector{path};
  Dump dump{.path = path};
  for (const std::string& file : files) {
    const Form* const form = form_of(file, first_of(file));
    if (!form) throw Error(file, 0, "is no dump of log-probabilities that zs-verify knows");
    if (dump.system.empty()) dump.system = form->system, dump.lacks = form->lacks;
    Rows rows(*form, file, dump);
    rows.read();
  }
  const bool any =
      std::ranges::any_of(dump.sequences, [](const Sequence& one) { return !one.gen.empty() || !one.train.empty(); });
  if (!any) throw Error(path, 0, "holds no log-probabilities" + (dump.lacks.empty() ? "" : ": " + dump.lacks));
  return dump;
}

}  // namespace zs::rolloutfile
