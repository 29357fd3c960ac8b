// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "config/deepspeed_keys.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "config/yaml.hpp"
#include "optimizer/optimizer.hpp"

namespace zs::config {
namespace {

/// A file of DeepSpeed while it is read.
class Reader {
 public:
  Reader(Config& config, const std::string& path) : config_(config), file_(Config::read(path)), path_(path) {}

  void run() {
    require_plain_keys(document(Input(path_).read_all(), path_));
    // The types first, so that an error about a key of another optimizer or schedule can say so.
    require_types();
    require_parameters();
    for (const Entry& entry : file_.entries()) take(entry);
    dtype();
    autocast();
    optimizer();
    scheduler();
    passes();
    usual("zero.stage", "0");
    if (!config_.has("training.max_grad_norm")) {
      config_.warn(path_ +
                   ": gradient_clipping is not set: it is 1.0, as DeepSpeed takes it from 0.19.3 on (none before); "
                   "set it, so that every version trains alike");
      usual("training.max_grad_norm", "1");
    }
    for (const auto& [why, paths] : idle_) config_.warn(path_ + ": without effect here: " + paths + " (" + why + ")");
  }

 private:
  Config& config_;
  Config file_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> idle_;  // a reason, and the paths that have no effect for it

  /// DeepSpeed's keys have no dot. In a configuration of zs a dot separates sections.
  void require_plain_keys(const YAML::Node& node) const {
    if (!node.IsMap()) return;
    for (const Pair& pair : pairs(node, path_, "DeepSpeed's configuration")) {
      if (pair.key.find('.') != std::string::npos)
        throw Error(path_, pair.line,
                    pair.key + ": DeepSpeed has no such key: write each section as a separate object");
      require_plain_keys(pair.value);
    }
  }

  [[noreturn]] static void fail(const Entry& entry, const std::string& what) {
    throw Error(entry.origin, 0, entry.key + ": " + what);
  }
  static bool is_auto(const Entry& entry) { return entry.value == "auto"; }
  bool is_true(std::string_view path) const { return said_at(path) && file_.boolean(path); }
  /// The entry of a path that says something.
  const Entry* said_at(std::string_view path) const {
    const Entry* const entry = file_.find(path);
    return entry && !is_auto(*entry) ? entry : nullptr;
  }
  void sets(const Entry& entry, std::string_view key, const std::string& value) {
    agree(config_, {std::string(key), value, entry.origin, Kind::plain}, place_of(entry));
  }
  /// DeepSpeed's default for a missing key.
  void usual(const std::string& key, const std::string& value) {
    if (!config_.has(key)) config_.set({key, value, path_ + ", DeepSpeed's default", Kind::plain, From::zs});
  }

  void take(const Entry& entry) {
    const DeepSpeedKey* const key = deepspeed_key(entry.key);
    if (!key) {
      const std::string_view first = std::string_view(entry.key).substr(0, entry.key.find('.'));
      if (first.starts_with('_')) return idle("a comment: DeepSpeed reads no such key", std::string(first));
      if (deepspeed_section(entry.key)) {
        if (entry.value == "{}") return;
        if (entry.kind == Kind::null) return take_null(entry);
        const bool enables = deepspeed_key(entry.key + ".enabled") != nullptr;
        fail(entry, entry.value + " is not a section: write {\"" + entry.key.substr(entry.key.rfind('.') + 1) +
                        "\": {" + (enables ? "\"enabled\": true" : "...") + "}}, or leave it out");
      }
      fail(entry, "DeepSpeed has no such key" + did_you_mean(entry.key, deepspeed_paths()));
    }
    if (entry.kind == Kind::null) return take_null(entry);
    if (const std::string why = idle_for(entry.key); !why.empty()) return idle(why, entry.key);
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
        if (is_auto(entry) || has_word(key->harmless, entry.value)) break;
        if (const std::string off = switched_off(entry.key); !off.empty())
          idle(off + " is false", entry.key);
        else
          fail(entry, entry.value + " is not supported: " + std::string(key->what));
        break;
    }
  }

  /// DeepSpeed allows null for a missing section, and in the parameters of its classes if these do.
  static void take_null(const Entry& entry) {
    static constexpr std::array kSections = {"zero_optimization.offload_optimizer", "zero_optimization.offload_param",
                                             "zero_optimization.zeropp_loco_param", "zero_optimization.zenflow",
                                             "bf16"};
    if (std::ranges::count(kSections, entry.key) > 0) return;
    if (deepspeed_section(entry.key)) fail(entry, "null is not a section for DeepSpeed: leave it out");
    if (entry.key.find(".params.") != std::string::npos && entry.key != "scheduler.params.warmup_max_lr")
      fail(entry, "is null: leave it out");
  }

  /// The `enabled` that is false, of a section around a key; "" if there is none. Compression has it below
  /// `shared_parameters`, beside the groups that it is for.
  std::string switched_off(const std::string& path) const {
    for (std::size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0; dot = path.rfind('.', dot - 1)) {
      for (const char* const name : {".enabled", ".shared_parameters.enabled"}) {
        const std::string key = path.substr(0, dot) + name;
        const Entry* const enabled = said_at(key);
        if (enabled && enabled->value == "false") return key;
      }
    }
    return "";
  }

  /// Why DeepSpeed itself ignores a key of this file; "" if it does not.
  std::string idle_for(const std::string& path) const {
    static constexpr std::array kDynamic = {"fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis",
                                            "fp16.consecutive_hysteresis", "fp16.min_loss_scale"};
    const bool dynamic = std::ranges::count(kDynamic, path) > 0;
    if ((dynamic || path == "fp16.loss_scale") && !half()) return "fp16.enabled is not true";
    const Entry* const scale = said_at("fp16.loss_scale");
    if (dynamic && scale && parse_real(scale->value).value_or(0) > 0) return "fp16.loss_scale is fixed";
    for (const std::string part : {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
      if (path != part + ".nvme_path") continue;
      const Entry* const device = said_at(part + ".device");
      if (!device || device->value != "nvme") return part + ".device is not nvme";
    }
    if (path == "zero_optimization.offload_optimizer.ratio") {
      const Entry* const device = said_at("zero_optimization.offload_optimizer.device");
      const Entry* const stage = said_at("zero_optimization.stage");
      if (!device || device->value == "none") return "zero_optimization.offload_optimizer.device is none";
      // DeepSpeed's other stages offload all.
      if (!stage || stage->value != "3") return "zero_optimization.stage is not 3";
    }
    return "";
  }
  /// Whether parameters are float16: by the file, or, if it has "auto", by the settings of zs.
  bool half() const {
    const Entry* const enabled = file_.find("fp16.enabled");
    if (!enabled) return false;
    if (!is_auto(*enabled)) return file_.boolean("fp16.enabled");
    const Entry* const dtype = config_.find("training.dtype");
    return dtype && dtype->value.ends_with("float16") && !dtype->value.ends_with("bfloat16");
  }

  void idle(const std::string& why, const std::string& path) {
    const auto found = std::ranges::find(idle_, why, [](const auto& one) { return one.first; });
    if (found == idle_.end()) return void(idle_.emplace_back(why, path));
    found->second += ", " + path;
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

  /// torch_autocast: the format, if it is on.
  void autocast() {
    const Entry* const enabled = said_at("torch_autocast.enabled");
    const bool on = is_true("torch_autocast.enabled");
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

  /// The optimizer of the file, or null if it names none that zs has. Adam is AdamW, unless adam_w_mode is false; SGD
  /// is torch.optim's class, which has no other spelling.
  const optimizer::Description* described() const {
    const Entry* const type = said_at("optimizer.type");
    const optimizer::Description* const row = type ? optimizer::named_by_deepspeed(type->value) : nullptr;
    if (!row || (row->kind == optimizer::Kind::sgd && type->value != row->deepspeed)) return nullptr;
    const bool in_gradient = said_at("optimizer.params.adam_w_mode") && !file_.boolean("optimizer.params.adam_w_mode");
    return row->kind == optimizer::Kind::adam && !in_gradient ? &optimizer::description(optimizer::Kind::adamw) : row;
  }

  /// A section without a type is one that DeepSpeed does not look at.
  void require_type(const std::string& section, const char* usual) const {
    const Entry* const type = file_.find(section + ".type");
    if (type && is_auto(*type)) fail(*type, "DeepSpeed has no type 'auto': write \"" + std::string(usual) + "\"");
    for (const Entry& entry : file_.entries()) {
      if (!type && entry.key.starts_with(section + ".") && entry.kind != Kind::null && entry.value != "{}")
        fail(entry, "DeepSpeed ignores a section " + section + " without a type: add \"type\": \"" +
                        std::string(usual) + "\", or leave the section out");
    }
  }

  void require_types() const {
    require_type("optimizer", "AdamW");
    require_type("scheduler", "WarmupLR");
    const Entry* const asked = said_at("optimizer.type");
    if (asked && !described()) {
      std::vector<std::string> names;
      for (const optimizer::Description& one : optimizer::all()) {
        if (!one.deepspeed.empty()) names.emplace_back(one.deepspeed);
      }
      fail(*asked, asked->value + " is not supported: zs has " + with_and(names) + did_you_mean(asked->value, names));
    }
    const Entry* const type = said_at("scheduler.type");
    static constexpr std::array kTypes = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
    if (type && std::ranges::count(kTypes, type->value) == 0)
      fail(*type, type->value + " is not supported: there are WarmupLR, WarmupDecayLR and WarmupCosineLR" +
                      did_you_mean(type->value, {kTypes.begin(), kTypes.end()}));
  }

  /// The class that DeepSpeed makes of an optimizer, and what that takes.
  std::pair<std::string, std::string> class_of(const optimizer::Description& row) const {
    const std::string adam =
        "lr betas eps weight_decay amsgrad torch_adam adam_w_mode fp32_optimizer_states max_grad_norm";
    const Entry* const host = said_at("zero_optimization.offload_optimizer.device");
    const bool of_host = host && (host->value == "cpu" || host->value == "nvme");
    switch (row.kind) {
      case optimizer::Kind::sgd:
        return {"torch.optim.SGD", "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"};
      case optimizer::Kind::lion:
        return of_host ? std::pair("DeepSpeedCPULion", "lr betas weight_decay fp32_optimizer_states")
                       : std::pair("FusedLion", "lr betas weight_decay set_grad_none");
      case optimizer::Kind::muon:
        return {"MuonWithAuxAdam",
                "lr muon_lr adam_lr betas eps weight_decay momentum ns_method per_head_muon fp32_optimizer_states"};
      default:
        break;
    }
    if (is_true("optimizer.params.torch_adam"))
      return {"torch.optim.AdamW", adam + " foreach maximize capturable differentiable fused"};
    if (of_host) return {"DeepSpeedCPUAdam", adam + " bias_correction"};
    return {"FusedAdam", adam + " bias_correction set_grad_none"};
  }

  /// The class that DeepSpeed calls takes these parameters, and no others: it ends with TypeError.
  void require_parameters() const {
    if (const optimizer::Description* const row = described()) {
      const auto& [name, parameters] = class_of(*row);
      require_parameters("optimizer", name, " " + parameters + " ");
    }
    const Entry* const type = said_at("scheduler.type");
    if (!type) return;
    const bool cosine = type->value == "WarmupCosineLR";
    std::string parameters = " warmup_num_steps warmup_type last_batch_iteration ";
    parameters += cosine ? "warmup_min_ratio cos_min_ratio " : "warmup_min_lr warmup_max_lr ";
    if (type->value != "WarmupLR") parameters += "total_num_steps ";
    require_parameters("scheduler", type->value, parameters);
    const Entry* const steps = said_at("scheduler.params.warmup_num_steps");
    if (steps && parse_real(steps->value).value_or(0) < 1)
      fail(*steps, "'" + steps->value + "' is not a whole number of at least 1, as DeepSpeed asks for");
  }
  void require_parameters(const std::string& section, const std::string& name, const std::string& parameters) const {
    const std::string front = section + ".params.";
    for (const Entry& entry : file_.entries()) {
      if (!entry.key.starts_with(front) || !deepspeed_key(entry.key)) continue;
      if (parameters.find(" " + entry.key.substr(front.size()) + " ") == std::string::npos)
        fail(entry, "DeepSpeed's " + name + " takes no such parameter: leave it out");
    }
  }

  void optimizer() {
    const Entry* const type = said_at("optimizer.type");
    if (!type) return;
    const optimizer::Description& row = *described();
    sets(*type, "training.optimizer", std::string(row.name));
    const Entry* const mode = said_at("optimizer.params.adam_w_mode");
    if (mode && row.kind == optimizer::Kind::adamw && !file_.boolean("optimizer.params.adam_w_mode"))
      idle("the type AdamW has no other", mode->key);
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
    const bool muons = row.kind == optimizer::Kind::muon;
    if (rate && !highest && !muons) sets(*rate, "training.learning_rate", rate->value);
    if (rate && highest && parse_real(rate->value) != parse_real(highest->value))
      idle("scheduler.params.warmup_max_lr takes its place", rate->key);
    // torch's AdamW has another default than DeepSpeed's own classes.
    if (!file_.find("optimizer.params.weight_decay"))
      usual("training.weight_decay", is_true("optimizer.params.torch_adam") ? "0.01" : "0");
    if (row.kind == optimizer::Kind::lion && !file_.find("optimizer.params.betas")) usual("training.beta2", "0.999");
    if (muons) muon(rate, highest);
  }

  /// MuonWithAuxAdam: two learning rates, which a scheduler's own replaces; and other defaults of Adam.
  void muon(const Entry* rate, const Entry* highest) {
    const Entry* const of_matrices = said_at("optimizer.params.muon_lr");
    const Entry* const of_others = said_at("optimizer.params.adam_lr");
    if (highest) {
      for (const Entry* const entry : {of_matrices, of_others}) {
        if (entry) idle("scheduler.params.warmup_max_lr takes its place", entry->key);
      }
    } else {
      const Entry* const matrices = of_matrices ? of_matrices : rate;
      const Entry* const others = of_others ? of_others : of_matrices ? rate : nullptr;
      const bool silent = !file_.find("optimizer.params.lr");
      if (matrices) sets(*matrices, "training.learning_rate", matrices->value);
      if (!matrices && silent) usual("training.learning_rate", "0.02");
      if (others) sets(*others, "training.adamw_learning_rate", others->value);
      if (!others && silent) usual("training.adamw_learning_rate", "0.0003");
    }
    if (!file_.find("optimizer.params.betas")) usual("training.beta2", "0.95");
    if (!file_.find("optimizer.params.eps")) usual("training.epsilon", "1e-10");
    const Entry* const method = said_at("optimizer.params.ns_method");
    if (method && method->value != "standard" && method->value != "gram")
      fail(*method, "'" + method->value + "' is neither standard nor gram");
    if (!method || method->value == "gram")
      config_.warn(path_ + ": optimizer.params.ns_method is gram" + (method ? "" : ", as DeepSpeed takes it") +
                   ", and zs iterates on the matrix (standard): the same steps up to rounding");
  }

  /// compile.offload_*: passes in addition to the usual ones, from the step at which those before have been measured.
  void passes() {
    const auto asked = [&](const char* path) { return is_true(path) ? said_at(path) : nullptr; };
    const Entry *const shards = asked("compile.offload_parameters"),
                       *const states = asked("compile.offload_opt_states"),
                       *const inputs = asked("compile.offload_activation"),
                       *const first = shards   ? shards
                                      : states ? states
                                               : inputs;
    if (!first) return;
    if (!is_true("compile.deepcompile")) {
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

}  // namespace

void add_deepspeed(Config& config, const std::string& path) { Reader(config, path).run(); }

}  // namespace zs::config
