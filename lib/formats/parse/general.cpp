// SPDX-License-Identifier: Apache-2.0
// A trainer's own "step N ... loss X" in the spellings that people choose, for logs that no other dialect reads:
//   step 5/12 loss 6.26 lr 0.001 time 0.130s
//   Epoch: [0][5/100]  Time 0.13 (0.15)  Data 0.01 (0.02)  Loss 4.2 (4.5)  Acc@1 5.0 (4.1)
//   [step 5] loss=2.5, lr=1e-3 | 120 ms
//   steps: 10 loss: 2.3456 iter time (s): 0.123 samples/sec: 12.3
//   Train: 0 [  50/1251 (  4%)]  Loss: 6.93 (6.94)  Time: 0.41s        timm: batches of an epoch
//   Train Epoch: 1 [640/60000 (1%)]  Loss: 2.3                         PyTorch's example: samples of an epoch
//   epoch 001:    100 / 1234 loss=12.3, num_updates=100                fairseq: num_updates is the step
//   3epoch:train:1-50batch: iter_time=0.17, loss=12.3                  ESPnet
//   epoch: 1, lr: 1.00e+00 - train loss: 2.34 - valid loss: 2.10       an epoch and no step
//   loss: 1.44 | lr: 5.56e-06 | epoch: 0.03                            neither, but pairs alone
// Between step and loss stand pairs of a key and a number, and nothing else: prose is left alone. A number in brackets
// behind a value is its mean so far, and is left out.
#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "base/words.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"
#include "parse/step_head.hpp"

namespace zs::parse {
namespace {

/// Words before "step" in lines that mention a step but have no metrics.
bool is_prose(std::string_view prefix) {
  const std::string text = lower(prefix);
  for (const std::string_view word :
       {"sav", "load", "restor", "resum", "checkpoint", "best", "early", "skip", "profil", "error", "fail"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  std::string_view rest = trimmed(text);
  const std::string_view last = rest.substr(rest.find_last_of(" \t") + 1);  // npos + 1 is 0
  static constexpr std::array<std::string_view, 14> kWords = {
      "at", "from", "after", "before", "to", "for", "per", "since", "until", "every", "next", "the", "first", "last"};
  return std::ranges::find(kWords, last) != kWords.end();
}

/// What the metrics of a line are of that says it before its step, "[eval] step 5", "Test epoch 1": "valid_", "test_".
std::string_view split_of(std::string_view prefix) {
  while (!prefix.empty() && !is_alpha(prefix.back())) prefix.remove_suffix(1);
  std::size_t begin = prefix.size();
  while (begin > 0 && is_key(prefix[begin - 1])) --begin;
  const std::string word = lower(prefix.substr(begin));
  if (word == "test" || word == "testing") return "test_";
  static constexpr std::array<std::string_view, 6> kWords = {"eval", "evaluation", "val", "valid", "validation", "dev"};
  return std::ranges::find(kWords, word) == kWords.end() ? "" : "valid_";
}

/// "train" + "loss": words that belong to the next key.
bool qualifies(std::string_view word) {
  static constexpr std::array<std::string_view, 21> kWords = {
      "train",   "training", "val",    "valid",    "validation", "eval", "test", "lm",    "total",    "avg", "mean",
      "average", "running",  "smooth", "smoothed", "grad",       "step", "iter", "batch", "learning", "max"};
  return std::ranges::find(kWords, word) != kWords.end();
}

bool is_loss(std::string_view key) { return key.ends_with("loss") || column_named(key).column.ends_with("loss"); }

/// Whether a number, or a number and its unit, ends before `rest`.
bool value_ends(std::string_view rest) {
  if (rest.starts_with(';')) return rest.size() == 1 || is_blank(rest[1]);
  return number_ends(rest) || std::string_view("|)](").find(rest.front()) != std::string_view::npos;
}

class General : public Dialect {
 public:
  bool last_resort() const override { return true; }
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::string_view text = line.text;
    if (text.find('{') < 3) return {};               // JSON, a dict: other dialects know whether they are whole
    if (text.starts_with("zs-record: ")) return {};  // repeats the last step and loss
    Found found;
    made_.clear();
    heads_.next_line();
    if (const std::size_t at = text.find("epoch:train:"); at != std::string_view::npos && at > 0) {  // ESPnet
      std::size_t first = at;
      while (first > 0 && is_digit(text[first - 1])) --first;
      const std::size_t values = text.find("batch: ", at);
      if (first < at && values != std::string_view::npos) {
        found.epoch = text.substr(first, at - first);
        found.prefix = text.substr(0, first);
        found.rest = text.substr(values + 7);
        found.of_espnet = true;
      }
    }
    for (std::size_t at = 0; at < text.size() && found.epoch.empty();) {  // possible starts of a step or an epoch
      if (!is_alpha(text[at]) || (at > 0 && (is_key(text[at - 1]) || text[at - 1] == '@'))) {
        ++at;
        continue;
      }
      std::string_view rest = text.substr(at);
      if (heads_.take(rest, found)) {
        found.prefix = text.substr(0, at);
        found.rest = rest;
        break;
      }
      std::string_view word = text.substr(at);
      at += std::max<std::size_t>(1, take_word(word).size());
    }
    const bool last = found.step.empty() && trimmed(found.rest).empty();  // "loss: 1.4 | lr: 0.1 | epoch: 1"
    if (last) return read_pairs_alone(line, emitter);
    if (is_prose(found.prefix)) return {};
    const std::string split(split_of(found.prefix));  // fairseq's lines of an epoch have "| valid | "
    const bool of_epoch = found.prefix.ends_with("| train | ") || trimmed(found.rest).starts_with("| train loss ");
    if (of_epoch && found.step.empty() && matched_) return {};  // means of its steps
    if (const std::size_t at = found.rest.find("' subset"); at != std::string_view::npos) {
      found.rest = trimmed(found.rest.substr(at + 8));
      if (!found.rest.starts_with('|')) return {};  // a bar of the validation
    }
    std::string fault = read_pairs(line, found);
    for (Field& field : found.fields) {
      const bool counts = column_named(field.key).column == "step";
      const bool named = field.key.starts_with("val") || field.key.starts_with("eval") || field.key.starts_with("test");
      if (!split.empty() && !counts && !named) field.key = made_.emplace_back(split + std::string(field.key));
    }
    const bool by_step = lower(text.substr(found.prefix.size(), 4)) == "step";
    const auto again = std::ranges::find(found.fields, "step", &Field::key);
    if (by_step && again != found.fields.end() && again->value != found.step)
      return {false, "malformed step line: it has two steps, " + std::string(found.step) + " and " +
                         std::string(again->value)};
    if (!found.has_loss && !read_loss_before(found)) return {false, matched_ || !line.ended ? fault : ""};
    return record(line, found, emitter, fault);
  }

  std::string reading() const override {
    std::string left;
    for (const auto& [key, count] : left_out_)
      left += (left.empty() ? "; left out, as their units are unknown: " : ", ") + key + " (" + std::to_string(count) +
              (count == 1 ? " value)" : " values)");
    return matched_ ? reading_ + left : "";
  }

 private:
  struct Found : StepHead {
    std::string_view prefix, rest;
    std::vector<Field> fields;
    std::vector<std::string> left_out;  // keys whose value has a unit of no column
    bool has_loss = false, of_espnet = false;
  };

  /// A line of pairs and nothing else, with a loss among them: a record without a step.
  Verdict read_pairs_alone(const Line& line, Emitter& emitter) {
    Found found;
    found.rest = trimmed(line.text);
    const bool named = !found.rest.empty() && is_alpha(found.rest.front());
    if (!named || !line.ended) return {};
    const std::string fault = read_pairs(line, found);
    if (!found.rest.empty() || !found.has_loss) return {};
    if (found.fields.size() < 2) {  // "validation loss: 2.31": of the step before; "val_loss = 0.0" is a program's text
      const bool told = line.text.find('=') == std::string_view::npos;
      if (!told || column_named(found.fields.front().key).column != "valid_loss") return {};
      found.step = last_step_;
    }
    return record(line, found, emitter, fault);
  }

  /// Reads the pairs after the step, up to anything else. Returns the defect of a loss's value.
  std::string read_pairs(const Line& line, Found& found) {
    std::string_view& rest = found.rest;
    while (true) {
      while (!rest.empty() && (is_separator(rest.front()) || rest.front() == ':')) rest.remove_prefix(1);
      if (skip(rest, "- ") || skip(rest, "-> ") || skip(rest, "=> ") || skip(rest, "completed ")) continue;
      if (rest.empty()) return "";
      std::string_view ahead = rest;
      if (const Token number = take_number(ahead); !number.text.empty()) {  // "120 ms", "5.2 it/s"
        if (!line.ended || !unit_of(ahead, number, "", found)) return "";
        rest = ahead;
        continue;
      }
      std::string key = lower(take_word(ahead));
      if (key.empty()) return "";
      while (qualifies(key) || is_qualified(key)) {
        std::string_view next = ahead;
        skip_blanks(next);
        const std::string more = lower(take_word(next));
        if (more.empty()) break;
        key += "_" + more;
        ahead = next;
      }
      if (std::string_view next = ahead; key == "loss" && (skip_blanks(next), true)) {  // LitGPT: "loss train: 2.3"
        const std::string more = lower(take_word(next));
        if (qualifies(more) && next.starts_with(':')) key = more + "_loss", ahead = next;
      }
      const std::size_t gap = ahead.size();
      skip_blanks(ahead);
      std::string_view unit;
      if (std::string_view next = ahead; skip(next, "in s") && next.starts_with(':')) ahead = next;  // NeMo's timings
      if (ahead.starts_with('(') && is_unit(ahead.substr(1, ahead.find(')') - 1))) {  // "iter time (s): 0.1"
        unit = ahead.substr(1, ahead.find(')') - 1);
        ahead.remove_prefix(unit.size() + 2);
        skip_blanks(ahead);
      }
      const bool marked = skip(ahead, ":") || skip(ahead, "=");
      skip_blanks(ahead);
      if (!marked && gap == ahead.size()) return "";
      const bool loss = is_loss(key);
      std::string_view value = ahead;
      skip(value, "\"");
      const Token number = take_number(value);
      if (number.text.empty()) {
        if (loss && (marked || ahead.starts_with("None"))) return "malformed step line: no number after '" + key + "'";
        if (!marked) return "";
        rest = behind_word(ahead);  // key=word
        continue;
      }
      const bool cut = std::ranges::all_of(value, [](char c) { return is_alpha(c) || is_blank(c) || c == '/'; });
      if (!line.ended && cut) return "malformed step line: the log ends within the value of '" + key + "'";
      if (!loss && column_named(key).column == key && other_unit(value, number, key, found)) {
        rest = value;
        continue;
      }
      if (!unit_of(value, number, key, found, unit)) {
        std::string_view clock = value;  // "time: 0:01:02" is not the time of a step
        const bool clocked = skip(clock, ":") && !take_digits(clock).empty();
        if (loss || (column_named(key).column != key && !clocked))
          return "malformed step line: other text within '" + key + "'";
        if (!clocked) found.left_out.push_back(key);
        rest = behind_word(value);  // "eta: 0:01:02", "power 300W"
        continue;
      }
      found.has_loss = found.has_loss || loss;
      rest = value;
      skip_blanks(rest);
      for (const std::string_view of_loss : {"nats/token", "nats", "bits"}) {
        if (std::string_view ahead_of = rest; loss && skip(ahead_of, of_loss) && value_ends(ahead_of)) rest = ahead_of;
      }
      if (rest.starts_with('(')) {  // "4.2 (4.5)", "(avg 4.5)"
        const std::size_t close = rest.find(')');
        if (close != std::string_view::npos && close < 40) rest.remove_prefix(close + 1);
      }
    }
  }

  /// "iter_time" of "iter time", as qualifies() joins them, is whole.
  static bool is_qualified(std::string_view key) {
    const std::size_t bar = key.rfind('_');
    return bar != std::string_view::npos && qualifies(key.substr(bar + 1)) && key.find("step") != bar + 1;
  }

  static bool is_unit(std::string_view word) {
    static constexpr std::array<std::string_view, 8> kUnits = {"s",  "sec",  "secs", "seconds",
                                                               "ms", "msec", "us",   "min"};
    return std::ranges::find(kUnits, word) != kUnits.end();
  }

  static std::string_view behind_word(std::string_view text) {
    return text.substr(std::min(text.find_first_of(" \t,;|"), text.size()));
  }

  /// The column of memory that a key names, or "".
  static std::string_view memory_of(std::string_view key) {
    const auto names = [&](std::string_view word) { return key.find(word) != std::string_view::npos; };
    const bool host = names("cpu") || names("host") || names("sys") || names("ram");
    if (!(names("mem") || names("vram")) || (host && !names("vram"))) return {};
    const bool peak = names("peak") || names("max");
    if (names("reserved") || names("cached")) return peak ? "peak_reserved_mem" : "reserved_mem";
    return peak ? "peak_mem" : "alloc_mem";
  }

  /// Reads a number's unit that is no time: "mem 1.5GB" is a column of memory, "120 TFLOPS" is 120. False if no such
  /// unit follows.
  bool other_unit(std::string_view& rest, Token number, std::string_view key, Found& found) {
    std::string_view ahead = rest;
    skip_blanks(ahead);
    const bool glued = ahead.size() == rest.size();
    const std::string_view word = take_while(ahead, is_alpha);
    if (word.empty() || !(ahead.empty() || is_separator(ahead.front()))) return false;
    std::string_view next = ahead;
    skip_blanks(next);
    const bool blank = next.size() < ahead.size();
    const bool names = next.starts_with(':') || next.starts_with('=') || (blank && !number_at(next).text.empty());
    if (!glued && names) return false;  // the next key
    const std::string small = lower(word.substr(1));
    std::string unit(1, static_cast<char>(word.front() & ~32));
    if (unit != "B") unit += 'B';
    const bool bytes = small.empty() || small == "b" || small == "ib";
    const std::string size = bytes && !memory_of(key).empty() ? bytes_of(number.text, unit) : "";
    if (!size.empty())
      add(found, memory_of(key), made_.emplace_back(size), Kind::integer);
    else if (!glued && std::ranges::none_of(word, [](char c) { return c >= 'a' && c <= 'z'; }))
      add(found, key, number.text, number.kind);
    else
      return false;
    rest = ahead;
    return true;
  }

  /// Reads the unit after a number and adds the field. False if other text follows directly.
  bool unit_of(std::string_view& rest, Token number, std::string_view key, Found& found, std::string_view unit = {}) {
    std::string_view ahead = rest;
    skip(ahead, "\"");
    const std::size_t before = ahead.size();
    skip_blanks(ahead);
    const bool glued = before == ahead.size();
    std::string_view word = take_word(ahead);
    if (ahead.starts_with('/') || word.ends_with('/')) word = {};
    if (ahead.starts_with(':') || ahead.starts_with('=')) word = {};  // the next key
    const std::string_view rate = column_named(word).column;
    const bool is_rate = rate.ends_with("_per_second") && word.find('/') != std::string_view::npos;
    const bool of_step = word == "s/it" || word == "s/step" || word == "s/iter" || word == "sec/step";
    const bool ms_of_step = word == "ms/step" || word == "ms/it" || word == "ms/iter" || word == "ms/batch";
    std::string name(key);
    if (is_rate || of_step || ms_of_step) {
      if (name.empty()) name = is_rate ? rate : "iteration_time";
      unit = ms_of_step ? "ms" : "s";
      rest = ahead;
    } else if (is_unit(word) && (ahead.empty() || is_separator(ahead.front()))) {
      unit = word;
      rest = ahead;
      if (name.empty()) name = "iteration_time";
    } else if (glued && skip(rest, "%")) {
    } else {
      std::string_view end = rest;
      skip(end, "\"");
      if (!value_ends(end)) return false;
      rest = end;
      if (name.empty()) return true;  // a number of nothing
    }
    if (name.empty()) return true;
    const bool time = column_named(name).column == "iteration_time" || name.ends_with("time") ||
                      unit.starts_with("m") || unit == "us";
    const int places = unit == "ms" || unit == "msec" ? -3 : unit == "us" ? -6 : 0;
    if (time && places != 0)
      add(found, name, made_.emplace_back(shifted(number.text, places)), Kind::real);
    else if (unit != "min")
      add(found, name, number.text, number.kind);
    return true;
  }

  void add(Found& found, std::string_view key, std::string_view value, Kind kind) {
    // ESPnet's iter_time is the time to load data; LitGPT writes "loss train: 2.3, val: 2.4".
    if (found.of_espnet) key = key == "iter_time" ? "data_time" : key == "train_time" ? "iteration_time" : key;
    const bool after_loss = !found.fields.empty() && found.fields.back().key == "train_loss";
    if (key == "val" && after_loss) key = "valid_loss";
    const bool known = std::ranges::any_of(found.fields, [&](const Field& f) { return f.key == key; });
    if (!known) found.fields.push_back({made_.emplace_back(key), value, kind});
  }

  /// "loss=2.5 step=5": pairs with a mark, before the step.
  bool read_loss_before(Found& found) {
    for (std::size_t at = 0; at < found.prefix.size(); ++at) {
      if (!is_alpha(found.prefix[at]) || (at > 0 && is_key(found.prefix[at - 1]))) continue;
      std::string_view rest = found.prefix.substr(at);
      const std::string key = lower(take_word(rest));
      skip_blanks(rest);
      if (!is_loss(key) || !(skip(rest, "=") || skip(rest, ":"))) continue;
      skip_blanks(rest);
      const Token number = take_number(rest);
      if (number.text.empty() || !value_ends(rest)) continue;
      add(found, key, number.text, number.kind);
      found.prefix = found.prefix.substr(0, at);
      return found.has_loss = true;
    }
    return false;
  }

  Verdict record(const Line& line, Found& found, Emitter& emitter, const std::string& fault) {
    std::vector<Field> fields;
    if (!found.step.empty()) fields.push_back({"step", found.step, Kind::integer});
    if (!found.samples.empty()) fields.push_back({"samples_of_epoch", found.samples, Kind::integer});
    if (!found.epoch.empty()) fields.push_back({"epoch", found.epoch, Kind::integer});
    for (const Field& field : found.fields) {
      if (field.key != "step" && !(field.key == "epoch" && !found.epoch.empty())) fields.push_back(field);
    }
    if (!found.total.empty()) emitter.attribute("expected_steps", found.total);
    if (last_step_ != found.step) last_step_ = found.step;
    emitter.record(fields, found.prefix, line.number);
    for (const std::string& key : found.left_out) ++left_out_[key];
    if (!matched_) describe(fields);
    matched_ = true;
    return {true, fault};
  }

  /// The interpretation of the first line, for people.
  void describe(const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      const std::string column(column_named(field.key).column);
      reading_ += (reading_.empty() ? "" : ", ") + column +
                  (column == field.key ? "" : " from '" + std::string(field.key) + "'");
    }
  }

  std::deque<std::string> made_;  // texts that are not the log's
  std::string reading_;
  std::map<std::string, std::int64_t> left_out_;  // the values without a column, by their key
  StepHeads heads_;
  std::string last_step_;
  bool matched_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_general() { return std::make_unique<General>(); }

}  // namespace zs::parse
