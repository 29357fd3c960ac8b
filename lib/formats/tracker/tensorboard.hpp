// SPDX-License-Identifier: Apache-2.0
// Writes a training's metrics for TensorBoard.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "metric/writer.hpp"
#include "tracker/appended.hpp"

namespace zs::tracker {

/// The trackers' name of a record column: "loss" is "train/loss", "alloc_mem" is "system/cuda_memory_allocated".
/// zs-parse knows these names.
std::string tracked_name(const std::string& column);

/// The facts about a run as a Markdown table, and back: the text under kFactsTag.
std::string facts_text(const metric::Writer::Facts& facts);
metric::Writer::Facts facts_of(const std::string& text);
inline constexpr const char* kFactsTag = "configuration/text_summary";

/// The current time in seconds since 1970, for events.
double wall_time();

/// An event file in a folder that it may share with other runs; a resumed run voids the earlier events of steps that it
/// repeats. What was written survives a kill -9.
class TensorboardWriter : public metric::Writer {
 public:
  explicit TensorboardWriter(std::string folder) : folder_(std::move(folder)) {}
  void begin(const std::string& run, const Facts& attributes) override;
  void row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void flush(bool now) override;
  void finish(const Facts& attributes) override;

  const std::string& folder() const { return folder_; }

 private:
  void write_facts(const Facts& attributes);

  std::string folder_;
  std::unique_ptr<AppendedFile> file_;
  std::int64_t done_ = 0, step_ = 0;  // steps in earlier files; the last step
};

}  // namespace zs::tracker
