// SPDX-License-Identifier: Apache-2.0
#include "config/foreign.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "config/deepspeed_keys.hpp"
#include "config/known.hpp"

namespace zs::config {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kLargestFile = 1 << 20, kMostKeys = 2000;

/// The key of zs that people call `word` on command lines: an option of zs-train, or what it is called elsewhere; ""
/// for none.
std::string_view key_called(const std::string& word) {
  static const auto keys = [] {
    std::map<std::string, std::string_view> keys;
    for (const Known& row : known()) {
      for (const std::string& option : config::words(row.options)) keys.emplace(option, row.key);
    }
    for (const Known& row : known()) {
      for (const std::string& synonym : config::words(row.synonyms)) keys.emplace(synonym, row.key);
    }
    return keys;
  }();
  const auto found = keys.find(word);
  return found == keys.end() ? "" : found->second;
}

/// Whether zs could train with this value of a known key.
bool zs_takes(const Entry& entry) {
  try {
    Config one;
    one.set(entry);
    one.check();
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Collected {
 public:
  /// The value of the setting that is called `name`; if a file has it twice, the later one.
  void add(std::string name, Entry entry, bool replace) {
    const Known* const known = config::known(name);
    entry.key = known ? std::string(known->key) : std::string(key_called(name));
    const bool meant = !entry.key.empty();
    if (meant && (replace || !config_.find(entry.key)) && zs_takes(entry) && set(entry)) return;
    // The training's private keys go into a separate section if they are in none.
    const bool apart = name.find('.') == std::string::npos ? meant || !attribute::find(name) : known != nullptr;
    entry.key = apart ? "arguments." + name : std::move(name);
    set(std::move(entry));
  }
  Config take() { return std::move(config_); }

 private:
  bool set(Entry entry) {
    try {
      config_.set(std::move(entry));
      return true;
    } catch (const Error&) {  // no name of a key, or a section's: nothing is lost, the command is recorded whole
      return false;
    }
  }

  Config config_;
};

void add_named_file(const std::string& path, Collected& collected);

/// The names and values of a setting of zs in Accelerate's and axolotl's files: "theirs=ours;...", or the same.
struct Called {
  std::string_view theirs, key, values{};
};
constexpr std::string_view kReshards = "true=3;false=2;FULL_SHARD=3;SHARD_GRAD_OP=2;NO_SHARD=0";
constexpr auto kCalled = std::to_array<Called>({
    {"fsdp_config.fsdp_sharding_strategy", "zero.stage",
     "FULL_SHARD=3;HYBRID_SHARD=3;SHARD_GRAD_OP=2;HYBRID_SHARD_ZERO2=2;NO_SHARD=0;1=3;2=2;3=0;4=3;5=2"},
    {"fsdp_config.fsdp_reshard_after_forward", "zero.stage", kReshards},
    {"fsdp_config.reshard_after_forward", "zero.stage", kReshards},
    {"deepspeed_config.zero_stage", "zero.stage"},
    {"deepspeed_config.gradient_accumulation_steps", "training.gradient_accumulation_steps"},
    {"mixed_precision", "training.dtype", "bf16=bfloat16;fp16=float16;no=float32"},
    {"sequence_len", "model.context_length"},
    {"base_model", "model.name"},
});

std::string our_value(const Called& called, const std::string& value) {
  if (called.values.empty()) return value;
  const std::string pairs = ";" + std::string(called.values) + ";", sign = ";" + value + "=";
  const std::size_t at = pairs.find(sign);
  return at == std::string::npos ? "" : pairs.substr(at + sign.size(), pairs.find(';', at + 1) - at - sign.size());
}

/// A file's keys; of DeepSpeed's, Accelerate's and axolotl's also under their names in zs. `path`: the
/// file, beside which the files that it names may be.
void add_file(const Config& file, const std::string& path, Collected& collected, bool replace) {
  const bool deepspeed = file.find("zero_optimization.stage") || file.find("train_micro_batch_size_per_gpu") ||
                         file.find("train_batch_size");
  for (const Entry& entry : file.entries()) {
    if (entry.kind == Kind::null) continue;
    const DeepSpeedKey* const row = deepspeed ? deepspeed_key(entry.key) : nullptr;
    if (row && row->fate == Fate::sets && entry.value != "auto" && row->path == entry.key)
      collected.add(std::string(row->what), entry, replace);
    if (deepspeed)
      collected.add("deepspeed." + entry.key, entry, true);
    else
      collected.add(entry.key, entry, replace);
    if (deepspeed) continue;
    for (const Called& called : kCalled) {
      Entry ours = entry;
      ours.value = called.theirs == entry.key ? our_value(called, entry.value) : "";
      if (!ours.value.empty()) collected.add(std::string(called.key), std::move(ours), replace);
    }
    const bool names_file = entry.key == "deepspeed" || entry.key == "deepspeed_config.deepspeed_config_file";
    if (names_file && entry.value.ends_with(".json")) {
      add_named_file(entry.value, collected);
      add_named_file((fs::path(path).parent_path() / entry.value).string(), collected);
    }
  }
}

bool is_configuration(const std::string& path) {
  std::error_code none;
  const std::string ending = fs::path(path).extension().string();
  return (ending == ".yaml" || ending == ".yml" || ending == ".json") && is_file(path) &&
         fs::file_size(path, none) <= kLargestFile;
}

/// The file that a word of the command names. The command itself reports files that it cannot read.
void add_named_file(const std::string& path, Collected& collected) {
  if (!is_configuration(path)) return;
  try {
    const Config file = Config::parse(read_regular(fs::canonical(path).string(), kLargestFile).bytes, path);
    if (file.entries().size() <= kMostKeys) add_file(file, path, collected, false);
  } catch (const std::exception&) {
  }
}

/// The index of the training's first argument: after its script or module.
std::size_t begin_of_arguments(const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.ends_with(".py") || (i > 0 && word.ends_with(".sh"))) return i + 1;
    if (word == "-m" && i + 1 < command.size() && command[i + 1].find("torch.distributed") == std::string::npos &&
        command[i + 1].find("accelerate") == std::string::npos && command[i + 1].find("deepspeed") == std::string::npos)
      return i + 2;
  }
  return std::min<std::size_t>(1, command.size());
}

bool is_name(const std::string& text) {
  if (text.empty() || !(std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_')) return false;
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; });
}

std::string underscored(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

/// An option's name: "--lr", "-lr"; "" for another word, a negative number and an option of one letter among them.
std::string option_name(const std::string& word) {
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const std::string name = word.substr(dashes, word.find('=') - dashes);
  return dashes >= 1 && dashes <= 2 && name.size() > 1 && is_name(name) ? underscored(name) : "";
}

/// The place of '=' in Hydra's words: key=value, +key=value, ++key=value; npos in others.
std::size_t override_at(const std::string& word) {
  const std::size_t equals = word.find('='), from = std::min(word.find_first_not_of('+'), word.size());
  return equals != std::string::npos && equals > from && is_name(word.substr(from, equals - from)) ? equals
                                                                                                   : std::string::npos;
}

void add_arguments(const std::vector<std::string>& words, std::size_t begin, Collected& collected) {
  for (std::size_t i = begin; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = option_name(word);
    if (name.empty()) {
      if (override_at(word) != std::string::npos) {
        const std::size_t from = word.find_first_not_of('+');
        collected.add(word.substr(from, equals - from), {"", word.substr(equals + 1), "command", Kind::plain}, true);
      } else {
        add_named_file(word, collected);
      }
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      while (i + 1 < words.size() && option_name(words[i + 1]).empty() && words[i + 1] != "--" &&
             override_at(words[i + 1]) == std::string::npos)
        value += (value.empty() ? "" : " ") + words[++i];
      if (value.empty()) value = "true";
    }
    collected.add(name, {"", value, "--" + name, Kind::plain}, true);
    add_named_file(value, collected);
  }
}

}  // namespace

std::vector<std::string> words_of_shell(const std::vector<std::string>& command) {
  const std::string shell = command.empty() ? "" : fs::path(command[0]).filename().string();
  if (command.size() < 3 || command[1] != "-c" || (shell != "bash" && shell != "sh" && shell != "dash")) return command;
  try {
    return shell_words(command[2]);
  } catch (const Error&) {  // the shell will say so
    return command;
  }
}

Config foreign_configuration(const std::vector<std::string>& typed, const std::vector<std::string>& files,
                             const std::vector<std::string>& settings) {
  // Without secrets at once: the value of "--cookie session=X" would be read as another setting.
  const std::vector<std::string> command = without_secrets(words_of_shell(typed));
  Collected collected;
  for (const std::string& file : files) add_file(Config::read(file), file, collected, true);
  const std::size_t begin = begin_of_arguments(command);
  add_arguments(command, begin, collected);
  for (std::size_t i = 0; i + 1 < begin; ++i) {  // of the launcher, as Accelerate's
    if (option_name(command[i]) == "config_file") add_named_file(command[i + 1], collected);
  }
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) throw UsageError("--set: '" + setting + "' is not KEY=VALUE");
    collected.add(setting.substr(0, equals), {"", setting.substr(equals + 1), "--set", Kind::plain}, true);
  }
  return collected.take();
}

}  // namespace zs::config
