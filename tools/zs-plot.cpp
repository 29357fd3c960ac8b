// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/file.hpp"
#include "cli/run.hpp"
#include "gradient/history.hpp"
#include "metric/file.hpp"
#include "plot/gradients.hpp"
#include "plot/kind.hpp"
#include "plot/picture.hpp"
#include "plot/terminal.hpp"
#include "registry/run.hpp"

namespace {

using zs::cli::Args;

const zs::cli::Command kCommand = {
    "zs-plot",
    "Draw a summary as a picture or in the terminal",
    "KIND [SUMMARY|RUN|CHECKPOINT...]",
    {
        {'o', "output", "FILE",
         "write the picture to FILE (.png, .svg, .pdf), '-' for stdout; without it, draw in the terminal"},
        {'f',
         "format",
         "NAME",
         "format of the picture, where the file's name does not say it",
         "",
         {"png", "svg", "pdf"}},
        {'t', "terminal", "", "draw in the terminal, in colour and Unicode where it has them"},
        {'l', "list", "", "list the kinds of figures"},
        {0, "smooth", "N", "curves: the mean of N logged points around each", "1"},
        {0, "log", "", "curves: a logarithmic axis of losses"},
        {0, "xaxis", "NAME", "curves: the x axis", "step", {"step", "tokens", "time"}},
        {0, "baseline", "CONDITION", "difference: the condition to compare with; without it, the first"},
        {0, "rows", "KEY", "sweep: the attribute down the side; without it, the first that differs"},
        {0, "columns", "KEY", "sweep: the attribute along the top; without it, the next that differs"},
        {0, "value", "COLUMN", "sweep: the result to show; without it, valid_loss if there is one, else final_loss"},
        {'r', "registry", "DIR", "gradients: folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {0, "theme", "FILE", "colours, fonts and sizes; share/plot/theme is an example"},
        {0, "title", "TEXT", "the title above the figure"},
    }};

zs::plot::Format format(const Args& args) {
  using zs::plot::Format;
  const std::string name = args.text("format");
  if (!name.empty()) return name == "png" ? Format::png : name == "svg" ? Format::svg : Format::pdf;
  if (const auto found = zs::plot::format_of(args.text("output"))) return *found;
  throw zs::UsageError("cannot tell the format of '" + args.text("output") +
                       "': name it .png, .svg or .pdf, or give --format");
}

zs::plot::Options options(const Args& args) {
  zs::plot::Options chosen;
  chosen.smooth = static_cast<std::size_t>(args.integer("smooth", 1, 1'000'000));
  chosen.log = args.has("log");
  chosen.x_axis = args.text("xaxis");
  chosen.baseline = args.text("baseline");
  chosen.rows = args.text("rows");
  chosen.columns = args.text("columns");
  chosen.value = args.text("value");
  return chosen;
}

std::string list() {
  std::string text;
  for (const zs::plot::Kind& kind : zs::plot::kinds()) text += kind.name + "\t" + kind.purpose + "\n";
  return text;
}

/// The figure of a summary, from a file or stdin.
zs::plot::Figure of_summary(const Args& args) {
  const auto& operands = args.operands();
  if (operands.size() > 2) throw zs::UsageError("takes a kind and one summary, got also '" + operands[2] + "'");
  const std::string input = operands.size() == 2 ? operands[1] : "-";
  if (input == "-" && isatty(STDIN_FILENO)) throw zs::UsageError("no summary given, and stdin is a terminal");
  std::vector<std::string> warnings;
  const zs::metric::Store store = zs::summary::summarized(zs::metric::read(input), warnings);
  for (const std::string& warning : warnings) zs::cli::warn(kCommand, warning);
  return zs::plot::figure(operands[0], store, input == "-" ? "stdin" : input, options(args));
}

/// The figure of runs and checkpoints.
zs::plot::Figure of_gradients(const Args& args) {
  const std::vector<std::string> names(args.operands().begin() + 1, args.operands().end());
  if (names.empty()) throw zs::UsageError("gradients of what? give a run or checkpoints");
  return zs::plot::gradient_figure(zs::gradient::read(
      zs::gradient::find(names, zs::registry::place(args.text("registry")), zs::cli::fault_warner(kCommand))));
}

zs::Status plot(const Args& args) {
  if (args.has("list")) return zs::write_file("-", list()), zs::Status::done;
  if (args.operands().empty()) throw zs::UsageError("which figure? give its kind; --list lists them");
  const bool to_file = args.has("output") && !args.has("terminal");
  const auto picture_format = to_file ? format(args) : zs::plot::Format::png;
  const zs::plot::Theme theme = args.has("theme") ? zs::plot::read_theme(args.text("theme")) : zs::plot::Theme();
  zs::plot::Figure figure = args.operands()[0] == zs::plot::kGradients ? of_gradients(args) : of_summary(args);
  if (args.has("title")) figure.title = args.text("title");
  if (to_file)
    zs::write_file(args.text("output"), zs::plot::picture(figure, theme, picture_format));
  else
    zs::write_file("-", zs::plot::terminal_text(figure, theme, zs::plot::screen_of_stdout()));
  return zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, plot); }
