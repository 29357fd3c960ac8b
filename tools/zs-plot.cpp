// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/file.hpp"
#include "cli/form.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "figure/picture.hpp"
#include "figure/terminal.hpp"
#include "gradient/history.hpp"
#include "gradient/select.hpp"
#include "parse/custom.hpp"
#include "plot/gradients.hpp"
#include "plot/kind.hpp"
#include "plot/trace.hpp"
#include "registry/run.hpp"
#include "summary/source.hpp"
#include "trace/trace.hpp"

namespace {

using zs::cli::Args;

const zs::cli::Command kCommand = {
    "zs-plot",
    "Draw a summary as a picture or in the terminal",
    "KIND [SUMMARY|LOG|RUN|TRACE|DIR]...",
    {
        {'o', "output", "FILE",
         "write the picture to FILE (.png, .svg, .pdf), '-' for stdout; without it, draw in the terminal"},
        {'f',
         "format",
         "NAME",
         "format of the picture, if the file's name does not give it",
         "",
         {"png", "svg", "pdf"}},
        {'t', "terminal", "", "draw in the terminal, in colour and Unicode if it has them"},
        {'l', "list", "", "list the kinds of figures"},
        {0, "smooth", "N", "curves: draw the mean of N logged points around each; 0 chooses by their number", "0"},
        {0, "log", "", "curves: a logarithmic axis of values"},
        {0, "log_x", "", "curve: a logarithmic x axis"},
        {'x', "xaxis", "NAME", "curves: the x axis", "step", {"step", "tokens", "images", "time", "epoch"}},
        {0,
         "error",
         "WHAT",
         "time: error bars for the 95 % interval of the mean or for the standard deviation of the times",
         "interval",
         {"interval", "std"}},
        {0,
         "legend",
         "WHAT",
         "call conditions by their names, or by ZeRO stage and variant: ZeRO-3 (DeepCompile)",
         "name",
         {"name", "stage"}},
        {0, "baseline", "CONDITION", "difference, revision: the condition to compare with [the first]"},
        {0, "rows", "KEY", "sweep: the attribute down the side [the first that differs]"},
        {0, "columns", "KEY", "sweep: the attribute along the top [the next that differs]"},
        {0, "value", "COLUMN",
         "curve: the column of the records to draw; sweep: the result to show [valid_loss if all have one, else "
         "final_loss]"},
        {0, "by", "WHAT", "gradients: of layers, or of single tensors", "layer", {"layer", "tensor"}},
        {0, "only", "NAME", "gradients: only these layers or tensors, in this order", "", {}, true},
        {0, "patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {0, "theme", "FILE", "colours, fonts and sizes; share/plot/theme is an example"},
        {0, "title", "TEXT", "the title above the figure"},
    },
    {{3, "the operands have no data for this picture"}},
    {"zs-plot loss a.log b.log", "zs-plot time summary.h5 -o iteration_time_comparison.png", "zs-plot gradients a"}};

zs::figure::Format format(const Args& args) {
  if (const auto found = zs::figure::format_named(zs::cli::form_of(args, ""))) return *found;
  throw zs::UsageError("cannot determine the format of '" + args.text("output") +
                       "': name it .png, .svg or .pdf, or give --format");
}

/// Each option is read for the kinds of figures alone that it changes.
zs::plot::Options options(const Args& args, const std::string& kind) {
  zs::plot::Options chosen;
  const bool difference = kind == "difference", revision = kind == "revision", curve = kind == "curve";
  if (kind == "loss" || curve || difference || revision) {
    chosen.smooth = static_cast<std::size_t>(args.integer("smooth", 0, 1'000'000));
    chosen.log = args.has("log");
    chosen.x_axis = args.text("xaxis");
  }
  if (kind == "time") chosen.deviation = args.text("error") == "std";
  if (curve) chosen.log_x = args.has("log_x");
  if (difference || revision) chosen.baseline = args.text("baseline");
  if (kind == "sweep") chosen.rows = args.text("rows"), chosen.columns = args.text("columns");
  if (kind == "sweep" || curve) chosen.value = args.text("value");
  return chosen;
}

void require_all_asked(const Args& args, const std::string& kind) {
  if (const std::vector<std::string> unasked = args.unasked(); !unasked.empty())
    throw zs::UsageError("--" + unasked[0] + " has no effect on a figure of kind " + kind + ": leave it out");
}

std::string list() {
  std::string text;
  for (const zs::plot::Kind& kind : zs::plot::kinds()) text += kind.name + "\t" + kind.purpose + "\n";
  return text;
}

/// The operands of a kind of figure.
std::vector<zs::input::Named> named(const Args& args, const std::vector<std::string>& names, const std::string& kind) {
  return zs::input::named(names, zs::registry::place(args.text("registry")), kCommand.name + kind);
}

/// The figure of the operands: a summary, logs, runs, folders; without any, of stdin. `faults` are defects of logs.
zs::figure::Figure of_inputs(const Args& args, std::int64_t& faults) {
  std::vector<std::string> inputs(args.operands().begin() + 1, args.operands().end());
  if (inputs.empty() && isatty(STDIN_FILENO))
    throw zs::UsageError(args.operands()[0] + " needs an operand: logs, runs, folders or a summary");
  if (inputs.empty()) inputs = {"-"};
  zs::cli::Progress progress;
  const zs::metric::Store store =
      zs::summary::read(named(args, inputs, ""),
                        {.progress = [&](std::size_t done, std::size_t total,
                                         const std::string& name) { progress.at(done, total, name); },
                         .fault = zs::cli::fault_printer(kCommand, faults)},
                        [](const std::string& text) { zs::cli::warn(kCommand, text); });
  return zs::plot::figure(args.operands()[0], store, inputs[0] == "-" ? "stdin" : inputs[0],
                          options(args, args.operands()[0]), args.text("legend") == "stage");
}

/// The figure of runs and checkpoints.
zs::figure::Figure of_gradients(const Args& args) {
  const std::vector<std::string> names(args.operands().begin() + 1, args.operands().end());
  if (names.empty()) throw zs::UsageError("gradients needs an operand: a run or checkpoints");
  const zs::gradient::Sources sources = zs::gradient::find(named(args, names, " gradients"));
  zs::cli::Progress progress;
  zs::gradient::History history = zs::gradient::read(
      sources, [&](std::size_t done) { progress.at(done, sources.found.size(), sources.found[done].path); });
  if (args.text("by") == "tensor") history = zs::gradient::by_tensor(std::move(history));
  if (args.has("only")) history = zs::gradient::only(std::move(history), args.all("only"));
  for (const std::string& name : history.missing)
    zs::cli::warn(kCommand, "no checkpoint has '" + name + "': it is drawn as 0");
  return zs::plot::gradient_figure(history);
}

/// The figure of profiler traces; `faults` are their defects.
zs::figure::Figure of_traces(const Args& args, std::int64_t& faults) {
  std::vector<std::string> names(args.operands().begin() + 1, args.operands().end());
  if (names.empty()) throw zs::UsageError("name traces or a folder of traces");
  const auto traces = zs::trace::read_all(zs::input::traces(named(args, names, " trace")), {},
                                          zs::cli::fault_printer(kCommand, faults));
  return zs::plot::trace_figure(zs::trace::Question(traces));
}

zs::Status plot(const Args& args) {
  if (args.has("list")) return zs::write_file("-", list()), zs::Status::done;
  if (args.operands().empty()) throw zs::UsageError("which figure? give its kind; --list lists them");
  zs::plot::require_kind(args.operands()[0]);
  zs::parse::customize(args.text("patterns"), [](const std::string& text) { zs::cli::warn(kCommand, text); });
  const bool to_file = !args.has("terminal") && args.has("output");
  const auto picture_format = to_file ? format(args) : zs::figure::Format::png;
  const zs::figure::Theme theme = args.has("theme") ? zs::figure::read_theme(args.text("theme")) : zs::figure::Theme();
  std::int64_t faults = 0;
  const std::string& kind = args.operands()[0];
  zs::figure::Figure figure = kind == zs::plot::kGradients ? of_gradients(args)
                              : kind == zs::plot::kTrace   ? of_traces(args, faults)
                                                           : of_inputs(args, faults);
  if (args.has("title")) figure.title = args.text("title");
  require_all_asked(args, kind);
  if (to_file)
    zs::write_file(args.text("output"), zs::figure::picture(figure, theme, picture_format));
  else
    zs::write_file("-", zs::figure::terminal_text(figure, theme, zs::figure::screen_of_stdout()));
  return faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, plot); }
