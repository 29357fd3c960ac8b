// SPDX-License-Identifier: Apache-2.0
// Tables in text, separated by commas, semicolons or tabs, with a header that names a step, or an epoch and a loss:
//   step,train_loss,learning_rate
//   10,2.0751,0.0003
// A line is taken for a header only if the next line is a row of it. Or without a header, from the first line on a
// whole number that grows and a real one, as torchtitan keeps losses: a step and its loss.
//   1 8.049097061157227
#include <algorithm>
#include <utility>

#include "base/number.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"

namespace zs::parse {

std::vector<std::string_view> cells_of(std::string_view text, char separator, std::deque<std::string>& made) {
  std::vector<std::string_view> cells;
  while (true) {
    std::string_view cell;
    if (text.starts_with('"')) {
      std::size_t quote = text.find('"', 1);
      bool doubled = false;
      for (; quote != std::string_view::npos && text.substr(quote + 1).starts_with('"');
           quote = text.find('"', quote + 2))
        doubled = true;
      if (quote == std::string_view::npos) return {};
      cell = text.substr(1, quote - 1);
      text.remove_prefix(quote + 1);
      if (doubled) {
        std::string& plain = made.emplace_back(cell);
        for (std::size_t at = plain.find('"'); at != std::string::npos; at = plain.find('"', at + 1))
          plain.erase(at, 1);
        cell = plain;
      }
      if (!text.empty() && text.front() != separator) return {};
    } else {
      cell = text.substr(0, std::min(text.find(separator), text.size()));
      text.remove_prefix(cell.size());
      cell = trimmed(cell);
    }
    cells.push_back(cell);
    if (text.empty()) return cells;
    text.remove_prefix(1);
  }
}

namespace {

/// A name of a column: starts with a letter or '_' and does not read like prose.
bool is_name(std::string_view cell) {
  return !cell.empty() && cell.size() < 100 && (is_alpha(cell.front()) || cell.front() == '_') &&
         cell.find_first_of("{}:;=?!'\\") == std::string_view::npos;
}

/// The table of two numbers.
class Bare {
 public:
  bool open() const { return rows_ > kFewest; }

  Verdict read(const Line& line, Emitter& emitter) {
    if (rows_ < 0 || (!open() && line.number != rows_ + 1)) return rows_ = -1, Verdict{};
    std::string_view rest = trimmed(line.text);
    const Token step = take_number(rest);
    const bool apart = !rest.empty() && is_blank(rest.front());
    skip_blanks(rest);
    const Token loss = take_number(rest);
    const auto number = parse_int(step.text);
    const bool fits = apart && number && *number > last_ && loss.kind == Kind::real && rest.empty();
    if (!fits || !line.ended) {
      const bool like_one = open() && number;
      if (!open()) rows_ = -1;
      return {false, like_one ? "malformed row: expected a step and a loss" : ""};
    }
    last_ = *number;
    ++rows_;
    held_.emplace_back(std::string(step.text), std::string(loss.text));
    if (!open()) return {true};
    std::int64_t at = line.number - static_cast<std::int64_t>(held_.size());
    for (const auto& [one, value] : std::exchange(held_, {}))
      emitter.record({{"step", one, Kind::integer}, {"loss", value, Kind::real}}, {}, ++at);
    return {true};
  }

 private:
  static constexpr std::int64_t kFewest = 2;  // rows that tell no table yet
  std::int64_t rows_ = 0, last_ = -1;         // rows from the first line on; -1: the log is no such table
  std::vector<std::pair<std::string, std::string>> held_;
};

class Csv : public Dialect {
 public:
  bool wants_all() const override { return separator_ != 0 || bare_.open(); }
  std::string reading() const override { return bare_.open() ? "step and loss, two numbers without names" : ""; }

  Verdict read(const Line& line, Emitter& emitter) override {
    if (line.text.empty()) return {};  // between the two bytes of a CRLF
    if (const Verdict verdict = bare_.read(line, emitter); verdict.matched || bare_.open()) return verdict;
    if (separator_ != 0) {
      const Verdict verdict = read_row(line, emitter);
      if (verdict.matched || !verdict.fault.empty()) return verdict;
    }
    return {read_header(line)};
  }

 private:
  bool read_header(const Line& line) {
    for (const char separator : {',', '\t', ';'}) {
      const auto cells = cells_of(line.text, separator, made_);
      const std::size_t index = !cells.empty() && cells.front().empty() ? 1 : 0;  // pandas leaves its name out
      const bool names = cells.size() >= 2 + index &&
                         std::all_of(cells.begin() + static_cast<std::ptrdiff_t>(index), cells.end(), is_name);
      const auto any = [&](auto test) { return std::ranges::any_of(cells, test); };
      const bool step = any([](std::string_view c) { return column_named(c).column == "step"; });
      const bool loss = any([](std::string_view c) { return c.find("loss") != std::string_view::npos; });
      const bool epoch = any([](std::string_view c) { return column_named(c).column == "epoch"; });
      if (!names || !(step || (epoch && loss)) || !line.ended) continue;
      place_ = step ? "step" : "epoch";
      header_.assign(cells.begin(), cells.end());
      twice_.clear();
      for (const std::string& name : header_) {
        if (!name.empty() && std::ranges::count(header_, name) > 1) twice_ = name;
      }
      separator_ = separator;
      begun_ = false;
      return false;  // it is one if a row follows
    }
    return false;
  }

  Verdict read_row(const Line& line, Emitter& emitter) {
    made_.clear();
    const auto cells = cells_of(line.text, separator_, made_);
    fields_.clear();
    std::size_t numbers = 0, words = 0;
    bool step = false;
    for (std::size_t i = 0; i < std::min(cells.size(), header_.size()); ++i) {
      if (cells[i].empty()) continue;
      if (!twice_.empty() && std::ranges::count(header_, header_[i]) > 1) continue;
      const Token token = value_of(cells[i]);
      (token.kind == Kind::word ? words : numbers) += 1;
      step = step || (column_named(header_[i]).column == place_ && token.kind != Kind::word);
      fields_.push_back({header_[i], cells[i], token.kind});
    }
    const bool fits = cells.size() == header_.size() && step && numbers >= 1;
    if (!begun_ && !fits) {
      separator_ = 0;  // not a header
      return {};
    }
    if (!fits) {
      const bool like_a_row = numbers > words;
      if (!like_a_row) return {};
      const std::string counts = std::to_string(cells.size()) + " of " + std::to_string(header_.size()) + " cells";
      return {false, "malformed row: " + (cells.size() != header_.size() ? counts : "no " + std::string(place_))};
    }
    if (!begun_ && !twice_.empty()) {
      begun_ = true;
      emitter.record(fields_, {}, line.number);
      return {true, "malformed table: two columns are called '" + twice_ + "', and both are left out"};
    }
    begun_ = true;
    if (!line.ended && !line.text.ends_with('"')) {  // a quote ends the last cell
      if (!cells.back().empty()) fields_.pop_back();
      if (fields_.size() > 1) emitter.record(fields_, {}, line.number);
      return {fields_.size() > 1, "malformed row: the log ends within its last cell"};
    }
    emitter.record(fields_, {}, line.number);
    return {true};
  }

  Bare bare_;
  std::vector<std::string> header_;
  std::vector<Field> fields_;
  std::deque<std::string> made_;
  std::string_view place_;  // the column that each row must have
  std::string twice_;       // a name that several columns have; their values are left out
  char separator_ = 0;      // 0: no header was seen
  bool begun_ = false;      // a row was seen
};

}  // namespace

std::unique_ptr<Dialect> make_csv() { return std::make_unique<Csv>(); }

}  // namespace zs::parse
