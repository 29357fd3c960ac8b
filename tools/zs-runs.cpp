// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"
#include "cli/run.hpp"
#include "experiment/action.hpp"
#include "pretrained/export.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-runs",
    "List, filter, sort, show, compare and update runs",
    "[LOG|DIR...|show RUN|diff RUN RUN|rerun [RUN]...|update RUN NAME=VALUE...|add NAME=VALUE...|import TABLE|export "
    "RUN DIR|rm "
    "RUN...|reindex|"
    "plan [NAME=VALUE]... [-- NAME WORD...]|start RUN -- LAUNCHER...|"
    "finish RESULTS CELL NAME=VALUE...|state RESULTS|watch PROCESS LOG CELL WAITING]",
    {
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'f', "filter", "TEST", "only runs that pass each test: COLUMN=VALUE; also != < <= > >= ~ !~", "", {}, true},
        {0, "sweep", "NAME", "only runs of that sweep"},
        {0, "filter_sweep", "NAME", "same as --sweep"},
        {0, "or", "", "runs that pass at least one test of --filter"},
        {'s', "sort_by", "COLUMN", "sort by a column"},
        {'d', "descending", "", "the largest first"},
        {0, "show", "COLUMN", "only these columns, in this order", "", {}, true},
        {0, "hide", "COLUMN", "all but these columns", "", {}, true},
        {'n', "limit", "N", "at most N runs"},
        {'l', "list_columns", "", "list all columns"},
        {0, "statistics", "",
         "add statistics of the columns below the table: mean, deviation and quartiles of numbers, counts of words; "
         "other formats have only these"},
        {0, "status", "", "determine the state of each run from its metrics, Slurm's queue and its process"},
        {0, "failed", "", "with rerun: all runs that failed or are missing"},
        {0, "local", "", "with rerun: train on this machine, one after another, without Slurm"},
        {0, "any_owner", "",
         "with rerun, plan, start: also runs of other users; their commands then run under your account"},
        {0,
         "again",
         "WHICH",
         "with plan: plan failed and missing cells again, or all unfinished ones",
         "",
         {"failed", "unfinished"}},
        {0, "dry_run", "", "with rerun: only list the runs, and show the commands"},
        {0,
         "format",
         "NAME",
         "form of the output; default: table on a terminal, tsv elsewhere",
         "",
         {"table", "tsv", "csv", "json", "openmetrics", "html"}},
        {'o', "output", "FILE",
         "write to FILE: .html is a page of the runs, with their curves, for a browser; .csv, .tsv, .json, .txt and "
         ".prom are the list"},
        {0, "watch", "SECONDS", "with --output: rewrite it at this interval"},
        {0, "checkpoint", "NAME", "with export: a step, checkpoint_STEP, or final_checkpoint", "final_checkpoint"},
        {'y', "yes", "", "remove without asking"},
        {0, "patterns", "FILE",
         "with watch: file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
    },
    {{1, "the runs differ (diff), or the record of a run is damaged"}, {125, "start: nothing was started"}},
    {"zs-runs --filter model.name=gpt2 --sort_by final_valid_loss", "zs-runs --status", "zs-runs show baseline"}};

zs::Status export_model(const zs::cli::Args& args) {
  const auto names = zs::experiment::operands(args, 2, false, "RUN DIR");
  const std::string run = zs::experiment::runs_of(args, {names[0]}).front().folder();
  const auto done = zs::pretrained::export_run(run, args.text("checkpoint"), names[1]);
  zs::print(names[1] + ": " + std::to_string(done.tensors) + " tensors of " + done.checkpoint +
            (done.merged ? ", adapters merged into them" : "") +
            (done.tokenizer ? ", with its tokenizer" : ", without a tokenizer: the run has read bytes or token files") +
            "\n");
  return zs::Status::done;
}

zs::Status act(const zs::cli::Args& args) { return zs::experiment::act(args, {{"export", export_model}}); }

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, act); }
