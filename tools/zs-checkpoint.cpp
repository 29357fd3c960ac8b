// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/sheet.hpp"
#include "base/text.hpp"
#include "checkpoints/read.hpp"
#include "cli/form.hpp"
#include "cli/run.hpp"
#include "input/named.hpp"
#include "registry/run.hpp"
#include "stage/stage.hpp"
#include "state/convert.hpp"
#include "state/describe.hpp"
#include "state/diff.hpp"

namespace {

using zs::Status;
using zs::cli::Args;
namespace checkpoints = zs::checkpoints;
namespace state = zs::state;
using Json = nlohmann::ordered_json;
using Lines = std::vector<std::pair<std::string, std::string>>;

const zs::cli::Command kCommand = {
    "zs-checkpoint",
    "Show, check, compare and convert checkpoints of DeepSpeed, PyTorch, Accelerate, Trainer, Lightning and zs",
    "[show CHECKPOINT|verify CHECKPOINT|diff CHECKPOINT CHECKPOINT|convert CHECKPOINT FOLDER]",
    {
        {'t', "tensors", "", "show: one row for each tensor"},
        {0, "digests", "", "show --tensors: the SHA-256 of each tensor's bytes"},
        {0, "values", "", "show: schedules, scalers, random states and all other data except the model's tensors"},
        {'n', "names", "FILE", "diff: file with two names in a line, of the first and of the second checkpoint"},
        {0, "rtol", "R", "diff: accept a difference of R times the second value", "0"},
        {0, "atol", "R", "diff: accept a difference of R", "0"},
        {0, "to", "FORM",
         "convert: hf writes the weights as from_pretrained reads them; safetensors also writes the optimizer's state; "
         "dcp, deepspeed and universal write checkpoints that PyTorch and DeepSpeed resume from",
         "", checkpoints::kForms},
        {0, "ranks", "N", "convert: number of ranks in the result, for dcp and deepspeed"},
        {0, "stage", "S", "convert: ZeRO stage of the files, for deepspeed: 1, 2 or 3"},
        {0,
         "dtype",
         "TYPE",
         "convert: number format of the resumed training, which the names of DeepSpeed's files contain",
         "",
         {"f32", "bf16", "f16"}},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'f', "format", "FORM", "form of the output", "table", {"table", "tsv", "csv", "json"}},
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
    },
    {{0, "nothing is missing or damaged; diff: no difference beyond the tolerance"},
     {1, "something is missing or damaged, or the two differ"},
     {3, "diff: what both have is equal, but one lacks something that the other has"}},
    {"zs-checkpoint show checkpoints/", "zs-checkpoint verify checkpoints/global_step3",
     "zs-checkpoint convert --to safetensors checkpoints/ converted"}};

/// The findings, lines, tables and faults, in the form that the user asked for.
struct Found {
  Lines lines{};
  std::vector<std::pair<std::string, zs::Sheet>> tables{};
  std::vector<std::string> faults{};
};

std::string text_of(const Found& found, const std::string& form) {
  if (form == "json") {
    Json json = Json::object();
    for (const auto& [key, value] : found.lines) {
      if (!json.contains(key)) {
        json[key] = value;
      } else {
        if (!json[key].is_array()) json[key] = Json::array({json[key]});
        json[key].push_back(value);
      }
    }
    for (const auto& [name, sheet] : found.tables) json[name] = zs::to_objects(sheet);
    json["faults"] = found.faults;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  if (form == "tsv") return zs::to_tsv(found.tables.back().second);
  if (form == "csv") return zs::to_csv(found.tables.back().second);
  std::string text;
  std::size_t width = 0;
  for (const auto& [key, value] : found.lines) width = std::max(width, key.size());
  width = std::min<std::size_t>(width, 24);
  for (const auto& [key, value] : found.lines) {
    text += zs::printable(key) + std::string(key.size() < width ? width - key.size() : 0, ' ') + "  " +
            zs::printable(value) + "\n";
  }
  for (const auto& [name, sheet] : found.tables) {
    if (!sheet.rows.empty()) text += "\n" + zs::aligned(sheet);
  }
  return text;
}

Status print(const Args& args, const Found& found, Status status) {
  zs::Output out(args.text("output"));
  out.write(text_of(found, zs::cli::form_of(args, "table")));
  out.commit();
  for (const std::string& fault : found.faults) zs::cli::tell(kCommand, fault);
  return found.faults.empty() || status != Status::done ? status : Status::no;
}

Status show(const Args& args, const std::string& path) {
  const checkpoints::State read = checkpoints::read(path);
  Found found;
  found.lines = state::header(read);
  found.faults = read.faults;
  if (args.has("values")) {
    zs::Sheet values{{"value", "is"}, {}};
    for (const auto& [name, text] : read.facts) values.rows.push_back({name, text});
    found.tables.emplace_back("values", values);
  } else if (args.has("tensors") || args.has("digests")) {
    found.tables.emplace_back("tensors", state::tensors(read, args.has("digests")));
  } else {
    found.tables.emplace_back("ranks_held", state::ranks(read));
    found.tables.emplace_back("kinds", state::kinds(read));
  }
  return print(args, found, Status::done);
}

Status verify(const Args& args, const std::string& path) {
  checkpoints::State read = checkpoints::read(path);
  const state::Checked checked = state::verify(read);
  Found found;
  found.lines = {{"checkpoint", path},
                 {"verdict", read.faults.empty() ? "whole" : "NOT WHOLE"},
                 {"tensors", zs::to_text(checked.tensors)},
                 {"elements", zs::to_text(checked.elements)},
                 {"checksums", zs::to_text(checked.checksums)},
                 {"masters rounded", zs::to_text(checked.rounded)},
                 {"faults", zs::to_text(static_cast<std::int64_t>(read.faults.size()))}};
  for (const std::string& what : checked.not_checked) found.lines.emplace_back("not checked", what);
  found.tables.emplace_back("kinds", state::kinds(read));
  found.faults = read.faults;
  return print(args, found, Status::done);
}

Status diff(const Args& args, const std::string& a, const std::string& b) {
  const zs::compare::Tolerance tolerance{args.real("rtol", 0, 1e300), args.real("atol", 0, 1e300)};
  const state::Names names = args.has("names") ? state::Names(args.text("names")) : state::Names();
  const checkpoints::State left = checkpoints::read(a), right = checkpoints::read(b);
  const state::Difference made = state::diff(left, right, tolerance, names);
  Found found;
  found.lines = made.lines;
  found.tables.emplace_back("kinds", made.sheet());
  for (const checkpoints::State* const side : {&left, &right})
    found.faults.insert(found.faults.end(), side->faults.begin(), side->faults.end());
  return print(args, found, zs::compare::status(made.verdict));
}

Status convert(const Args& args, const std::string& from, const std::string& to) {
  if (!args.has("to")) throw zs::UsageError("expected --to FORM");
  checkpoints::Form form;
  form.name = args.text("to");
  const bool deepspeed = form.name == "deepspeed", universal = form.name == "universal";
  for (const auto& [option, taken] :
       {std::pair{"ranks", deepspeed || form.name == "dcp"}, {"stage", deepspeed}, {"dtype", deepspeed || universal}}) {
    if (args.has(option) && !taken)
      throw zs::UsageError("--" + std::string(option) + " says nothing about --to " + form.name);
  }
  if (args.has("ranks")) form.ranks = args.integer("ranks", 1);
  if (args.has("stage")) form.stage = args.integer("stage", 1, zs::stage::kStages.back());
  form.dtype = args.text("dtype");
  const state::Converted made = state::convert(checkpoints::read(from), to, form);
  Found found;
  found.lines = {{"written", to},
                 {"tensors", zs::to_text(made.tensors)},
                 {"bytes", zs::to_text(static_cast<std::int64_t>(made.bytes))},
                 {"read back", "equal, every bit"}};
  for (const std::string& what : made.assumed) found.lines.emplace_back("assumed", what);
  for (const std::string& what : made.left_out) found.lines.emplace_back("left out", what);
  if (form.name == "hf") {
    const bool configured = std::filesystem::exists(to + "/config.json");
    found.lines.emplace_back("to load it",
                             std::string(configured ? "from_pretrained reads it; copy the model's tokenizer into "
                                                    : "copy the model's config.json, and its tokenizer, into ") +
                                 to + (configured ? "" : ": from_pretrained reads them"));
  }
  return print(args, found, Status::done);
}

Status run(const Args& args) {
  const auto& words = args.operands();
  if (words.empty()) throw zs::UsageError("expected show, verify, diff or convert, and a checkpoint");
  const std::string& action = words[0];
  const auto expect = [&](std::size_t count) {
    if (words.size() != count + 1)
      throw zs::UsageError(action + " takes " + (count == 1 ? "one checkpoint" : "two checkpoints") + ", not " +
                           std::to_string(words.size() - 1));
  };
  const auto path = [&](std::size_t word) {
    return zs::input::named(words[word], zs::registry::place(args.text("registry")), kCommand.name).path;
  };
  if (action == "show") return expect(1), show(args, path(1));
  if (action == "verify") return expect(1), verify(args, path(1));
  if (action == "diff") return expect(2), diff(args, path(1), path(2));
  if (action == "convert") {
    if (words.size() != 3) throw zs::UsageError("convert takes a checkpoint and the folder to write");
    return convert(args, path(1), words[2]);
  }
  if (std::filesystem::exists(action)) throw zs::UsageError("expected an action, did you mean 'show " + action + "'?");
  const std::vector<std::string> actions = {"show", "verify", "diff", "convert"};
  throw zs::UsageError("unknown action '" + action + "'" + zs::did_you_mean(action, actions));
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
