// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <doctest/doctest.h>

using zs::UsageError;
using zs::cli::Args;
using zs::cli::Command;

namespace {

const Command kCommand = {
    "zs-x",
    "Do a thing",
    "[FILE]...",
    {{'o', "output", "FILE", "write to FILE", "-"},
     {0, "sort_by", "COL", "sort by COL"},
     {0, "warmup", "N", "skip N points", "5", {}, false, "", false, {"threshold"}},
     {0, "format", "NAME", "how to print", "table", {"table", "tsv"}},
     {0, "show", "COL", "columns to show", "", {}, true},
     {0, "keep", "[HOW]", "what to keep", "none", {"all", "some", "none"}, false, "", false, {}, "all"},
     {'q', "quiet", "", "say nothing"}}};

std::string refusal(const std::vector<std::string>& words) {
  try {
    Args::parse(kCommand, words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("operands and options stand in any order, and -- ends the options") {
  const Args args = Args::parse(kCommand, {"a", "-o", "x", "b", "-q", "--", "--sort_by"});
  CHECK(args.operands() == std::vector<std::string>{"a", "b", "--sort_by"});
  CHECK(args.text("output") == "x");
  CHECK(args.has("quiet"));
  CHECK_FALSE(args.has("sort_by"));
}

TEST_CASE("'-' is an operand, and a negative number is a value") {
  CHECK(Args::parse(kCommand, {"-"}).operands() == std::vector<std::string>{"-"});
  CHECK(Args::parse(kCommand, {"--warmup=-3"}).text("warmup") == "-3");
}

TEST_CASE("'_' and '-' are alike in names and not in values") {
  CHECK(Args::parse(kCommand, {"--sort-by", "a-b_c"}).text("sort_by") == "a-b_c");
  CHECK(Args::parse(kCommand, {"--sort_by=a-b"}).text("sort_by") == "a-b");
}

TEST_CASE("an option that may stand alone takes a word that is like its choices") {
  const auto kept = [](const std::vector<std::string>& words) { return Args::parse(kCommand, words).text("keep"); };
  CHECK(kept({}) == "none");
  CHECK(kept({"--keep"}) == "all");
  CHECK(kept({"--keep", "some"}) == "some");
  CHECK(kept({"--keep=some"}) == "some");
  CHECK(kept({"--keep", "-q"}) == "all");
  CHECK(kept({"--keep", "some", "--keep"}) == "all");
  const Args args = Args::parse(kCommand, {"--keep", "config.yaml", "--warmup", "--keep"});
  CHECK(args.text("keep") == "all");
  CHECK(args.operands() == std::vector<std::string>{"config.yaml"});
  CHECK(refusal({"--keep", "sone"}) == "--keep: 'sone' is not one of all, some, none, did you mean 'some'?");
  CHECK(refusal({"--keep="}) == "option '--keep' needs a value");
  CHECK(Args::parse(kCommand, {"--", "--keep", "some"}).operands() == std::vector<std::string>{"--keep", "some"});
}

TEST_CASE("a default is not typed, and the last one typed holds") {
  const Args none = Args::parse(kCommand, {});
  CHECK_FALSE(none.has("warmup"));
  CHECK(none.integer("warmup", 0) == 5);
  CHECK(Args::parse(kCommand, {"--warmup", "1", "--warmup", "2"}).integer("warmup", 0) == 2);
}

TEST_CASE("the options typed keep their order, among several names of one thing too") {
  const Args args = Args::parse(kCommand, {"--warmup", "1", "-q", "--format", "tsv", "--warmup", "2"});
  CHECK(args.typed() == std::vector<std::pair<std::string, std::string>>{
                            {"warmup", "1"}, {"quiet", ""}, {"format", "tsv"}, {"warmup", "2"}});
}

TEST_CASE("an empty value or operand is what a variable leaves that is not set") {
  CHECK(refusal({"--sort_by", ""}) == "--sort_by is empty: is the variable set?");
  CHECK(refusal({"-o", ""}) == "--output is empty: is the variable set?");
  CHECK(refusal({"--show", "a", ""}) == "--show is empty: is the variable set?");
  CHECK(refusal({"a", "", "b"}) == "an operand is empty: is the variable set?");
  CHECK(refusal({"--", ""}) == "an operand is empty: is the variable set?");
}

TEST_CASE("what an option is called elsewhere is unknown, and names it") {
  CHECK(refusal({"--threshold", "3"}) == "unknown option '--threshold', did you mean '--warmup'?");
}

TEST_CASE("an option of many values collects them all") {
  CHECK(Args::parse(kCommand, {"--show", "a", "b", "--show", "c"}).all("show") ==
        std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("what people call an option elsewhere, or a part of its name, names it") {
  CHECK(refusal({"--out", "x"}) == "unknown option '--out', did you mean '--output'?");
  CHECK(refusal({"--save-to", "x"}) == "unknown option '--save_to', did you mean '--output'?");
  CHECK(refusal({"--sort", "x"}) == "unknown option '--sort', did you mean '--sort_by'?");
  CHECK(refusal({"--fmt", "x"}) == "unknown option '--fmt', did you mean '--format'?");
  CHECK(refusal({"--threshold", "x"}) == "unknown option '--threshold', did you mean '--warmup'?");
  CHECK(refusal({"--skip", "x"}) == "unknown option '--skip', did you mean '--warmup'?");
  CHECK(refusal({"--colour"}) == "unknown option '--colour'");
}

TEST_CASE("help ends with the examples and the name of the page, which has the same examples") {
  Command command = kCommand;
  command.examples = {"zs-x a", "zs-x --warmup 3 b"};
  CHECK(zs::cli::help_text(command).ends_with("\nExamples:\n  zs-x a\n  zs-x --warmup 3 b\n\nMore: man zs-x\n"));
  const std::string page =
      zs::cli::man_page(command, ".Dd November 20, 2026\n.Nm\ndoes.\n.Sh EXAMPLES\nOne:\n.Sh SEE ALSO\n.Xr zs 7\n");
  CHECK(page.find(".Sh EXAMPLES\nOne:\n.Pp\nIn short:\n.Bd -literal -offset indent\n$ zs\\-x a\n"
                  "$ zs\\-x \\-\\-warmup 3 b\n.Ed\n.Sh EXIT STATUS\n") != std::string::npos);
}

TEST_CASE("a page has examples, verdicts and exit status, then the options, details and the other sections") {
  Command command = kCommand;
  command.examples = {"zs-x a"};
  const std::string prose =
      ".Dd November 20, 2026\ndoes.\n.Ss More\nIt is.\n.Sh CHECKPOINTS\nAre.\n.Sh EXAMPLES\nOne:\n.Sh BUGS\nNone.\n"
      ".Sh VERDICTS\nYes.\n.Sh SEE ALSO\n.Xr zs 7\n";
  const std::string page = zs::cli::man_page(command, prose);
  CHECK(page.find(".Sh DESCRIPTION\ndoes.\n.Sh EXAMPLES\nOne:\n.Pp\nIn short:\n") != std::string::npos);
  CHECK(page.find(".Ed\n.Sh VERDICTS\nYes.\n.Sh EXIT STATUS\n") != std::string::npos);
  CHECK(page.find(".El\n.Sh OPTIONS\n") != std::string::npos);
  CHECK(
      page.ends_with("are alike.\n.Sh DETAILS\n.Ss More\nIt is.\n.Sh CHECKPOINTS\nAre.\n.Sh BUGS\nNone.\n"
                     ".Sh SEE ALSO\n.Xr zs 7\n"));
  Command grouped = command;
  for (zs::cli::Option& option : grouped.options) option.group = "Own";
  grouped.options.push_back({0, "theirs", "N", "is of another page", ""});
  grouped.options.back().group = "Theirs";
  const std::string parted = zs::cli::man_page(
      grouped,
      ".Dd November 20, 2026\ndoes.\n.\\\" elsewhere Theirs\n.Sh OPTIONS\nMore elsewhere.\n.Ss More\nIt is.\n");
  CHECK(parted.find("theirs") == std::string::npos);
  CHECK(parted.find("are alike.\nMore elsewhere.\n.Sh DETAILS\n.Ss More\n") != std::string::npos);
  CHECK(zs::cli::man_page(grouped, ".Dd November 20, 2026\ndoes.\n").find("theirs") != std::string::npos);
  const std::string none = ".Dd November 20, 2026\ndoes.\n.Sh BUGS\nNone.\n";
  CHECK(zs::cli::man_page(command, none).find(".Sh EXAMPLES\n.Pp\nIn short:\n") != std::string::npos);
}

TEST_CASE("what is not in the table is refused, naming the nearest") {
  CHECK(refusal({"--sort_bye", "x"}).find("unknown option '--sort_bye', did you mean '--sort_by'?") == 0);
  CHECK(refusal({"--sort", "x"}).find("unknown option '--sort'") == 0);  // no guessing from a prefix
  CHECK(refusal({"--warmup"}) == "option '--warmup' needs a value");
  CHECK(refusal({"--quiet=yes"}) == "option '--quiet' takes no value");
  CHECK(refusal({"--format", "tvs"}).find("--format: 'tvs' is not one of table, tsv") == 0);
}

TEST_CASE("numbers are within their range or refused; nan is never within") {
  const auto real = [](const char* text) {
    return Args::parse(kCommand, {std::string("--warmup=") + text}).real("warmup", 0, 1);
  };
  CHECK(real("0.25") == 0.25);
  for (const char* bad : {"nan", "inf", "-0.1", "1.5", "", "0.5x"}) CHECK_THROWS_AS(real(bad), UsageError);
  const auto whole = [](const char* text) {
    return Args::parse(kCommand, {std::string("--warmup=") + text}).integer("warmup", 1, 8);
  };
  CHECK(whole("8") == 8);
  for (const char* bad : {"0", "9", "2.5", "", "3x", "99999999999999999999"}) CHECK_THROWS_AS(whole(bad), UsageError);
}

TEST_CASE("a line records the words so that a shell reads them back") {
  CHECK(Args::parse(kCommand, {"a b", "it's", "$x"}).line() == "zs-x 'a b' 'it'\\''s' '$x'");
}

TEST_CASE("help has every option with its default, and the page escapes what mdoc would take for markup") {
  const std::string help = zs::cli::help_text(kCommand);
  CHECK(help.find("Usage: zs-x [OPTION]... [FILE]...") == 0);
  CHECK(help.find("--format NAME") != std::string::npos);
  CHECK(help.find("table, tsv [table]") != std::string::npos);
  const std::string page =
      zs::cli::man_page(kCommand, ".Dd November 20, 2026\nIt does.\n.Sh FILES\nx\n.Sh EXAMPLES\nNone.\n");
  CHECK(page.find(".It Fl \\-sort_by Ar COL\n") != std::string::npos);
  CHECK(page.find(".Sh EXAMPLES\nNone.\n") < page.find(".Sh EXIT STATUS"));
  CHECK(page.find(".Sh EXIT STATUS") < page.find(".Sh FILES\nx\n"));
}
