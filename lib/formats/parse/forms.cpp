// SPDX-License-Identifier: Apache-2.0
// Dialects whose lines are a step and cells of a key and a number, such as "iter 100: loss 2.1234, time 135.12ms". A
// row of kForms is one kind of line; a new dialect of that kind needs rows here and its row in dialects.cpp.
#include "parse/dialect.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::parse {
namespace {

/// More properties of the lines of a form.
enum Trait : unsigned {
  kAlone = 1,     ///< the line begins with it and has nothing else
  kClosed = 2,    ///< each cell ends with the separator, and nothing else stands in it
  kFull = 4,      ///< a line with fewer cells than one before it is torn
  kOfBefore = 8,  ///< it has no step: it is of the step line before
  kStamped = 16,  ///< a step's time is the difference of the stamps of the logger
  kOfRun = 64,    ///< each rank has one: the largest values are facts about the run
  kExact = 32     ///< nothing may follow the last number either
};

struct Form {
  std::string_view dialect;
  std::string_view what;  ///< for messages
  /// '#' is the step, '@' the number of steps, '~' any blanks, '*' any text before what follows.
  std::string_view head;
  std::string_view separator;  ///< of cells; a blank: any number of blanks
  std::string_view mark;       ///< between key and number
  std::string_view first;      ///< how its first cell begins: "loss;train loss"; "": with anything
  std::string_view names;  ///< "key=column;key=column" where the column is not the key's usual one; no column: left out
  unsigned traits = 0;
  std::string_view has{}, lacks{};  ///< the rest of the line has this, and none of these
};

constexpr std::string_view kMegatron =
    "lm loss=loss;lm-loss=loss;elapsed time per iteration=iteration_time;throughput per GPU=tflops;"
    "number of skipped iterations=skipped_iterations;number of nan iterations=nan_iterations;"
    "allocated=alloc_mem;max allocated=peak_mem;reserved=reserved_mem;max reserved=peak_reserved_mem;"
    "lm loss value=valid_loss;lm loss PPL=valid_perplexity;approx flops per GPU=";
constexpr std::string_view kVerl =
    "perf/max_memory_allocated_gb=peak_mem;perf/max_memory_reserved_gb=peak_reserved_mem";

constexpr auto kForms = std::to_array<Form>({
    {"nanogpt", "iter line", "iter #: ", ", ", " ", "loss", "time=iteration_time"},
    {"nanogpt", "evaluation line", "step #: ", ", ", " ", "train loss",
     "train loss=train_split_loss;val loss=valid_loss", kFull, "", " (took ; |"},
    // Of build-nanogpt, in its log.txt.
    {"nanogpt", "step line", "# ", " ", " ", "train;val;hella", "train=loss;val=valid_loss;hella=valid_accuracy",
     kAlone},
    {"llm.c", "step line", "step ~#/~@ | ", "|", " ", "loss;train loss", "train loss=loss", kFull},
    {"llm.c", "step line", "step #: ", " (", " ", "train loss", "train loss=loss;took=iteration_time", kExact,
     " (took "},
    {"llm.c", "validation line", "", "|", " ", "val loss ", "val loss=valid_loss", kOfBefore},
    {"llm.c", "step line", "s:# ", " ", ":", "trl;tel;eval", "trl=loss;tel=valid_loss", kAlone},
    {"torchtitan", "step line", "validate step:~#  ~", " ", ":", "loss",
     "loss=valid_loss;memory=peak_reserved_mem;tps=tokens_per_second_per_rank"},
    {"torchtitan", "step line", "step:~#  ~", " ", ":", "loss",
     "memory=peak_reserved_mem;tps=tokens_per_second_per_rank", kFull | kStamped},
    {"verl", "step line", "step:# - ", " - ", ":", "", kVerl, kExact},
    {"megatron", "validation line", "validation loss at iteration #*|", "|", ":", "lm loss", kMegatron, kClosed},
    {"megatron", "validation line", "validation loss at *|", "|", ":", "lm loss", kMegatron, kClosed | kOfBefore},
    {"megatron", "memory line", "(after # iterations) memory (MB) |", "|", ":", "allocated", kMegatron, kOfRun},
    {"megatron", "iteration line", "iteration ~#/~@ |", "|", ":", "consumed;elapsed;learning;lm", kMegatron, kClosed},
});

/// A line that says something of the whole run.
struct Closing {
  std::string_view dialect, text, milliseconds;  ///< `milliseconds`: the attribute that the number behind the text is
};
constexpr auto kClosings = std::to_array<Closing>({
    {"llm.c", "total average iteration time: ", "summary.iteration_time"},
    {"torchtitan", "INFO - Training completed", ""},
});

/// The columns of numbers that have a unit and no key.
constexpr auto kUnits = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"ms", "iteration_time"}, {"%", "mfu"}, {" ms", "iteration_time"}, {" tok/s", "tokens_per_second"}});

/// "a;b" as a and b; "" as none.
std::vector<std::string> listed(std::string_view text) {
  return text.empty() ? std::vector<std::string>() : split(text, ";");
}

/// The head of a line, and the cells after it.
struct Headed {
  std::size_t at = 0;  ///< where the head begins
  std::string_view step, total, rest;
};

/// Follows `head` from the start of `text`; false if it is another.
bool follow(std::string_view head, std::string_view text, Headed& found) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (c == '~') {
      skip_blanks(text);
    } else if (c == '*') {
      const std::size_t end = text.find(head[i + 1]);
      if (end == std::string_view::npos) return false;
      text.remove_prefix(end);
    } else if (c == '#' || c == '@') {
      // A number with other characters than digits is a fault, not a step: "1,000".
      std::string_view& number = c == '#' ? found.step : found.total;
      const auto is_part = [](char part) { return is_digit(part) || part == ',' || part == '.' || part == '_'; };
      number = take_while(text, is_part);
      if (number.empty() || !is_digit(number.front())) return false;
    } else {
      if (text.empty() || text.front() != c) return false;
      text.remove_prefix(1);
    }
  }
  found.rest = text;
  return true;
}

class Forms : public Dialect {
 public:
  explicit Forms(std::string_view dialect) : last_step_(dialect == "llm.c" ? "0" : "") {
    for (const Form& form : kForms) {
      if (form.dialect != dialect) continue;
      Row& row = rows_.emplace_back(&form, form.head.substr(0, form.head.find_first_of("#~*")));
      row.first = listed(form.first), row.lacks = listed(form.lacks);
      for (const std::string& entry : listed(form.names))
        row.names[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    }
    for (const Closing& closing : kClosings) {
      if (closing.dialect == dialect) closing_ = &closing;
    }
  }

  bool wants_all() const override { return alone_; }

  Verdict read(const Line& line, Emitter& emitter) override {
    for (Row& row : rows_) {
      Headed found;
      if (!find(row, line.text, found)) continue;
      const Verdict verdict = read_cells(row, line, found, emitter);
      if (verdict.matched || !verdict.fault.empty()) return verdict;
    }
    // torchtitan has restarted: the time since the step before measures the restart.
    if (line.text.find("Training starts at step") != std::string_view::npos) logged_.clear();
    return closing_ ? read_closing(line, emitter) : Verdict{};
  }

 private:
  /// The meaning of a key of a form.
  struct Meaning {
    std::string key, column;  ///< no column: the value's unit gives it
    bool of_test;             ///< in a line of the test's data
    bool thousandths;
    bool of_gpu;  ///< of one GPU at one time: no column holds it
  };
  struct Row {
    const Form* form;
    std::string_view fixed;                                   ///< of its head, in front of the first number
    std::vector<std::string> first{}, lacks{};                ///< entries of its `first` and `lacks`
    std::map<std::string, std::string, std::less<>> names{};  ///< the column of a key
    std::size_t width = 0;                                    ///< cells of its widest line so far
    std::deque<Meaning> meanings{};                           ///< of the cells of the line before, in order
  };
  struct Cell {
    std::string_view key, text;
    bool last = false;  ///< no separator follows
  };

  static bool find(const Row& row, std::string_view text, Headed& found) {
    const Form& form = *row.form;
    if (form.head.empty()) {
      found.at = text.find(form.first);
      if (found.at == std::string_view::npos) return false;
      found.rest = text.substr(found.at);
      const std::string_view before = text.substr(0, found.at);
      std::string_view after = found.rest.substr(form.first.size());
      const bool number = !take_number(after).text.empty() && (trimmed(after).empty() || !number_ends(after));
      return number && (before.empty() || (is_blank(before.back()) && before.find("loss") == std::string_view::npos));
    }
    for (std::size_t at = text.find(row.fixed); at != std::string_view::npos; at = text.find(row.fixed, at + 1)) {
      if (form.traits & kAlone && at > 0) return false;
      if (at > 0 && is_key(text[at - 1])) continue;
      found.at = at;
      if (!follow(form.head, text.substr(at), found) || !fits(row, trimmed(found.rest))) continue;
      // "Epoch 1/3 | step 1/10 | loss 2.9": llm.c counts no epochs.
      if (form.dialect != "llm.c" || !has_epoch(text.substr(0, at))) return true;
    }
    return false;
  }

  /// "Epoch 1/3 | ", and not the "epochs" of a path.
  static bool has_epoch(std::string_view before) {
    const std::string words = lower(before);
    for (std::size_t at = words.find("epoch"); at != std::string::npos; at = words.find("epoch", at + 1)) {
      std::string_view rest = std::string_view(words).substr(at + 5);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t:=#["), rest.size()));
      if (!rest.empty() && is_digit(rest.front())) return true;
    }
    return false;
  }

  /// Whether a text has a pair with a mark, "loss: 2.5" or "loss=2.5".
  static bool has_marked_pair(std::string_view text) {
    for (std::size_t at = text.find_first_of(":="); at != std::string_view::npos;
         at = text.find_first_of(":=", at + 1)) {
      std::size_t begin = at;
      while (begin > 0 && is_key(text[begin - 1])) --begin;
      if (begin < at && is_alpha(text[begin]) && !number_at(trimmed(text.substr(at + 1))).text.empty()) return true;
    }
    return false;
  }

  /// Whether the text behind a head is a form's. Where a blank is the mark, a line with another mark is one of another
  /// program, unless lines of this form have come: then it is torn.
  static bool fits(const Row& row, std::string_view rest) {
    if (row.form->mark == " " && row.width == 0 && has_marked_pair(rest)) return false;
    const auto begins = [&](std::string_view entry) {
      return rest.starts_with(entry) && (rest.size() == entry.size() || !is_key(rest[entry.size()]));
    };
    const auto holds = [&](std::string_view entry) { return rest.find(entry) != std::string_view::npos; };
    return (row.first.empty() || std::ranges::any_of(row.first, begins)) && holds(row.form->has) &&
           std::ranges::none_of(row.lacks, holds);
  }

  /// Removes and returns the cell in front.
  static Cell take(const Form& form, std::string_view& rest) {
    Cell cell;
    if (form.separator == " ") {  // the key's mark ends it, and its value ends at a blank
      skip_blanks(rest);
      const std::string_view before = rest;
      cell.key = take_key(rest);
      if (cell.key.empty() || !skip(rest, form.mark)) return rest = before, Cell{};
      skip_blanks(rest);
      std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      if (!number_ends(rest.substr(end))) end = rest.size();  // "1 234"
      cell.text = rest.substr(0, end);
      cell.last = end == rest.size();
      rest.remove_prefix(end);
      return cell;
    }
    const std::size_t end = rest.find(form.separator);
    cell.last = end == std::string_view::npos;
    std::string_view text = trimmed(rest.substr(0, end));
    rest.remove_prefix(cell.last ? rest.size() : end + form.separator.size());
    skip(text, "(");
    std::string_view number = text;
    const bool blank = form.mark.front() == ' ';
    if (blank && !take_number(number).text.empty()) return cell.text = text, cell;  // "2747.19 ms"
    std::size_t split = 0;
    if (blank) {  // "train loss 2.4 (+nanz)": the key ends where a number begins
      for (split = text.find(' '); split != std::string_view::npos; split = text.find(' ', split + 1)) {
        if (!number_at(trimmed(text.substr(split))).text.empty()) break;
      }
    } else {
      split = form.separator.front() == '|' ? text.find(form.mark) : text.rfind(form.mark);
      if (split == std::string_view::npos) split = text.rfind(' ');  // older Megatrons leave out the colons
    }
    if (split == std::string_view::npos) split = text.find(' ');  // without a number
    if (split == std::string_view::npos) return cell.text = text, cell;
    cell.key = trimmed(text.substr(0, split));
    cell.text = trimmed(text.substr(split + form.mark.size()));
    return cell;
  }

  Verdict read_cells(Row& row, const Line& line, const Headed& found, Emitter& emitter) {
    const Form& form = *row.form;
    const auto has = [&](Trait trait) { return (form.traits & trait) != 0; };
    const auto wrong = [&](const std::string& what) { return "malformed " + std::string(form.what) + ": " + what; };
    std::string_view prefix = line.text.substr(0, found.at), rest = found.rest;
    if (!std::ranges::all_of(found.step, is_digit))
      return {false, wrong("'" + std::string(found.step) + "' is no step")};
    made_.clear();
    const std::string_view head = line.text.substr(found.at, line.text.size() - rest.size() - found.at);
    of_test_ = head.find("test") != head.npos && form.names.find("valid_") != form.names.npos;
    fields_.assign(1, {"step", has(kOfBefore) ? std::string_view(last_step_) : found.step, Kind::integer});
    std::string what;
    std::size_t place = 0;
    if (const std::size_t speed = prefix.find("samples/sec:"); speed != std::string_view::npos) {  // of GPT-NeoX
      const std::string_view value = prefix.substr(speed + 12, prefix.find('|', speed) - speed - 12);
      const Cell cell{"samples/sec", trimmed(value), false};
      read_value(cell, meaning(row, place++, cell.key), form, line);
      prefix = prefix.substr(0, speed);
    }
    while (what.empty() && !rest.empty()) {
      const Cell cell = take(form, rest);
      if (cell.key.empty() && cell.text.empty()) {
        if (form.separator == " ") break;  // other text
        if (!cell.last && has(kFull)) what = "an empty cell";
        continue;
      }
      const Meaning& meant = meaning(row, place++, cell.key);
      const bool sizes = meant.of_gpu && (cell.text.ends_with('B') || cell.text.ends_with('%'));
      if (cell.last && has(kClosed) && !(sizes && line.ended))
        what = "it ends in '" + std::string((cell.key.empty() ? cell.text : cell.key).substr(0, 40)) + "'";
      else if (!sizes)
        what = read_value(cell, meant, form, line);
    }
    if (has(kAlone) && !trimmed(rest).empty()) return {};
    if (fields_.size() < 2) return {false, what.empty() ? "" : wrong(what)};
    if (what.empty() && has(kFull) && fields_.size() < row.width) what = "it ends early";
    const auto is_loss = [](const Field& field) { return field.key.ends_with("loss"); };
    if (what.empty() && has(kClosed) && !line.ended && std::ranges::none_of(fields_, is_loss))
      what = "the log ends in it";
    row.width = std::max(row.width, fields_.size());
    if (has(kOfRun)) {
      for (const Field& field : fields_) {
        std::int64_t& most = most_[std::string(field.key)];
        const std::int64_t value = parse_int(field.value).value_or(0);
        if (field.key == "step" || value <= most) continue;
        most = value;
        emitter.attribute("memory." + std::string(field.key), field.value, true);
      }
      return {true};
    }
    if (found.total != total_) emitter.attribute("expected_steps", total_ = found.total);
    if (has(kStamped)) add_time(prefix);
    alone_ = alone_ || has(kAlone);
    if (!has(kOfBefore)) last_step_ = found.step;
    emitter.record(fields_, prefix, line.number);
    return {true, what.empty() ? "" : wrong(what)};
  }

  /// The meaning of the key at that place of a line. Most lines of a form have the same keys, so this only compares
  /// texts.
  const Meaning& meaning(Row& row, std::size_t place, std::string_view key) const {
    const Meaning* const known = place < row.meanings.size() ? &row.meanings[place] : nullptr;
    if (known && known->key == key && known->of_test == of_test_) return *known;
    std::string_view name = key;
    if (name.ends_with("(1e-3)")) name.remove_suffix(6);
    const bool thousandths = name.size() < key.size() || key.ends_with(" (ms)");
    name = name.substr(0, name.find(" ("));
    const auto given = row.names.find(name);
    std::string column(given == row.names.end() ? name : std::string_view(given->second));
    if (of_test_ && column.starts_with("valid_")) column.replace(0, 5, "test");
    std::ranges::replace(column, ' ', '_');
    Meaning made{.key = std::string(key),
                 .column = column,
                 .of_test = of_test_,
                 .thousandths = thousandths,
                 .of_gpu = key.find("mem usage") != std::string_view::npos};
    if (!known) return row.meanings.emplace_back(std::move(made));
    return row.meanings[place] = std::move(made);
  }

  /// Adds the field of a cell; gives what is wrong with it.
  std::string read_value(const Cell& cell, const Meaning& meant, const Form& form, const Line& line) {
    std::string_view text = cell.text, column = meant.column;
    const auto quoted = [&] { return "'" + std::string(cell.key.empty() ? cell.text.substr(0, 24) : cell.key) + "'"; };
    if (form.mark == " " && cell.key.find_first_of(":=") != std::string_view::npos) return "no key is " + quoted();
    if (text.starts_with('n') && (skip(text, "np.") || skip(text, "numpy.")))
      text.remove_prefix(std::min(text.find('(') + 1, text.size()));
    const bool grouped = cell.key == "tps" || cell.key == "tflops";
    Token number = grouped ? take_grouped_number(text, made_) : take_number(text);
    if (number.text.empty()) {
      const bool word =
          form.traits & kClosed ? !cell.key.ends_with("loss") && cell.key != "learning rate" : text.starts_with('\'');
      return word ? "" : "no number after " + quoted();
    }
    const bool at_end = text.data() + text.size() == line.text.data() + line.text.size();
    if (!line.ended && at_end && text.find_first_not_of(",0123456789") == std::string_view::npos)
      return "the log ends within the value of " + quoted();
    if (column.empty() && !cell.key.empty()) return "";  // left out
    const auto* const unit = text.empty() ? kUnits.end() : std::ranges::find_if(kUnits, [&](const auto& one) {
      return text.front() == one.first.front() && text.starts_with(one.first);
    });
    if (column.empty() && unit == kUnits.end()) return quoted() + " is no value with a known unit";
    if (column.empty()) column = unit->second;
    if (column.ends_with("_mem")) {
      std::string_view word = take_key(text);
      if (word.empty()) word = form.head.ends_with("(MB) |") ? "MB" : "GB";
      number = {made_.emplace_back(bytes_of(number.text, word)), Kind::integer};
      if (number.text.empty()) return "no size of memory after " + quoted();
      if (skip(text, "(")) text.remove_prefix(std::min(text.size(), text.find(')') + 1));
    }
    if (meant.thousandths || (unit != kUnits.end() && unit->first.ends_with("ms")))
      number = {made_.emplace_back(shifted(number.text, -3)), Kind::real};
    if (skip(text, "/")) take_number(text);  // "1234.5/1230.1": this one, and the mean
    skip(text, ")");
    const bool exact = form.traits & (kExact | kClosed) || !cell.last;
    const bool ends = exact ? text.empty() || text.starts_with(" (") : number_ends(text);
    if (!ends && unit == kUnits.end()) return "other text within " + quoted();
    fields_.push_back({column, number.text, number.kind});
    return "";
  }

  /// The time of a step since the step line before, of the same rank.
  void add_time(std::string_view before) {
    const auto stamp = stamp_in(before);
    const auto step = parse_int(fields_[0].value);
    if (!stamp || !step) return;
    const std::string_view whose = before.substr(0, stamp->second);
    auto& [last, seconds] = logged_.try_emplace(std::string(whose), -1, 0.0).first->second;
    if (last >= 0 && *step > last && stamp->first > seconds) {
      const double each = (stamp->first - seconds) / static_cast<double>(*step - last);
      fields_.push_back({"iteration_time", made_.emplace_back(to_rounded_text(each, 6)), Kind::real});
    }
    last = *step, seconds = stamp->first;
  }

  Verdict read_closing(const Line& line, Emitter& emitter) const {
    const std::size_t at = line.text.find(closing_->text);
    if (at == std::string_view::npos || (closing_->milliseconds.empty() && last_step_.empty())) return {};
    if (std::string_view rest = line.text.substr(at + closing_->text.size()); !closing_->milliseconds.empty()) {
      const Token time = take_number(rest);
      if (time.text.empty() || !skip(rest, " ms")) return {false, "malformed closing line: no time in ms"};
      emitter.attribute(closing_->milliseconds, shifted(time.text, -3));
    }
    emitter.attribute("exit_state", "finished");
    return {true};
  }

  std::vector<Row> rows_;
  const Closing* closing_ = nullptr;
  std::map<std::string, std::int64_t> most_;  // of kOfRun
  std::string last_step_, total_;
  bool alone_ = false;                                             // lines without a marker were read
  bool of_test_ = false;                                           // the line is of the test's data
  std::map<std::string, std::pair<std::int64_t, double>> logged_;  // step and seconds, by what stands before
  std::vector<Field> fields_;                                      // of the line
  std::deque<std::string> made_;                                   // texts that are not the log's
};

}  // namespace

std::unique_ptr<Dialect> make_forms(std::string_view dialect) { return std::make_unique<Forms>(dialect); }

}  // namespace zs::parse
