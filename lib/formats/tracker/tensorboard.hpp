// SPDX-License-Identifier: Apache-2.0
// A training's metrics as TensorBoard reads them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "metric/writer.hpp"
#include "tracker/appended.hpp"

namespace zs::tracker {

/// What a tracker calls a column of the records: "loss" is "train/loss", "alloc_mem" is
/// "system/cuda_memory_allocated". zs-parse knows these names.
std::string tracked_name(const std::string& column);

/// The text of a tag that holds the facts about a run, as a table of Markdown, and back.
std::string facts_text(const metric::Writer::Facts& facts);
metric::Writer::Facts facts_of(const std::string& text);
/// That tag.
inline constexpr const char* kFactsTag = "configuration/text_summary";

/// Now, in seconds since 1970: the wall time of an event.
double wall_time();

/// An event file in a folder, which other runs of it may share: a run that goes on voids what was written of the steps
/// that it repeats. What was written is there after a kill -9.
class TensorboardWriter : public metric::Writer {
 public:
  explicit TensorboardWriter(std::string folder) : folder_(std::move(folder)) {}
  void begin(const std::string& run, const Facts& attributes) override;
  void row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void flush(bool now) override;
  void finish(const Facts& attributes) override;

  /// The folder.
  const std::string& folder() const { return folder_; }

 private:
  void write_facts(const Facts& attributes);

  std::string folder_;
  std::unique_ptr<AppendedFile> file_;
  std::int64_t done_ = 0, step_ = 0;  // steps that earlier files have; the last one
};

}  // namespace zs::tracker
