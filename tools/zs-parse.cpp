// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"
#include "parse/run.hpp"

namespace {

using zs::cli::Args;
namespace parse = zs::parse;

const zs::cli::Command kCommand = {
    "zs-parse",
    "Turn training logs into metric records",
    "[LOG|DIR]...",
    {
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
        {0, "format", "FORM", "form of the output: tsv, h5 or jsonl", "tsv", {"tsv", "h5", "jsonl"}},
        {0, "run", "NAME", "name of the run; several logs are then its parts, in order (default: the file's name)"},
    },
    {{1, "there were faults: malformed metric lines, or none at all; the rest was written"}},
};

zs::Status run(const Args& args) {
  const std::string form = args.text("format");
  const auto jobs = parse::jobs_of(args.inputs(), args.text("run"));
  zs::Output out(args.text("output"));
  std::int64_t faults = 0;
  parse::convert(jobs, {}, form == "h5" ? parse::Form::h5 : form == "jsonl" ? parse::Form::jsonl : parse::Form::tsv, out,
                 zs::cli::fault_printer(kCommand, faults));
  out.commit();
  return faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
