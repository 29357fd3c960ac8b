// SPDX-License-Identifier: Apache-2.0
// JSON lines of a run.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "metric/writer.hpp"

namespace zs::metric {

/// JSON lines, one per row. They have no attributes.
class JsonlWriter : public Writer {
 public:
  explicit JsonlWriter(Output& out) : table_(run_), out_(out) {}
  void begin(const std::string& run, const Facts& attributes) override { table_.begin(run, attributes); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const Facts&) override { write(); }

 private:
  void write();

  Run run_;
  MemoryWriter table_;
  Output& out_;
};

}  // namespace zs::metric
