// SPDX-License-Identifier: Apache-2.0
#include "parse/log.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "base/checksum.hpp"
#include "base/number.hpp"
#include "parse/custom.hpp"
#include "parse/document.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kLongestLine = 16 << 20;  // a longer one is read in pieces
constexpr std::int64_t kHeaderLines = 100;      // shown to all dialects
constexpr std::int64_t kSearched = 10'000;      // the same, if none of them has found a record
constexpr int kFaulty = -2;
constexpr std::size_t kRecent = 4096;

/// Adds the user's attributes for all logs.
Options with_custom(Options options) {
  if (options.dialect.empty()) options.map.insert(custom().map.begin(), custom().map.end());
  return options;
}

std::vector<std::string> keys_of(const std::map<std::string, std::string>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, column] : map) keys.push_back(key);
  return keys;
}

std::vector<const Entry*> chosen(const Options& options) {
  if (!options.dialect.empty()) return {&dialect_named(options.dialect)};
  std::vector<const Entry*> entries;
  for (const Entry& entry : dialects()) entries.push_back(&entry);
  return entries;
}

Markers markers_of(const std::vector<const Entry*>& entries) {
  std::vector<std::string_view> markers;
  for (const Entry* entry : entries) markers.insert(markers.end(), entry->markers.begin(), entry->markers.end());
  return Markers(markers);
}

}  // namespace

LogReader::LogReader(Options options, metric::Writer& rows, const FaultSink& faults)
    : mapped_(keys_of(options.map)),
      options_(with_custom(std::move(options))),
      rows_(rows),
      faults_(faults),
      records_(options_.map, rows),
      markers_(markers_of(chosen(options_))) {
  if (!options_.pattern.empty()) readers_.push_back({"pattern", make_pattern(options_.pattern)});
  if (options_.dialect.empty()) {
    for (const std::string& pattern : custom().patterns) readers_.push_back({"pattern", make_pattern(pattern)});
  }
  for (const Entry* entry : chosen(options_)) {
    readers_.push_back({std::string(entry->name), entry->make()});
    if (readers_.back().dialect->companion()) companions_.push_back(readers_.size() - 1);
  }
}

LogReader::~LogReader() = default;

void LogReader::read(const std::string& path) {
  while (true) {
    std::optional<Checksum> checksum;
    Input source(path, [&](std::string_view bytes) { checksum->add(bytes); });
    checksum.emplace(source.size());
    path_ = source.name();
    number_ = 1;
    recent_.clear();
    wants_all_ = true;
    finished_ = 0;
    ++parts_;
    read_part(source);
    close_line();
    for (hint_ = 0; hint_ < readers_.size(); ++hint_) readers_[hint_].dialect->finish(*this);
    hint_ = 0;
    // An exception of before the line that says that all ended well was caught; launchers say how a rank ended.
    const auto error = attributes_.find("error_line");
    if (error != attributes_.end() && parse_int(error->second).value_or(finished_) < finished_ &&
        !attributes_.contains("exit_code")) {
      forget_end();
      attributes_["exit_state"] = "finished";
    }
    const std::string part = parts_ == 1 ? "" : "." + std::to_string(parts_);
    attributes_["source" + part] = path_;
    attributes_["source_" + checksum->name() + part] = checksum->text();
    const bool rotated = options_.follow_until && !*options_.follow_until && source.replaced();
    if (rotated) continue;  // the path is another log now
    if (source.missing() > 0)
      fault(0, "the file lost " + std::to_string(source.missing()) + " bytes while it was read", "the file shrank");
    return;
  }
}

void LogReader::read_part(Input& source) {
  Blocks blocks(source, options_.block, options_.ahead && !options_.follow_until);
  while (true) {
    const std::string_view block = next_block(blocks, source);
    const char* begin = block.data();
    const char* const end = begin + block.size();
    if (block.empty() && (cut_ || !carry_.empty())) ++stats_.lines;  // one without an end
    if (!carry_.empty()) {                                           // its line ends in this block, or the log does
      const void* const newline = std::memchr(begin, '\n', block.size());
      const char* const rest = newline ? static_cast<const char*>(newline) + 1 : end;
      carry_.append(begin, rest);
      begin = rest;
      const bool too_long = !newline && carry_.size() > kLongestLine;
      if (too_long) fault(number_, "a line of more than 16 MB: read in pieces");
      cut_ = too_long;
      if (newline || too_long || block.empty()) take_carry();
    }
    if (block.empty()) return;
    const void* const newline = begin < end ? ::memrchr(begin, '\n', static_cast<std::size_t>(end - begin)) : nullptr;
    const char* const whole = newline ? static_cast<const char*>(newline) + 1 : begin;
    take_block(begin, whole);
    carry_.append(whole, end);
  }
}

void LogReader::take_carry() {
  const std::size_t size = carry_.size();
  carry_.append(Blocks::kSlack, '\0');
  take_block(carry_.data(), carry_.data() + size);
  carry_.clear();
}

/// At the end of a log that is followed: waits, unless it is to be followed no more or another file has its name.
std::string_view LogReader::next_block(Blocks& blocks, const Input& source) {
  while (true) {
    const std::string_view block = blocks.next();
    bytes_ += static_cast<std::int64_t>(block.size());
    if (!block.empty() || !options_.follow_until) return block;
    options_.caught_up();
    if (*options_.follow_until || source.replaced()) return block;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void LogReader::take_block(const char* begin, const char* end) {
  const char* counted = begin;  // number_ is the number of the line here
  const auto count_to = [&](const char* to) {
    const std::int64_t passed = count_newlines(counted, to);
    number_ += passed;
    stats_.lines += passed;
    counted = to;
  };
  const char* at = begin;  // always the start of a line, or the byte after a carriage return
  while (at < end) {
    const char* const hit = wants_all_ ? at : markers_.find(at, end);
    if (!hit) break;
    const auto last = [&](char c, const char* from) {
      const void* const found = ::memrchr(from, c, static_cast<std::size_t>(hit - from));
      return found ? static_cast<const char*>(found) + 1 : from;
    };
    const auto first = [&](char c, const char* to) {
      const void* const found = std::memchr(hit, c, static_cast<std::size_t>(to - hit));
      return found ? static_cast<const char*>(found) : to;
    };
    const char* const line_begin = last('\n', at);
    count_to(line_begin);
    const char* const segment_begin = last('\r', line_begin);
    const char* const segment_end = first('\r', first('\n', end));
    take_line({segment_begin, static_cast<std::size_t>(segment_end - segment_begin)}, segment_end < end);
    at = segment_end + 1;
  }
  count_to(end);
}

void LogReader::take_line(std::string_view text, bool ended) {
  if (number_ == 1) {
    skip(text, "\xEF\xBB\xBF");  // a byte order mark
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
      fault(1, "UTF-16 text: convert it first, with iconv -f UTF-16 -t UTF-8");
  }
  try_dialects(text, ended);
  wants_all_ = number_ < (stats_.records == 0 && !options_.facts_only ? kSearched : kHeaderLines) ||
               std::ranges::any_of(readers_, [](const Reader& r) { return r.dialect->wants_all(); });
}

void LogReader::try_dialects(std::string_view text, bool ended) {
  const std::string_view clean = without_escapes(text, clean_);
  const Line line{clean, number_, ended, clean.size() < text.size() && text.find("\x1b[A") != text.npos};
  std::string complaint;
  const std::size_t preferred = readers_[hint_].dialect->last_resort() ? 0 : hint_;
  const std::int64_t before = stats_.records;
  std::size_t found = readers_.size();
  // A line may hold facts about the run and a record; a record ends the search.
  for (std::size_t turn = 0; turn <= readers_.size() && stats_.records == before; ++turn) {
    const std::size_t index = turn == 0 ? preferred : turn - 1;
    if (index >= readers_.size() || (turn > 0 && index == preferred)) continue;
    const bool known = settled_ || !complaint.empty() || found < readers_.size();
    if (known && readers_[index].dialect->last_resort()) continue;
    hint_ = index;  // fault() asks whose line it is
    Verdict verdict = readers_[index].dialect->read(line, *this);
    if (complaint.empty()) complaint = std::move(verdict.fault);
    if (verdict.matched && (found == readers_.size() || stats_.records != before)) found = index;
  }
  if (stats_.records == before) hint_ = preferred;
  if (stats_.records == 0 && found == readers_.size()) likeliest_.see(line.text, number_);
  if (found < readers_.size()) {
    if (classed_ != number_) {
      close_line();
      classed_ = number_;
      class_ = static_cast<int>(found);
    }
  }
  if (!complaint.empty()) fault(number_, complaint);
}

/// Counts the line that is done.
void LogReader::close_line() {
  if (class_ == kFaulty) ++stats_.faulty;
  if (class_ >= 0) ++readers_[static_cast<std::size_t>(class_)].matched;
  if (class_ != -1) recent_.emplace_back(classed_, class_);
  if (recent_.size() > kRecent) recent_.pop_front();
  class_ = -1;
  classed_ = 0;
}

void LogReader::fault(std::int64_t line, const std::string& what) { fault(line, what, what.substr(0, what.find(':'))); }

void LogReader::fault(std::int64_t line, const std::string& what, const std::string& kind) {
  if (line == number_ && classed_ != number_) {
    close_line();
    classed_ = number_;
  }
  const auto is_it = [&](const auto& one) { return one.first == line; };
  if (line > 0 && line == classed_) {
    class_ = kFaulty;
  } else if (const auto known = std::ranges::find_if(recent_, is_it);
             known != recent_.end() && known->second != kFaulty) {  // it was counted as matched
    --readers_[static_cast<std::size_t>(known->second)].matched;
    ++stats_.faulty;
    known->second = kFaulty;
  }
  ++stats_.faults[kind];
  faults_({path_, line, what});
}

void LogReader::attribute(std::string_view key, std::string_view value, bool replace) {
  if (value.empty() || value == "None") return;
  if (!options_.series.empty() && key.find(kSeries) != std::string_view::npos &&
      !skip(key, options_.series + std::string(kSeries)))
    return;  // of another run
  const std::string name = attribute_named(key);
  if (name.empty()) return;  // "a=1 =b": what has no name says nothing
  const std::string text(attribute_value(value));
  if (name == "exit_state" && text == "finished") finished_ = number_;
  if (replace) {
    attributes_[name] = text;
  } else {
    attributes_.emplace(name, text);
  }
}

/// Fields that other dialects hold back for a record's step, and that the record lacks.
std::vector<Field> LogReader::held_by_others(const std::vector<Field>& fields, std::string_view rank) {
  std::vector<Field> held;
  const auto value_of_column = [&](std::string_view column) {
    const auto found =
        std::ranges::find_if(fields, [&](const Field& field) { return records_.column_of(field).column == column; });
    return found == fields.end() ? std::string_view() : found->value;
  };
  const std::size_t reading = hint_;
  for (const std::size_t at : companions_) {
    Reader& other = readers_[hint_ = at];  // records emitted meanwhile belong to that dialect
    if (hint_ == reading || !other.dialect->holds()) continue;
    other.keys.clear();
    for (const Field& field : other.dialect->give(value_of_column("step"), rank, *this)) {
      const std::string_view said = value_of_column(field.key);
      if (!said.empty() && (said == field.value || parse_real(said) == parse_real(field.value))) continue;
      held.push_back(field);
      if (!said.empty()) held.back().key = other.keys.emplace_back(other.name + "." + std::string(field.key));
    }
  }
  hint_ = reading;
  return held;
}

void LogReader::record(const std::vector<Field>& fields, std::string_view prefix, std::int64_t line) {
  const std::string rank = prefix.empty() ? "" : rank_of(prefix);
  Records::Place place{rank, line, parts_};
  const std::vector<Field> held = held_by_others(fields, place.rank);  // may make another record
  std::vector<Field>& kept = kept_;
  kept = fields;
  if (!options_.series.empty()) {
    std::erase_if(kept, [&](Field& field) {
      const bool shared = field.key.find(kSeries) == std::string_view::npos;
      const bool limit = field.key.ends_with("__MIN") || field.key.ends_with("__MAX");
      return !shared && (limit || !skip(field.key, options_.series + std::string(kSeries)));
    });
    if (kept.size() < 2) return;  // the step alone
  }
  for (const Field& field : held) {
    if (field.key == "rank")
      place.rank = field.value;
    else
      kept.push_back(field);
  }
  const Dialect& dialect = *readers_[hint_].dialect;
  settled_ = settled_ || !(dialect.last_resort() || dialect.companion());
  for (const std::string& what : records_.add(kept, place)) fault(line, what);
  ++stats_.records;
}

void LogReader::forget_end() {
  for (const char* const name : {"error", "error_line", "error_place", "error_rank", "exit_code", "exit_state"})
    attributes_.erase(name);
}

void LogReader::finish() {
  for (const Reader& reader : readers_) {
    if (reader.matched > 0) stats_.matched[reader.name] += reader.matched;
    const std::string reading = reader.dialect->reading();
    if (!reading.empty() && custom().note && !options_.facts_only)  // who records a training learns it from zs-parse
      custom().note(path_ + ": no dialect is known for its lines; read as " + reading +
                    "; if that is wrong, give zs-parse a --pattern or --map, or write a pattern file");
  }
  std::vector<std::string> doubts = records_.doubts();
  if (stats_.records > 0) {
    for (const std::string& doubt : records_.unseen(mapped_)) doubts.push_back(doubt);
  }
  for (const std::string& doubt : doubts) {
    if (custom().note) custom().note(path_ + ": " + doubt);
  }
  std::int64_t known = stats_.faulty;
  for (const auto& [name, count] : stats_.matched) known += count;
  stats_.other = stats_.lines - known;
  if (stats_.records == 0 && parts_ > 0 && !options_.facts_only)
    fault(0,
          "no metric line among " + std::to_string(stats_.lines) + (stats_.lines == 1 ? " line" : " lines") +
              likeliest_.advice(),
          "no metric line");
  rows_.finish(attributes_);
}

}  // namespace zs::parse
