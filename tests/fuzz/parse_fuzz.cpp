// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/formats/parse, run by tests/fuzz/run parse. The input is a log. Beside not crashing, the
// reader must account for each line, give the same whatever the size of its blocks and with or without learned forms,
// also as the text form spells it, and that text must be what lib/formats/metric reads back.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "metric/file.hpp"
#include "parse/log.hpp"

namespace parse = zs::parse;
using zs::fuzz::require;

namespace {

// All that comes out, as one text.
class Transcript : public zs::metric::Writer {
 public:
  void row(const std::vector<parse::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    require(columns.size() == cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) text += columns[i].name + "=" + std::string(cells[i]) + "\t";
    text += "\n";
  }
  void finish(const std::map<std::string, std::string>& attributes) override {
    for (const auto& [key, value] : attributes) text += key + "=" + value + "\n";
  }
  std::string text;
};

parse::Stats read(const std::string& path, parse::Options options, zs::metric::Writer& rows, std::string& faults) {
  const zs::FaultSink sink = [&](const zs::Fault& fault) {
    faults += zs::located(fault.path, fault.line, fault.what) + "\n";
  };
  parse::LogReader reader(options, rows, sink);
  reader.read(path);
  reader.finish();
  return reader.stats();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zs::fuzz::MemoryFile log(std::string_view(reinterpret_cast<const char*>(data), size));
  parse::Options whole, pieces, slow;
  pieces.block = 2 + size % 61;
  pieces.ahead = size % 16 == 0;  // slow in such blocks
  slow.learn = false;
  try {
    Transcript first;
    std::string faults;
    const parse::Stats stats = read(log.path(), whole, first, faults);
    std::int64_t lines = stats.faulty + stats.other;
    for (const auto& [dialect, count] : stats.matched) lines += count;
    require(lines == stats.lines && stats.other >= 0 && stats.faulty >= 0);
    for (const auto& options : {pieces, slow}) {
      Transcript again;
      std::string other_faults;
      read(log.path(), options, again, other_faults);
      require(again.text == first.text && other_faults == faults);
    }
    const auto text_form = [&](const parse::Options& options) {
      std::string text;
      zs::metric::TsvWriter writer([&](std::string_view block) { text += block; }, size % 4 * 500, 1000);
      zs::metric::TextWriter rows(writer);
      rows.begin("a run", {});
      read(log.path(), options, rows, faults);
      return text;
    };
    const std::string text = text_form(whole);
    require(text_form(slow) == text);
    const zs::metric::Store store = zs::metric::parse(text, "text");
    require(store.runs.size() == 1 && static_cast<std::int64_t>(store.runs[0].records.rows()) == stats.records);
  } catch (const zs::Error& error) {
    // Only what is compressed, and damaged, may be refused as a whole.
    const std::string_view what = error.what();
    require(what.find("gzip") != std::string_view::npos || what.find("zstd") != std::string_view::npos);
  }
  return 0;
}
