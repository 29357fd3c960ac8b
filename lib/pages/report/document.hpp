// SPDX-License-Identifier: Apache-2.0
// A report as data: sections of sentences, tables and figures; the input of Markdown and HTML.
#pragma once
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "figure/figure.hpp"
#include "report/text.hpp"

namespace zs::report {

/// The origin of a number: a run, its file, and its lines.
struct Origin {
  std::string what;   ///< "final loss of z1_baseline"
  std::string value;  ///< the number, shortest round-trip text
  std::string run;
  std::string path;                    ///< of the log, as recorded; "" if unknown
  std::string link;                    ///< the same, relative to the report, if the file exists; else ""
  long first_line = 0, last_line = 0;  ///< 0 if unknown
  std::string step;                    ///< "100", "6 to 100"
  /// "z1_baseline.log:240", or "" without a path.
  std::string place() const;
};

struct Paragraph {
  Text text;
};
struct List {
  std::vector<Text> items;
};
struct Cell {
  Text text;
  double key = std::numeric_limits<double>::quiet_NaN();  ///< the sort key of the column; not finite: its words
};
struct Grid {
  std::string title;
  std::vector<std::string> header;
  std::vector<bool> numeric;  ///< columns of numbers are aligned right
  std::vector<std::vector<Cell>> rows;
  bool folded = false;  ///< collapsed in HTML: a page shows its title, and the rest on a click
};
struct Picture {
  std::string name;     ///< of the picture's file for a Markdown report, without folder and suffix
  std::string caption;  ///< the description, for those who cannot see it
  figure::Figure figure;
  bool half = false;  ///< half width: two of them are placed next to each other
};
struct Subtitle {
  std::string text;
};
using Block = std::variant<Paragraph, List, Grid, Picture, Subtitle>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
};

/// The verdict: the statement holds; it does not; the data cannot decide.
enum class Verdict { good, bad, open };

struct Document {
  std::string title;
  Verdict verdict = Verdict::open;
  std::string label;  ///< the verdict in a few words: "Same bits"
  Text verdict_text;  ///< the first paragraph
  std::vector<Section> sections;
  std::vector<Origin> origins;
  std::string data{};  ///< JSON for programs; "" if the kind of report has none
  std::string rows{};  ///< tab-separated rows for programs; "" if the kind of report has none
  std::string tool;    ///< the program that wrote it, with its version
};

}  // namespace zs::report
