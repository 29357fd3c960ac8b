// SPDX-License-Identifier: Apache-2.0
// Combines the records of many ranks: all of them, only rank 0's, or their mean per step.
#pragma once
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "metric/writer.hpp"

namespace zs::metric {

enum class Ranks { all, first, mean };

/// Passes on the rows of rank 0 and rows without a rank.
class FirstRank : public Writer {
 public:
  explicit FirstRank(Writer& next) : next_(next) {}
  void begin(const std::string& run, const Facts& attributes) override { next_.begin(run, attributes); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const std::map<std::string, std::string>& attributes) override { next_.finish(attributes); }
  std::int64_t left_out() const { return left_out_; }

 private:
  Writer& next_;
  std::int64_t left_out_ = 0;
};

/// Joins the rows of one step: the mean of real columns, the maximum of integers, the first of texts and of `line`;
/// column `ranks` counts the rows. Rows of a step must be within 64 steps of each other; a repeated rank begins
/// another row.
class MeanOfRanks : public Writer {
 public:
  explicit MeanOfRanks(Writer& next) : next_(next) {}
  void begin(const std::string& run, const Facts& attributes) override { next_.begin(run, attributes); }
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void finish(const std::map<std::string, std::string>& attributes) override;

 private:
  struct Group {
    std::string step, part;
    std::set<std::string, std::less<>> ranks;
    std::vector<std::vector<std::string>> rows;  ///< cells in the columns of the input
  };
  void pass_on(const Group& group);

  Writer& next_;
  std::vector<ColumnInfo> columns_;   // of the input
  std::vector<ColumnInfo> joined_;    // of the output: without `rank`, with `ranks`
  std::vector<std::size_t> sources_;  // output column -> input column; for `ranks`, the number of input columns
  std::deque<Group> open_;
};

}  // namespace zs::metric
