// SPDX-License-Identifier: Apache-2.0
#include "experiment/page.hpp"

#include "base/file.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "report/runs_page.hpp"
#include "report/write.hpp"

namespace zs::experiment {

void write_page(const std::string& registry, registry::Runs& runs, registry::Question question, const PageFile& file,
                const std::string& tool, const FaultSink& faults) {
  if (report::format_of(file.path) != report::Format::html)
    throw UsageError("--output writes a page for browsers: name it " + file.path + ".html");
  question.telling = question.show.empty();
  const bool states = asks_for_states(question, runs);
  if (states) find_states(registry, question, runs);
  const registry::Answer answer = registry::ask(runs, question);
  if (!states && question.telling) tell_states(registry, answer.rows, runs);
  const report::RunsPage page = {.title = "Runs in " + registry,
                                 .tool = tool,
                                 .registry = registry,
                                 .folder = report::folder_of(file.path),
                                 .rows = answer.rows,
                                 .columns = answer.columns,
                                 .every = file.every};
  write_file(file.path, report::to_html(runs, page, {}, faults));
}

}  // namespace zs::experiment
