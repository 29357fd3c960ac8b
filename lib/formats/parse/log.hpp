// SPDX-License-Identifier: Apache-2.0
// Reads the logs of one run: finds the relevant lines, passes them to the dialects, and the records to a Writer.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "metric/ranks.hpp"
#include "metric/writer.hpp"
#include "parse/blocks.hpp"
#include "parse/dialect.hpp"
#include "parse/likeliest.hpp"
#include "parse/marker.hpp"
#include "parse/records.hpp"

namespace zs::parse {

using metric::Ranks;

struct Options {
  std::string dialect;  ///< the only one to try; empty: all
  std::string pattern;  ///< a regular expression with named groups, tried before the dialects; or empty
  std::map<std::string, std::string> map;  ///< key of a log -> its column
  Ranks ranks = Ranks::all;
  std::string series;           ///< of a table of several runs (W&B's export), only the columns of this run
  bool facts_only = false;      ///< the records come from elsewhere: a log without records is not a fault
  std::size_t block = 1 << 18;  ///< bytes read at a time
  bool ahead = true;            ///< read files on disk in a second thread; the result is the same
  /// If not null, waits for more at the end of a log until it is true.
  const std::atomic<bool>* follow_until = nullptr;
  std::function<void()> caught_up = [] {};  ///< called before each wait
};

/// The classification of lines: lines = matched + faulty + other.
struct Stats {
  std::int64_t lines = 0, faulty = 0, other = 0, records = 0;
  std::map<std::string, std::int64_t> matched;  ///< by dialect; a line counts once
  std::map<std::string, std::int64_t> faults;   ///< by kind: usually the text of a fault up to its ':'
};

class LogReader : private Emitter {
 public:
  /// The sink and the rows must outlive the reader. custom() applies too, unless `dialect` is set.
  LogReader(Options options, metric::Writer& rows, const FaultSink& faults);
  ~LogReader() override;

  /// Reads a log to its end, in constant memory. Several logs are parts of the run, in order. Defects in the log go to
  /// the fault sink; throws Error if the log cannot be read at all.
  void read(const std::string& path);
  /// Forgets how the logs so far ended: those that follow are of a later attempt.
  void forget_end();
  /// Passes the attributes to the rows; a run without a metric line is a fault. REQUIRES: called once, last.
  void finish();
  /// Sets an attribute from another source (metadata.json); it replaces the log's value.
  void set_attribute(const std::string& key, const std::string& value) { attributes_[key] = value; }
  /// The current value of an attribute, or "".
  std::string attribute(const std::string& key) const {
    const auto found = attributes_.find(key);
    return found == attributes_.end() ? "" : found->second;
  }
  const Stats& stats() const { return stats_; }
  /// A pattern for a log that nothing has read; "" if none gives a step and a loss on each likely line.
  std::string suggestion() const { return likeliest_.pattern(); }
  /// Bytes of text in all logs read.
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Reader {
    std::string name;
    std::unique_ptr<Dialect> dialect;
    std::int64_t matched = 0;
    std::deque<std::string> keys{};  ///< of fields that it added to another dialect's last record
  };

  void record(const std::vector<Field>& fields, std::string_view prefix, std::int64_t line) override;
  void attribute(std::string_view key, std::string_view value, bool replace) override;
  void fault(std::int64_t line, const std::string& what) override;
  void fault(std::int64_t line, const std::string& what, const std::string& kind);

  void read_part(Input& source);
  std::string_view next_block(Blocks& blocks, const Input& source);
  /// Takes whole lines. REQUIRES: Blocks::kSlack bytes after `end` may be read.
  void take_block(const char* begin, const char* end);
  void take_carry();
  void take_line(std::string_view text, bool ended);
  void try_dialects(std::string_view text, bool ended);
  void close_line();
  std::vector<Field> held_by_others(const std::vector<Field>& fields, std::string_view rank);

  const std::vector<std::string> mapped_;  // keys that the user maps for this log
  const Options options_;
  metric::Writer& rows_;
  const FaultSink& faults_;
  Records records_;
  std::vector<Reader> readers_;
  std::vector<std::size_t> companions_;  // readers that may hold fields for records of others
  Markers markers_;
  bool wants_all_ = false;
  bool settled_ = false;  // a dialect that is neither a last resort nor a companion reads this log
  Likeliest likeliest_;   // as long as there is no record
  std::size_t hint_ = 0;  // the dialect of the last match, tried first

  std::string path_;
  std::string carry_;  // the start of an incomplete line
  bool cut_ = false;   // a part of the current line was removed
  int parts_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t number_ = 1;                          // of the current line
  std::int64_t finished_ = 0;                        // the line that says that the training ended well
  std::int64_t classed_ = 0;                         // the line that class_ belongs to
  std::deque<std::pair<std::int64_t, int>> recent_;  // lines with a class, for which a fault may still follow
  int class_ = -1;                                   // index of the dialect, or -2 for a faulty line
  std::string clean_;
  std::vector<Field> kept_;  // of the record

  std::map<std::string, std::string> attributes_;
  Stats stats_;
};

}  // namespace zs::parse
