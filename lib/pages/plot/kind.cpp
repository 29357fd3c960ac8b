// SPDX-License-Identifier: Apache-2.0
#include "plot/kind.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/words.hpp"
#include "figure/axis.hpp"
#include "plot/figures.hpp"
#include "summary/difference.hpp"

namespace zs::plot {
namespace {

struct Row {
  Kind kind;
  Figure (*make)(const std::vector<Condition>&, const Options&);
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{"loss", "training loss, a curve per condition"}, loss_figure},
      {{"curve", "any column of the records, --value NAME, a curve per condition"}, curve_figure},
      {{"difference", "loss minus that of a baseline"}, difference_figure},
      {{"time", "mean iteration time with its 95 % interval"}, time_figure},
      {{"duration", "time of all steps of a run"}, duration_figure},
      {{"distribution", "how iteration times spread"}, distribution_figure},
      {{"memory", "peak memory of a rank"}, memory_figure},
      {{"throughput", "tokens, or images, per second"}, throughput_figure},
      {{"scaling", "throughput and efficiency over the number of ranks"}, scaling_figure},
      {{"revision", "ratios of time and memory to a baseline, and loss curves"}, revision_figure},
      {{"sweep", "a result over the parameters of a sweep, the best marked"}, sweep_figure},
  };
  return rows;
}

}  // namespace

std::vector<Kind> kinds() {
  std::vector<Kind> known;
  for (const Row& row : table()) known.push_back(row.kind);
  known.push_back({kGradients, "gradient norms of the layers of a run, and how they went over its checkpoints"});
  known.push_back({kTrace, "profiler traces: what each rank did, kernels, critical path, queues, memory, who waited"});
  return known;
}

Figure figure(const std::string& kind, const metric::Store& store, const std::string& source, Options options,
              bool by_stage) {
  for (const Row& row : table()) {
    if (row.kind.name != kind) continue;
    const auto warmup = store.attributes.find("warmup");
    if (warmup != store.attributes.end()) options.warmup = warmup->second;
    std::vector<Condition> conditions = summary::conditions(store, source);
    if (by_stage || kind != "sweep") {
      const std::vector<std::string> names = by_stage ? stage_names(conditions) : setting_names(conditions);
      if (!options.baseline.empty()) options.baseline = names[summary::baseline(conditions, options.baseline).place];
      for (std::size_t i = 0; i < conditions.size(); ++i) conditions[i].name = names[i];
    }
    return row.make(conditions, options);
  }
  require_kind(kind);
  throw UsageError("a figure of the kind '" + kind + "' is not made from a summary");
}

void require_kind(const std::string& kind) {
  std::vector<std::string> names;
  for (const Kind& one : kinds()) {
    if (one.name == kind) return;
    names.push_back(one.name);
  }
  const std::string near = did_you_mean(kind, names);
  throw UsageError("unknown kind of figure '" + kind + "'" +
                   (near.empty() ? ": the kinds are " + joined(names) : near));
}

namespace {

using summary::Condition;

/// "ZeRO-1 (baseline)"; the condition's name if its records have no stage.
std::string stage_name(const Condition& condition) {
  const std::string backend = condition.attribute("backend"), stage = condition.attribute("zero_stage");
  const bool sharded = backend.empty() || backend == "zero" || backend == "deepspeed";
  if (sharded && stage.empty()) return condition.name;
  std::string variant;
  const auto add = [&](const std::string& word) { variant += (variant.empty() ? "" : ", ") + word; };
  const auto on = [&](const char* key) { return condition.attribute(key) == "true"; };
  if (on("deepcompile")) add("DeepCompile");
  if (on("compile")) add("compile");
  if (on("activation_checkpointing")) add("checkpointing");
  if (condition.attribute("activation_checkpointing") == "selective") add("selective checkpointing");
  if (const std::string place = condition.attribute("offload"); !place.empty() && place != "none") {
    const std::string share = condition.attribute("offload_ratio");
    add("offload " + place + (share.empty() || share == "1" ? "" : " " + share));
  }
  if (sharded) return "ZeRO-" + stage + " (" + (variant.empty() ? "baseline" : variant) + ")";
  const std::string name = backend == "fsdp" ? "FSDP" : backend == "ddp" ? "DDP" : backend;
  return variant.empty() ? name : name + " (" + variant + ")";
}

}  // namespace

std::vector<std::string> stage_names(const std::vector<Condition>& conditions) {
  std::vector<std::string> names;
  for (const Condition& condition : conditions) names.push_back(stage_name(condition));
  std::vector<std::string> unlike = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(names, names[i]) > 1) unlike[i] += ", " + conditions[i].name;
  }
  return unlike;
}

std::vector<std::string> setting_names(const std::vector<Condition>& conditions) {
  std::vector<std::string> names, settings;
  const std::vector<std::string> keys = summary::parameters(conditions);
  bool counted = !keys.empty();  // names that only count, "sweep_001", say nothing
  for (const Condition& condition : conditions) {
    names.push_back(condition.name);
    counted = counted && (condition.attribute("report") == "sweep" || condition.name.starts_with("sweep_"));
    std::string setting;
    for (const std::string& key : keys) {
      if (const std::string value = condition.attribute(key); !value.empty())
        setting += (setting.empty() ? "" : ", ") + std::string(attribute::label(key)) + " " +
                   figure::labels(std::vector{value}).front();
    }
    settings.push_back(setting.empty() ? condition.name : setting);
  }
  return counted ? settings : names;
}

}  // namespace zs::plot
