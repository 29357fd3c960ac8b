// SPDX-License-Identifier: Apache-2.0
#include "compare/records.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "attribute/table.hpp"
#include "base/number.hpp"
#include "compare/ledger.hpp"

namespace zs::compare {
namespace {

using metric::Column;
using metric::Type;

struct Both {
  const Column *a, *b;
  Precision pa, pb;
  double slack;  ///< the possible effect of digits that were not written
  ColumnResult result;
  std::set<const Row*> seen_a{}, seen_b{};  ///< rows whose value was compared, or need not be there
};

Precision precision(const Side& side, const std::string& name) {
  const auto found = side.precision.find(name);
  return found == side.precision.end() ? Precision{} : found->second;
}

bool has_values(const Column* column) {
  if (!column) return false;
  for (std::size_t row = 0; row < column->size(); ++row) {
    if (!column->absent(row)) return true;
  }
  return false;
}

class RecordComparison {
 public:
  RecordComparison(const Side& a, const Side& b, const Tolerance& tolerance) : a_(a), b_(b), tolerance_(tolerance) {}

  Records run(const std::vector<std::string>& names) {
    // If only one side counts epochs, rows are not matched by them.
    const bool epochs = has_values(a_.records->find("epoch")) && has_values(b_.records->find("epoch"));
    choose(names);
    rows_a_ = wanted(*a_.records, epochs, names), rows_b_ = wanted(*b_.records, epochs, names);
    ledger_.emplace(holdings(a_, rows_a_, names), holdings(b_, rows_b_, names));
    gaps_a_ = gaps(a_, rows_a_), gaps_b_ = gaps(b_, rows_b_);
    match();
    finish(names.empty());
    return std::move(made_);
  }

 private:
  using Iterator = std::vector<Row>::const_iterator;

  /// The optimizer skipped this step: the count of steps skipped so far has grown.
  struct Skipped {
    const Column* column = nullptr;
    std::map<std::int64_t, double> so_far;  ///< by rank
  };

  /// The steps that a side's stride omits: between two of its rows, and up to a stride before and after them.
  struct Gaps {
    std::int64_t stride = 0, phase = 0, first = 0, last = 0;
    bool have(std::int64_t step) const {
      const auto distance = [](std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
      };
      const auto most = static_cast<std::uint64_t>(stride);
      return stride > 1 && step % stride != phase && (step >= first || distance(step, first) < most) &&
             (step <= last || distance(last, step) < most);
    }
  };

  const Side& a_;
  const Side& b_;
  const Tolerance& tolerance_;
  std::vector<Row> rows_a_, rows_b_;
  std::vector<Both> columns_;
  std::set<std::pair<std::string, std::string>> told_;  // kinds of reasons
  bool rounded_ = false;
  std::optional<Ledger> ledger_;
  Records made_;
  Skipped skipped_a_, skipped_b_;
  Gaps gaps_a_, gaps_b_;

  /// The rows by step, the attempts of one step side by side; of chosen columns, those that have a value in one.
  static std::vector<Row> wanted(const metric::Table& table, bool epochs, const std::vector<std::string>& names) {
    std::vector<Row> kept = rows(table, epochs);
    if (!names.empty()) {
      std::erase_if(kept, [&](const Row& row) {
        return std::ranges::none_of(names, [&](const std::string& name) {
          const Column* const column = table.find(name);
          return column && cell(*column, row);
        });
      });
    }
    std::ranges::sort(kept, [](const Row& x, const Row& y) {
      const Place &p = x.place, &q = y.place;
      return std::tie(p.epoch, p.step, p.count, p.rank, p.attempt) <
             std::tie(q.epoch, q.step, q.count, q.rank, q.attempt);
    });
    return kept;
  }

  /// The values of a side by column: of `names`, or of all columns that the training decides.
  static Holdings holdings(const Side& side, const std::vector<Row>& rows, const std::vector<std::string>& names) {
    Holdings held;
    for (const std::string& name : names.empty() ? decided() : names) {
      const Column* const column = side.records->find(name);
      if (!column) continue;
      for (const Row& row : rows) held.add(name, cell(*column, row) ? 1 : 0);
    }
    return held;
  }

  void choose(const std::vector<std::string>& names) {
    for (const std::string& name : names.empty() ? decided() : names) {
      const Column *const left = a_.records->find(name), *const right = b_.records->find(name);
      const bool in_a = has_values(left), in_b = has_values(right);
      if (in_a && !in_b) made_.only_a.push_back(name);
      if (in_b && !in_a) made_.only_b.push_back(name);
      if (!in_a || !in_b) continue;
      const Precision pa = precision(a_, name), pb = precision(b_, name);
      // Equal digits of one format are equal. In two formats, values are equal if they agree in the coarser one.
      const bool whole = left->type() == Type::integer && right->type() == Type::integer;
      const bool text = left->type() == Type::text || right->type() == Type::text;
      const double slack = pa == pb ? 0 : std::max(pa.uncertainty(), pb.uncertainty());
      const std::string known_to = text || whole || pa == pb ? pa.text() : pa.text() + " and " + pb.text();
      columns_.push_back({left, right, pa, pb, slack, {name, 0, 0, 0, {}, known_to}});
    }
    skipped_a_.column = a_.records->find("skipped"), skipped_b_.column = b_.records->find("skipped");
  }

  void fail(const Place& place, const std::string& kind, const std::string& column, const std::string& text) {
    if (told_.emplace(kind, column).second) made_.reasons.push_back({place, column, text, kind == "not finite"});
  }

  /// Walks both lists of rows, step by step.
  void match() {
    Iterator a = rows_a_.begin(), b = rows_b_.begin();
    const auto end_of = [](Iterator from, Iterator end) {
      return std::find_if(from, end, [&](const Row& row) { return !row.place.same_step(from->place); });
    };
    const auto before = [](const Place& x, const Place& y) {
      return std::tie(x.epoch, x.step, x.count, x.rank) < std::tie(y.epoch, y.step, y.count, y.rank);
    };
    while (a != rows_a_.end() || b != rows_b_.end()) {
      const bool take_a = b == rows_b_.end() || (a != rows_a_.end() && !before(b->place, a->place));
      const bool take_b = a == rows_a_.end() || (b != rows_b_.end() && !before(a->place, b->place));
      const Iterator a_end = take_a ? end_of(a, rows_a_.end()) : a, b_end = take_b ? end_of(b, rows_b_.end()) : b;
      if (take_a && take_b)
        step(a, a_end, b, b_end);
      else
        missing(take_a ? *a : *b, take_a);
      a = a_end, b = b_end;
    }
  }

  static Gaps gaps(const Side& side, const std::vector<Row>& rows) {
    constexpr std::int64_t kFewest = 3;  // two rows have a distance, whatever was lost between them
    std::map<std::int64_t, std::int64_t> counts;
    Gaps found{side.stride, 0, INT64_MAX, INT64_MIN};
    for (const Row& row : rows) {
      if (side.stride < 2 || metric::is_absent(row.place.step)) continue;
      ++counts[row.place.step % side.stride];
      found.first = std::min(found.first, row.place.step), found.last = std::max(found.last, row.place.step);
    }
    const auto most = std::ranges::max_element(counts, [](auto& x, auto& y) { return x.second < y.second; });
    if (most == counts.end() || most->second < kFewest) return {};
    found.phase = most->first;
    return found;
  }

  void missing(const Row& row, bool in_a) {
    if (!metric::is_absent(row.place.step) && (in_a ? gaps_b_ : gaps_a_).have(row.place.step)) {
      ++(in_a ? made_.alone_a : made_.alone_b);
      for (Both& column : columns_) {
        if (cell(in_a ? *column.a : *column.b, row)) ledger_->excuse(in_a ? Holder::a : Holder::b, column.result.name);
      }
      return;
    }
    fail(row.place, "missing", in_a ? "a" : "b",
         to_text(row.place) + " is in " + (in_a ? a_ : b_).name + " and missing in " + (in_a ? b_ : a_).name);
  }

  /// The row of `attempt`, else the final one, else the last.
  static const Row& partner(Iterator begin, Iterator end, std::int64_t attempt) {
    Iterator found = std::find_if(begin, end, [&](const Row& row) { return row.place.attempt == attempt; });
    if (found == end) found = std::find_if(begin, end, [](const Row& row) { return !row.replaced; });
    return found == end ? *(end - 1) : *found;
  }

  void step(Iterator a, Iterator a_end, Iterator b, Iterator b_end) {
    const auto stands = [](const Row& row) { return !row.replaced; };
    const Iterator standing_a = std::find_if(a, a_end, stands), standing_b = std::find_if(b, b_end, stands);
    if ((standing_a == a_end) != (standing_b == b_end)) {
      const bool in_a = standing_a != a_end;
      const Row& row = in_a ? *standing_a : *standing_b;
      fail(row.place, "lost", in_a ? "a" : "b",
           to_text(row.place) + " is in " + (in_a ? a_ : b_).name + ", but " + (in_a ? b_ : a_).name +
               " went back to an earlier step and did not reach it again");
    }
    std::set<std::pair<const Row*, const Row*>> pairs;
    const auto meet = [&](const Row& left, const Row& right) {
      if (pairs.emplace(&left, &right).second) pair(left, right);
    };
    // Compares final rows with each other, in any attempt.
    if (standing_a != a_end && standing_b != b_end) meet(*standing_a, *standing_b);
    for (Iterator row = a; row != a_end; ++row) {
      made_.repeated_a += row->replaced;
      if (row->replaced) meet(*row, partner(b, b_end, row->place.attempt));
    }
    for (Iterator row = b; row != b_end; ++row) {
      made_.repeated_b += row->replaced;
      if (row->replaced) meet(partner(a, a_end, row->place.attempt), *row);
    }
  }

  void pair(const Row& left, const Row& right) {
    ++made_.rows;
    const Place& place = left.replaced || !right.replaced ? left.place : right.place;
    const bool both_skipped = skipped(skipped_a_, left) && skipped(skipped_b_, right);
    bool loss = false;
    for (Both& column : columns_) {
      const auto at_a = cell(*column.a, left), at_b = cell(*column.b, right);
      if (!at_a && !at_b) continue;
      loss = loss || column.result.name.ends_with("loss");
      if (!at_a || !at_b) {
        // An attempt that ended early may lack values of its last step.
        if (left.replaced != right.replaced) {
          if (at_a && column.seen_a.insert(&left).second) ledger_->excuse(Holder::a, column.result.name);
          if (at_b && column.seen_b.insert(&right).second) ledger_->excuse(Holder::b, column.result.name);
          continue;
        }
        fail(place, "absent", column.result.name,
             column.result.name + " of " + to_text(place) + " is missing in " + (at_a ? b_ : a_).name);
        continue;
      }
      const Verdict outcome = values(column, place, *at_a, *at_b, both_skipped && column.result.name.ends_with("norm"));
      ledger_->compared(column.result.name, outcome, column.seen_a.insert(&left).second,
                        column.seen_b.insert(&right).second);
    }
    if (!loss && !left.replaced && made_.without_loss++ == 0) made_.first_without_loss = place;
  }

  static bool skipped(Skipped& side, const Row& row) {
    const auto at = side.column && side.column->type() != Type::text ? cell(*side.column, row) : std::nullopt;
    if (!at) return false;
    double& so_far = side.so_far[row.place.rank];
    const bool grown = side.column->real(*at) > so_far;
    so_far = side.column->real(*at);
    return grown;
  }

  /// One value of each side.
  Verdict values(Both& column, const Place& place, std::size_t at_a, std::size_t at_b, bool may_be_infinite) {
    ColumnResult& result = column.result;
    ++result.compared;
    const std::string text_a = column.a->text(at_a), text_b = column.b->text(at_b);
    if (column.a->type() == Type::text || column.b->type() == Type::text) {
      if (text_a == text_b) return Verdict::exact;
      ++result.differing;
      if (!tolerance_.exact()) return Verdict::within;  // a digest has no tolerance
      return refuse(result, {place, result.name, text_a, text_b, {}});
    }
    const double x = column.a->real(at_a), y = column.b->real(at_b);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (may_be_infinite && text_a == text_b) return Verdict::exact;
      const std::string where = std::isfinite(x) ? b_.name : std::isfinite(y) ? a_.name : "both";
      fail(place, "not finite", result.name,
           result.name + " of " + to_text(place) + " is not finite in " + where + ": " + text_a + " and " + text_b);
      return Verdict::failed;
    }
    const bool whole = column.a->type() == Type::integer && column.b->type() == Type::integer;
    if (whole ? column.a->integers()[at_a] == column.b->integers()[at_b] : same_bits(x, y)) return Verdict::exact;
    if (x != y && std::fabs(x - y) <= column.slack * (1 + 1e-9)) return Verdict::printed;
    ++result.differing;
    result.largest.add(x, y, std::max<std::int64_t>(1, ulps(x, y).first));
    if (whole || !tolerance_.accepts(x, y))
      return refuse(result, {place, result.name, text_a, text_b, std::pair(x, y), printed(column.pa, column.pb)});
    return Verdict::within;
  }

  static std::optional<int> printed(const Precision& a, const Precision& b) {
    if (a.every_bit || b.every_bit) return {};
    return std::max(a.decimals, b.decimals);
  }

  Verdict refuse(ColumnResult& result, Pair found) {
    ++result.refused;
    const auto time = [](const Pair& pair) { return std::tie(pair.place.epoch, pair.place.step, pair.place.count); };
    if (!made_.first || time(found) < time(*made_.first)) made_.first = std::move(found);
    return Verdict::different;
  }

  void finish(bool everything) {
    bool loss = false;
    for (Both& column : columns_) {
      const std::string& name = column.result.name;
      const bool measured =
          name.ends_with("loss") || name.ends_with("norm");  // others are settings, short by themselves
      rounded_ = rounded_ || (measured && column.result.compared > 0 && !(column.pa.every_bit && column.pb.every_bit));
      loss = loss || name == "loss";
      if (column.result.compared > 0) made_.columns.push_back(std::move(column.result));
    }
    if (!everything) made_.without_loss = 0;
    if (made_.rows == 0) {
      made_.reasons.clear();
      made_.reasons.push_back({{}, "", "the runs have no step in common"});
    } else if (everything && !loss) {
      made_.reasons.push_back({{}, "loss", "not both runs have a loss"});
    } else if (made_.columns.empty()) {
      made_.reasons.push_back({{}, "", "the runs have no value in common"});
    }
    if (!made_.reasons.empty()) ledger_->at_least(Verdict::failed);
    if (made_.without_loss > 0) ledger_->at_least(Verdict::inconclusive);
    if (rounded_) ledger_->at_least(Verdict::printed);
    made_.verdict = ledger_->settle();
  }
};

}  // namespace

const std::vector<std::string>& decided() {
  static const auto names = [] {
    std::vector<std::string> columns;
    for (const attribute::Attribute& row : attribute::table()) {
      if (row.recorded && row.repeats) columns.emplace_back(row.name);
    }
    return columns;
  }();
  return names;
}

std::pair<std::int64_t, bool> ulps(double a, double b) {
  const auto x = static_cast<float>(a), y = static_cast<float>(b);
  const bool narrow = static_cast<double>(x) == a && static_cast<double>(y) == b;
  return {narrow ? ulp_distance(x, y) : ulp_distance(a, b), narrow};
}

Records records(const Side& a, const Side& b, const Tolerance& tolerance, const std::vector<std::string>& names) {
  return RecordComparison(a, b, tolerance).run(names);
}

}  // namespace zs::compare
