// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/number.hpp"
#include "cli/run.hpp"
#include "cli/table.hpp"
#include "config/known.hpp"
#include "plan/candidate.hpp"
#include "registry/sheet.hpp"

namespace {

using zs::cli::Args;
namespace plan = zs::plan;
using Json = nlohmann::ordered_json;

const zs::cli::Command kCommand = {
    "zs-plan",
    "Predict memory, bytes and time of a training on any number of nodes, from a profile that a training has measured",
    "[PROFILE]...",
    {
        {'p', "profile", "FILE", "the same as an operand: profile.json, or the folder of a run", "", {}, true},
        {'m', "model", "NAME", "model that the profile must be of"},
        {'N', "nodes", "N", "nodes", "1"},
        {'g', "gpus_per_node", "G", "ranks of a node: its GPUs, or processes on its processors", "1"},
        {0, "bandwidth", "BYTES",
         "bytes that a rank sends to other nodes in a second: 25G; as within a node when not set"},
        {0, "latency", "SECONDS", "that a collective between nodes takes beside its bytes", "0"},
        {'M', "memory", "BYTES", "memory that a rank may fill: 80G; no limit when not set"},
        {'a', "accumulation", "LIST", "accumulation steps to look at, joined by commas", "1,2,4,8"},
        {0, "all", "", "the ways that do not fit, or that the profiles cannot speak of, too"},
        {'f', "format", "FORM", "form of the output", "table", {"table", "tsv", "json"}},
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
    },
    {{1, "no way fits into the memory, or can be predicted"}},
    {"zs-plan saved_models/RUN_ID", "zs-plan profile.json --nodes 16 --gpus_per_node 8 --bandwidth 50G --memory 80G",
     "zs-plan profile.json --nodes 4 --gpus_per_node 8 --format json"}};

/// "80G" as bytes.
double bytes(const Args& args, const std::string& option) {
  const std::string text = args.text(option);
  if (text.empty()) return 0;
  const auto number = zs::config::parse_count(text);
  if (number.value_or(0) == 0) throw zs::UsageError("--" + option + ": '" + text + "' is no number of bytes: 80G");
  return static_cast<double>(*number);
}

std::vector<int> accumulations(const Args& args) {
  std::vector<int> all;
  std::string text = args.text("accumulation") + ",";
  for (std::size_t end = 0; (end = text.find(',')) != std::string::npos; text.erase(0, end + 1)) {
    const auto number = zs::parse_int(text.substr(0, end));
    if (!number || *number < 1 || *number > 1 << 20)
      throw zs::UsageError("--accumulation: '" + text.substr(0, end) + "' is no number of steps");
    all.push_back(static_cast<int>(*number));
  }
  return all;
}

Json json_of(const plan::Candidate& one) {
  const plan::Prediction& its = one.predicted;
  Json parts = Json::object();
  for (const auto& [lane, seconds] : its.parts) parts[lane] = seconds;
  return {{"zero_stage", one.shape.stage},
          {"hpz_partition_size", one.shape.secondary},
          {"quantized_weights", one.shape.quantized_weights},
          {"quantized_gradients", one.shape.quantized_gradients},
          {"offload_optimizer", one.shape.offload_optimizer},
          {"offload_parameters", one.shape.offload_parameters},
          {"activation_checkpointing", one.shape.activation_checkpointing},
          {"gradient_accumulation_steps", one.shape.micro_steps},
          {"memory_bytes", its.memory},
          {"sent_bytes", its.sent},
          {"between_nodes_bytes", its.between_nodes},
          {"step_seconds", its.seconds},
          {"seconds_by_part", parts},
          {"tokens_per_second", one.tokens_per_second},
          {"why_not", one.why_not}};
}

zs::Status run(const Args& args) {
  plan::Cluster cluster;
  cluster.nodes = static_cast<int>(args.integer("nodes", 1, 1 << 16));
  cluster.gpus_per_node = static_cast<int>(args.integer("gpus_per_node", 1, 1 << 10));
  cluster.network = {cluster.gpus_per_node, bytes(args, "bandwidth"), args.real("latency", 0, 1e3)};
  cluster.memory = bytes(args, "memory");
  cluster.accumulations = accumulations(args);
  std::vector<plan::Profile> profiles;
  std::vector<std::string> paths = args.all("profile");
  for (const std::string& path : paths.empty() ? args.inputs() : args.operands()) paths.push_back(path);
  for (const std::string& path : paths) {
    profiles.push_back(plan::read_profile(path));
    if (args.has("model") && profiles.back().model != args.text("model"))
      throw zs::Error(path, 0,
                      "is the profile of " + profiles.back().model + ", not of " + args.text("model") +
                          ": measure a step of it with --deepcompile");
  }
  const std::vector<plan::Candidate> all = plan::candidates(profiles, cluster);
  const bool any = !all.empty() && all.front().why_not.empty();
  const std::string form = args.text("format");
  zs::Output out(args.text("output"));
  if (form == "json") {
    Json rows = Json::array();
    for (const plan::Candidate& one : all) rows.push_back(json_of(one));
    const Json json = {{"model", profiles.front().model},
                       {"nodes", cluster.nodes},
                       {"gpus_per_node", cluster.gpus_per_node},
                       {"candidates", rows}};
    out.write(json.dump(2) + "\n");
  } else {
    const bool exact = form == "tsv";
    const auto real = [&](double value, int digits) {
      return exact ? zs::to_text(value) : zs::to_rounded_text(value, digits);
    };
    const auto size = [&](double value) { return exact ? zs::to_text(value) : zs::to_bytes_text(value); };
    const std::vector<std::string> header = {"way",      "memory",   "sent",        "between nodes",
                                             "step (s)", "tokens/s", "of the best", "why not"};
    std::vector<std::vector<std::string>> rows;
    for (const plan::Candidate& one : all) {
      if (!one.why_not.empty() && !args.has("all") && !exact && any) continue;
      const plan::Prediction& its = one.predicted;
      const bool known = its.unknown.empty();
      rows.push_back({plan::to_text(one.shape), size(its.memory), size(its.sent), size(its.between_nodes),
                      known ? real(its.seconds, 4) : "", known ? real(one.tokens_per_second, 4) : "",
                      known && any ? real(one.tokens_per_second / all.front().tokens_per_second, 3) : "", one.why_not});
    }
    if (exact) {
      out.write(zs::registry::to_tsv({header, rows}));
    } else {
      out.write(profiles.front().model + " on " + std::to_string(cluster.nodes) + " x " +
                std::to_string(cluster.gpus_per_node) + " ranks, the fastest that fits first:\n" +
                zs::cli::table(header, rows));
    }
  }
  out.commit();
  return any ? zs::Status::done : zs::Status::no;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
