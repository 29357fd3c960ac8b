// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "config/deepspeed_keys.hpp"
#include "config/known.hpp"

namespace zs::config {
namespace {

/// True, truth and 1e-3 in one spelling each, so that values compare.
std::string spelt(const Known& known, const std::string& value) {
  if (known.type == Type::boolean) return value == "True" || value == "true" || value == "1" ? "true" : "false";
  if (value.starts_with("torch.")) return value.substr(6);
  const auto number = known.type == Type::count ? std::nullopt : parse_real(value);
  return number ? to_text(*number) : value;
}

/// Sets `entry`, which came as `said` ("ds.json:3: zero_optimization.stage"), unless another value stands there.
void agree(Config& config, Entry entry, const std::string& said) {
  const Known& row = *known(entry.key);
  if (const Entry* const other = config.find(entry.key)) {
    if (spelt(row, other->value) == spelt(row, entry.value)) return;
    throw Error(said + " says " + entry.value + ", and " + other->origin + " says " + std::string(row.key) + " is " +
                other->value + ": leave one of them out");
  }
  config.set(std::move(entry));
}

/// A file of DeepSpeed while it is read.
class Reader {
 public:
  Reader(Config& config, const std::string& path) : config_(config), file_(Config::read(path)), path_(path) {}

  void run() {
    // The types first: keys of another optimizer or schedule are not unknown for what they are.
    require_types();
    for (const Entry& entry : file_.entries()) take(entry);
    dtype();
    autocast();
    optimizer();
    scheduler();
    passes();
    usual("zero.stage", "0");
    say_idle();
  }

 private:
  Config& config_;
  Config file_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> idle_;  // a reason, and the paths that have no effect for it

  [[noreturn]] static void fail(const Entry& entry, const std::string& what) {
    throw Error(entry.origin, 0, entry.key + ": " + what);
  }
  static std::string said(const Entry& entry) { return entry.origin + ": " + entry.key; }
  static bool is_auto(const Entry& entry) { return entry.value == "auto"; }
  /// The entry of a path that says something.
  const Entry* said_at(std::string_view path) const {
    const Entry* const entry = file_.find(path);
    return entry && !is_auto(*entry) ? entry : nullptr;
  }
  void sets(const Entry& entry, std::string_view key, const std::string& value) {
    agree(config_, {std::string(key), value, entry.origin, Kind::plain}, said(entry));
  }
  /// What DeepSpeed takes where the file says nothing.
  void usual(const std::string& key, const std::string& value) {
    if (!config_.has(key)) config_.set({key, value, path_ + ", DeepSpeed's default", Kind::plain});
  }

  void take(const Entry& entry) {
    const DeepSpeedKey* const key = deepspeed_key(entry.key);
    if (!key) {
      if (entry.value == "{}" && deepspeed_section(entry.key)) return;
      fail(entry, "DeepSpeed has no such key" + did_you_mean(entry.key, deepspeed_paths()));
    }
    if (entry.kind == Kind::null) return;
    const std::vector<std::string> harmless = words(key->harmless);
    switch (key->fate) {
      case Fate::read:
        break;
      case Fate::sets:
        if (is_auto(entry)) break;
        if (entry.kind == Kind::list) fail(entry, "'" + entry.value + "' is a list, expected one value");
        sets(entry, key->what, entry.value);
        break;
      case Fate::idle:
        idle(std::string(key->what), entry.key);
        break;
      case Fate::refused:
        if (!is_auto(entry) && std::find(harmless.begin(), harmless.end(), entry.value) == harmless.end())
          fail(entry, entry.value + " is not supported: " + std::string(key->what));
        break;
    }
  }

  void idle(const std::string& why, const std::string& path) {
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& one) { return one.first == why; });
    if (found == idle_.end())
      idle_.emplace_back(why, path);
    else
      found->second += ", " + path;
  }
  void say_idle() {
    for (const auto& [why, paths] : idle_) config_.warn(path_ + ": without effect here: " + paths + " (" + why + ")");
  }

  /// fp16 and bf16: which number format.
  void dtype() {
    const Entry* chosen = nullptr;
    for (const auto& [path, name] : {std::pair{"fp16.enabled", "float16"}, std::pair{"bf16.enabled", "bfloat16"},
                                     std::pair{"bfloat16.enabled", "bfloat16"}}) {
      const Entry* const enabled = said_at(path);
      if (!enabled) continue;
      if (file_.boolean(path)) {
        if (chosen) fail(*enabled, "true, as " + chosen->key + " is: one number format is enough");
        chosen = enabled;
        sets(*enabled, "training.dtype", name);
      } else if (const Entry* const dtype = config_.find("training.dtype"); dtype && dtype->value.ends_with(name)) {
        fail(*enabled, "false, and " + dtype->origin + " says training.dtype is " + dtype->value + ": leave one out");
      }
    }
  }

  /// torch_autocast: the format, where it is on.
  void autocast() {
    const Entry* const enabled = said_at("torch_autocast.enabled");
    const bool on = enabled && file_.boolean("torch_autocast.enabled");
    const Entry* const dtype = said_at("torch_autocast.dtype");
    if (on) {
      std::string name = dtype ? dtype->value : "float16";
      if (name.starts_with("torch.")) name.erase(0, 6);
      sets(dtype ? *dtype : *enabled, "training.autocast", name);
    } else if (enabled) {
      sets(*enabled, "training.autocast", "none");
    }
    if (!on && dtype) idle("torch_autocast.enabled is not true", dtype->key);
  }

  static std::string lower(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
  }

  void require_types() const {
    if (const Entry* const type = said_at("optimizer.type")) {
      const std::string name = lower(type->value);
      if (name != "adam" && name != "adamw")
        fail(*type, type->value + " is not supported: zs has AdamW, which DeepSpeed calls Adam too");
    }
    const Entry* const type = said_at("scheduler.type");
    static constexpr std::array kTypes = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
    if (type && std::find(kTypes.begin(), kTypes.end(), type->value) == kTypes.end()) {
      fail(*type, type->value + " is not supported: there are WarmupLR, WarmupDecayLR and WarmupCosineLR" +
                      did_you_mean(type->value, {kTypes.begin(), kTypes.end()}));
    }
  }

  void optimizer() {
    const Entry* const type = said_at("optimizer.type");
    if (!type) return;
    const std::string name = lower(type->value);
    if (const Entry* const betas = said_at("optimizer.params.betas")) {
      Config two;  // a list, read as lists are
      two.set({"zero.passes", betas->value, betas->origin, betas->kind});
      const auto values = two.list("zero.passes");
      if (values.size() != 2) fail(*betas, "'" + betas->value + "' is not two numbers");
      sets(*betas, "training.beta1", values[0]);
      sets(*betas, "training.beta2", values[1]);
    }
    const Entry* const rate = said_at("optimizer.params.lr");
    const Entry* const highest = said_at("scheduler.params.warmup_max_lr");
    if (rate && !highest) sets(*rate, "training.learning_rate", rate->value);
    if (rate && highest && parse_real(rate->value) != parse_real(highest->value))
      idle("scheduler.params.warmup_max_lr takes its place", rate->key);
    // torch's class has another default than DeepSpeed's.
    const bool torch = said_at("optimizer.params.torch_adam") && file_.boolean("optimizer.params.torch_adam");
    if (!file_.find("optimizer.params.weight_decay"))
      usual("training.weight_decay", torch && name == "adamw" ? "0.01" : "0");
  }

  /// compile.offload_*: passes beside the usual ones, from the step on that those before have been measured for.
  void passes() {
    const auto asked = [&](const char* path) {
      const Entry* const entry = said_at(path);
      return entry && file_.boolean(path) ? entry : nullptr;
    };
    const Entry *const shards = asked("compile.offload_parameters"),
                       *const states = asked("compile.offload_opt_states"),
                       *const inputs = asked("compile.offload_activation"),
                       *const first = shards   ? shards
                                      : states ? states
                                               : inputs;
    if (!first) return;
    if (!asked("compile.deepcompile")) {
      for (const Entry* const entry : {shards, states, inputs}) {
        if (entry) idle("compile.deepcompile is not true", entry->key);
      }
      return;
    }
    sets(*first, "zero.passes",
         std::string("0:ALL,3:") + (shards ? "offload_parameters+" : "") + "ALL" +
             (states ? "+offload_adam_states" : "") + (inputs ? "+offload_activation" : ""));
  }

  void scheduler() {
    const Entry* const type = said_at("scheduler.type");
    if (!type) return;
    sets(*type, "training.scheduler", type->value);
    if (const Entry* const highest = said_at("scheduler.params.warmup_max_lr")) {
      if (highest->kind == Kind::list) fail(*highest, "'" + highest->value + "' is a list, expected one value");
      sets(*highest, "training.learning_rate", highest->value);
    } else if (type->value == "WarmupDecayLR" && !file_.find("scheduler.params.warmup_max_lr")) {
      fail(*type, "warmup_max_lr is not set, and DeepSpeed takes 0.001 then, whatever lr says: set it, or \"auto\"");
    }
    if (type->value != "WarmupLR" && !file_.find("scheduler.params.total_num_steps"))
      fail(*type, "total_num_steps is not set: set it, or \"auto\"");
    if (!file_.find("scheduler.params.warmup_num_steps")) usual("training.lr_warmup_steps", "1000");
    if (!file_.find("scheduler.params.warmup_type")) usual("training.warmup_type", "log");
  }
};

/// What a method stands for.
struct Method {
  std::string_view name;
  std::array<std::pair<std::string_view, std::string_view>, 4> settings;
};
constexpr auto kMethods = std::to_array<Method>({
    {"ddp", {{{"zero.backend", "ddp"}}}},
    {"single", {{{"zero.backend", "single"}}}},
    {"zero1", {{{"zero.backend", "zero"}, {"zero.stage", "1"}}}},
    {"zero2", {{{"zero.backend", "zero"}, {"zero.stage", "2"}}}},
    {"zero3", {{{"zero.backend", "zero"}, {"zero.stage", "3"}}}},
    {"zeropp",
     {{{"zero.backend", "zero"},
       {"zero.stage", "3"},
       {"zero.quantized_weights", "true"},
       {"zero.quantized_gradients", "true"}}}},
    {"single_gpu_offload", {{{"zero.stage", "2"}, {"zero.offload_device", "cpu"}}}},
});

bool typed(const Entry& entry) { return entry.origin.starts_with("--"); }

}  // namespace

void add_deepspeed(Config& config, const std::string& path) { Reader(config, path).run(); }

void add_method(Config& config) {
  const Entry* const found = config.find("zero.method");
  if (!found) return;
  const Entry method = *found;
  config.text("zero.method");  // one of the choices
  for (const Method& row : kMethods) {
    if (row.name != method.value) continue;
    for (const auto& [key, value] : row.settings) {
      if (key.empty()) continue;
      const Entry* const other = config.find(key);
      Entry entry{std::string(key), std::string(value), method.origin, Kind::plain};
      if (other && typed(method) && !typed(*other))
        config.set(std::move(entry));
      else
        agree(config, std::move(entry), method.origin + ": the method " + method.value);
    }
  }
}

}  // namespace zs::config
