// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/sheet.hpp"
#include "base/words.hpp"
#include "cli/form.hpp"
#include "cli/run.hpp"
#include "config/known.hpp"
#include "figure/picture.hpp"
#include "figure/terminal.hpp"
#include "input/named.hpp"
#include "plan/candidate.hpp"
#include "plan/layers.hpp"
#include "plan/offload.hpp"
#include "plot/plan.hpp"
#include "registry/run.hpp"

namespace {

using zs::cli::Args;
namespace plan = zs::plan;
using Json = nlohmann::ordered_json;

const zs::cli::Command kCommand = {
    "zs-plan",
    "Predict memory, bytes and time of a training on any number of nodes, from a profile that a training has measured",
    "[PROFILE|RUN]...",
    {
        {'p', "profile", "FILE", "the same as an operand: profile.json, or the folder of a run", "", {}, true},
        {'m', "model", "NAME|DIR", "model of the profile; a folder's config.json also gives its number of layers"},
        {0, "num_layers", "N", "layers of the model, if the profile is of fewer"},
        {'N', "nodes", "LIST", "numbers of nodes, joined by commas", "1"},
        {'g', "gpus_per_node", "G", "ranks of a node: its GPUs, or processes on its processors", "1"},
        {0, "bandwidth", "BYTES", "bytes that a rank sends to other nodes in a second: 25G [as within a node]"},
        {0, "latency", "SECONDS", "time of a collective between nodes in addition to that of its bytes", "0"},
        {'M', "memory", "BYTES", "memory that a rank may use: 80G [no limit]"},
        {'a', "accumulation", "LIST", "accumulation steps to try, joined by commas", "1,2,4,8"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {0, "all", "",
         "list all configurations: also slower ones, and those that do not fit or that the profiles cannot predict"},
        {'f',
         "format",
         "FORM",
         "form of the output; figure draws scaling curves in the terminal",
         "table",
         {"table", "tsv", "csv", "json", "figure", "svg", "png", "pdf"}},
        {'o', "output", "FILE", "write to FILE, whole or not at all; .svg, .png and .pdf are figures", "-"},
    },
    {{1, "no configuration fits into the memory, or none can be predicted"}},
    {"zs-plan saved_models/RUN_ID", "zs-plan profile.json --nodes 16 --gpus_per_node 8 --bandwidth 50G --memory 80G",
     "zs-plan profile.json --nodes 1,2,4,8,16 --gpus_per_node 8 --bandwidth 50G -o scaling.svg"}};

/// "80G" as bytes.
double bytes(const Args& args, const std::string& option) {
  const std::string text = args.text(option);
  if (text.empty()) return 0;
  const auto number = zs::config::parse_count(text);
  if (number.value_or(0) == 0) throw zs::UsageError("--" + option + ": '" + text + "' is not a number of bytes: 80G");
  return static_cast<double>(*number);
}

/// "1,2,4" as numbers of `what`.
std::vector<int> numbers(const Args& args, const std::string& option, const std::string& what, int most) {
  const auto refuse = [&](const std::string& word) {
    throw zs::UsageError("--" + option + ": '" + word + "' is not a number of " + what);
  };
  std::vector<int> numbers;
  std::string text = args.text(option) + ",";
  for (std::size_t end = 0; (end = text.find(',')) != std::string::npos; text.erase(0, end + 1)) {
    const auto number = zs::parse_int(text.substr(0, end));
    if (!number || *number < 1 || *number > most) refuse(text.substr(0, end));
    if (std::ranges::find(numbers, *number) == numbers.end()) numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

/// The named profiles of the requested model.
std::vector<plan::Profile> profiles(const Args& args) {
  std::vector<plan::Profile> profiles;
  std::vector<std::string> paths = args.all("profile");
  for (const std::string& path : paths.empty() ? args.inputs() : args.operands()) paths.push_back(path);
  const std::string model = args.text("model");
  const bool folder = zs::is_folder(model);
  std::int64_t layers = args.has("num_layers") ? args.integer("num_layers", 1, 1 << 16) : 0;
  for (const std::string& name : paths) {
    const std::string path = zs::input::named(name, zs::registry::place(args.text("registry")), kCommand.name).path;
    plan::Profile profile = plan::read_profile(path);
    if (!model.empty() && !folder && profile.model != model)
      throw zs::Error(
          path, 0,
          "is the profile of " + profile.model + ", not of " + model + ": measure a step of it with --deepcompile");
    if (folder) {
      const std::int64_t count = plan::layers_of(model, profile);
      if (layers == 0) layers = count;
      profile.model = model;
    }
    profiles.push_back(layers > 0 ? plan::with_layers(profile, layers) : std::move(profile));
  }
  return profiles;
}

/// The figure in a form that is none of a table's.
std::string drawn(const zs::figure::Figure& figure, const std::string& form) {
  const auto format = zs::figure::format_named(form);
  return format ? zs::figure::picture(figure, {}, *format)
                : zs::figure::terminal_text(figure, {}, zs::figure::screen_of_stdout());
}

Json json_of(const plan::Candidate& one) {
  const plan::Prediction& predicted = one.predicted;
  Json parts = Json::object();
  for (const auto& [lane, seconds] : predicted.parts) parts[lane] = seconds;
  return {{"nodes", one.nodes},
          {"zero_stage", one.shape.stage},
          {"hpz_partition_size", one.shape.secondary},
          {"fp8_all_gather", one.shape.float8_gathers},
          {"quantized_weights", one.shape.quantized_weights},
          {"quantized_gradients", one.shape.quantized_gradients},
          {"offload_optimizer", plan::offloaded_share(one.shape) > 0},
          {"offloaded_share", plan::offloaded_share(one.shape)},
          {"offload_parameters", one.shape.offload_parameters},
          {"activation_checkpointing", one.shape.activation_checkpointing},
          {"keeps_attention", one.shape.keeps_attention},
          {"gradient_accumulation_steps", one.shape.micro_steps},
          {"memory_bytes", predicted.memory},
          {"sent_bytes", predicted.sent},
          {"between_nodes_bytes", predicted.between_nodes},
          {"step_seconds", predicted.seconds},
          {"seconds_by_part", parts},
          {one.noun + "_per_second", one.rate},
          {"why_not", one.why_not}};
}

constexpr std::size_t kMostShown = 10;  // configurations on one number of nodes

/// The candidates as rows, each next to the fastest on the same number of nodes. People see the fastest that fit,
/// unless `all`.
zs::Sheet sheet(const std::vector<plan::Candidate>& candidates, bool several, bool exact, bool whole) {
  const auto real = [&](double value, int digits) {
    return exact ? zs::to_text(value) : zs::to_rounded_text(value, digits);
  };
  const auto size = [&](double value) { return exact ? zs::to_text(value) : zs::to_bytes_text(value); };
  zs::Sheet made = {{"configuration", "memory", "sent", "between nodes", "step (s)", candidates.front().noun + "/s",
                     "of the best", "why not"},
                    {}};
  const plan::Candidate* best = nullptr;
  std::size_t shown = 0;
  for (const plan::Candidate& one : candidates) {
    if (!best || best->nodes != one.nodes) best = &one, shown = 0;
    const bool any = best->why_not.empty();
    if (!whole && !exact && ((!one.why_not.empty() && any) || ++shown > kMostShown)) continue;
    const plan::Prediction& predicted = one.predicted;
    const bool known = predicted.unknown.empty();
    made.rows.push_back({plan::to_text(one.shape), size(predicted.memory), size(predicted.sent),
                         size(predicted.between_nodes), known ? real(predicted.seconds, 4) : "",
                         known ? real(one.rate, 4) : "", known && any ? real(one.rate / best->rate, 3) : "",
                         one.why_not});
    if (several) made.rows.back().insert(made.rows.back().begin(), std::to_string(one.nodes));
  }
  if (several) made.header.insert(made.header.begin(), "nodes");
  return made;
}

struct Counts {
  std::int64_t parameters = 0, active = 0;  ///< of a model; a token meets the active ones, fewer if there are experts
};

Counts counts(const plan::Shape& shape) {
  Counts sizes;
  for (const plan::Unit& unit : shape.units) sizes.parameters += unit.numel, sizes.active += unit.numel - unit.idle;
  return sizes;
}

/// Parameters of a model with experts, for the title of the table: ", of 46703 million parameters of which a token
/// meets 12880 million,". Otherwise "".
std::string experts(const Counts& sizes) {
  if (sizes.active == sizes.parameters) return "";
  const auto millions = [](std::int64_t count) { return zs::to_rounded_text(static_cast<double>(count) / 1e6, 4); };
  return ", of " + millions(sizes.parameters) + " million parameters of which a token meets " + millions(sizes.active) +
         " million,";
}

/// "the fastest that fits is ..., in 0.12 s a step, with 3.1 GB of memory; 64 others fit" for each number of nodes.
std::string sentences(const std::vector<plan::Candidate>& candidates) {
  std::string text;
  for (auto first = candidates.begin(); first != candidates.end();) {
    const auto last =
        std::find_if(first, candidates.end(), [&](const plan::Candidate& one) { return one.nodes != first->nodes; });
    const auto fit = std::count_if(first, last, [](const plan::Candidate& one) { return one.why_not.empty(); });
    text += zs::counted(static_cast<std::size_t>(first->nodes), "node") + ": ";
    if (fit == 0)
      text += "no configuration fits, or none can be predicted\n";
    else
      text += "the fastest that fits is " + plan::to_text(first->shape) + ": " +
              zs::to_rounded_text(first->predicted.seconds, 3) + " s a step, " + zs::to_rounded_text(first->rate, 3) +
              " " + first->noun + "/s, " + zs::to_bytes_text(first->predicted.memory) + " of memory; " +
              zs::counted(static_cast<std::size_t>(fit - 1), "other") + (fit == 2 ? " fits" : " fit") + "\n";
    first = last;
  }
  return text;
}

zs::Status run(const Args& args) {
  plan::Cluster cluster;
  const std::vector<int> nodes = numbers(args, "nodes", "nodes", 1 << 16);
  cluster.gpus_per_node = static_cast<int>(args.integer("gpus_per_node", 1, 1 << 10));
  cluster.network = {cluster.gpus_per_node, bytes(args, "bandwidth"), args.real("latency", 0, 1e3)};
  cluster.memory = bytes(args, "memory");
  cluster.accumulations = numbers(args, "accumulation", "steps", 1 << 20);
  const std::vector<plan::Profile> measured = profiles(args);
  std::vector<plan::Candidate> found;
  for (const int number : nodes) {
    cluster.nodes = number;
    for (plan::Candidate& one : plan::candidates(measured, cluster)) found.push_back(std::move(one));
  }
  const bool any = std::ranges::any_of(found, [](const plan::Candidate& one) { return one.why_not.empty(); });
  const Counts sizes = counts(measured.front().shape);
  const std::string form = zs::cli::form_of(args, "table");
  zs::Output out(args.text("output"));
  if (form == "json") {
    Json rows = Json::array();
    for (const plan::Candidate& one : found) rows.push_back(json_of(one));
    const Json json = {{"model", measured.front().model},        {"parameters", sizes.parameters},
                       {"active_parameters", sizes.active},      {"nodes", nodes},
                       {"gpus_per_node", cluster.gpus_per_node}, {"candidates", rows}};
    out.write(json.dump(2) + "\n");
  } else if (form == "tsv" || form == "csv") {
    const zs::Sheet rows = sheet(found, nodes.size() > 1, true, true);
    out.write(form == "tsv" ? zs::to_tsv(rows) : zs::to_csv(rows));
  } else if (form == "table") {
    const auto rows = sheet(found, nodes.size() > 1, false, args.has("all"));
    const plan::Profile& profile = measured.front();
    out.write(profile.model + experts(sizes) + " on " + args.text("nodes") + " x " +
              std::to_string(cluster.gpus_per_node) + " ranks. Accumulation is --gradient_accumulation_steps.\n" +
              sentences(found) + "\n" + zs::aligned(rows) +
              "\nTimes are as good as the few steps that were measured on " +
              zs::counted(static_cast<std::size_t>(profile.shape.ranks), "rank") + " of " + profile.device +
              ": measure on an idle machine. --all lists all configurations.\n");
  } else {
    out.write(drawn(zs::plot::plan_figure(found, cluster.memory), form));
  }
  out.commit();
  return any ? zs::Status::done : zs::Status::no;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
