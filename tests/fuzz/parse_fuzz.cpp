// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/parse, run by tests/fuzz/run parse. The input is a log. Beside not crashing, the reader must
// account for each line, give the same whatever the size of its blocks and with or without learned forms, and write
// text that lib/metric reads back.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "metric/file.hpp"
#include "parse/log.hpp"

namespace parse = zs::parse;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// The bytes as a file.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    require(file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// All that comes out, as one text.
class Transcript : public parse::Rows {
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

parse::Stats read(const std::string& path, parse::Options options, parse::Rows& rows, std::string& faults) {
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
  const MemoryFile log(std::string_view(reinterpret_cast<const char*>(data), size));
  parse::Options whole, pieces, slow;
  pieces.block = 2 + size % 61;
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
    const std::string name = "/dev/shm/zs-fuzz-" + std::to_string(::getpid());
    {
      zs::Output out(name);
      parse::TsvRows rows("a run", out, true);
      read(log.path(), whole, rows, faults);
      out.commit();
    }
    const zs::metric::Store store = zs::metric::read(name);
    require(store.runs.size() == 1 && static_cast<std::int64_t>(store.runs[0].records.rows()) == stats.records);
  } catch (const zs::Error& error) {
    // Only what is no gzip data may be refused as a whole.
    require(std::string_view(error.what()).find("gzip") != std::string_view::npos);
  }
  return 0;
}
