// SPDX-License-Identifier: Apache-2.0
#include "metric/ranks.hpp"

#include <algorithm>

#include "base/number.hpp"

namespace zs::metric {
namespace {

constexpr std::size_t kOpenSteps = 64;
constexpr std::size_t kCounter = static_cast<std::size_t>(-1);

std::string_view cell_of(std::string_view name, const std::vector<ColumnInfo>& columns,
                         const std::vector<std::string_view>& cells) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return cells[i];
  }
  return {};
}

}  // namespace

void FirstRank::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  const std::string_view rank = cell_of("rank", columns, cells);
  if (rank.empty() || parse_int(rank) == 0) return next_.row(columns, cells);
  ++left_out_;
}

void MeanOfRanks::row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  for (std::size_t i = columns_.size(); i < columns.size(); ++i) {
    columns_.push_back(columns[i]);
    if (columns[i].name == "rank") continue;
    joined_.push_back(columns[i]);
    sources_.push_back(i);
  }
  if (std::ranges::find(sources_, kCounter) == sources_.end()) {
    joined_.push_back({"ranks", Type::integer});
    sources_.push_back(kCounter);
  }
  const std::string_view step = cell_of("step", columns, cells), part = cell_of("part", columns, cells);
  const std::string_view rank = cell_of("rank", columns, cells);
  const auto fits = [&](const Group& group) {
    return group.step == step && group.part == part && (rank.empty() || group.ranks.count(rank) == 0);
  };
  auto group = step.empty() ? open_.end() : std::ranges::find_if(open_, fits);
  if (group == open_.end()) {
    if (open_.size() == kOpenSteps) {
      pass_on(open_.front());
      open_.pop_front();
    }
    open_.push_back({std::string(step), std::string(part), {}, {}});
    group = open_.end() - 1;
  }
  if (!rank.empty()) group->ranks.emplace(rank);
  group->rows.emplace_back(cells.begin(), cells.end());
}

void MeanOfRanks::pass_on(const Group& group) {
  std::vector<std::string> texts(joined_.size());
  for (std::size_t column = 0; column < joined_.size(); ++column) {
    const std::size_t source = sources_[column];
    if (source == kCounter) {
      texts[column] = std::to_string(group.rows.size());
      continue;
    }
    double sum = 0;
    std::int64_t count = 0, largest = 0;
    for (const auto& row : group.rows) {
      if (source >= row.size() || row[source].empty()) continue;
      if (count == 0) texts[column] = row[source];
      if (joined_[column].type == Type::real) sum += *parse_real(row[source]);
      if (joined_[column].type == Type::integer)
        largest = count == 0 ? *parse_int(row[source]) : std::max(largest, *parse_int(row[source]));
      ++count;
    }
    if (count < 2 || joined_[column].name == "line") continue;
    if (joined_[column].type == Type::real) texts[column] = to_text(sum / static_cast<double>(count));
    if (joined_[column].type == Type::integer) texts[column] = to_text(largest);
  }
  next_.row(joined_, {texts.begin(), texts.end()});
}

void MeanOfRanks::finish(const std::map<std::string, std::string>& attributes) {
  for (const Group& group : open_) pass_on(group);
  next_.finish(attributes);
}

}  // namespace zs::metric
