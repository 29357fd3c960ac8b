// SPDX-License-Identifier: Apache-2.0
// For tests: pairs of runs and of tensors that are equal, or differ in one thing. Every comparison of zs is put to
// them: no pair that differs may pass, no equal pair may fail. The same seed gives the same pairs.
#pragma once
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "metric/table.hpp"
#include "tensorfile/dtype.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::compare {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t limit) { return random() % limit; }
/// The first, the last or any index.
inline std::size_t anywhere(Random& random, std::size_t size) {
  const std::size_t kind = below(random, 3);
  return kind == 0 ? 0 : kind == 1 ? size - 1 : below(random, size);
}

struct RunPair {
  std::string kind;
  metric::Run a, b;
  bool equal = false;
};

/// The row of a run as one thinks of it; `value` by column.
struct PairRow {
  std::int64_t epoch, step, rank;
  std::map<std::string, double> value;
};

inline metric::Run run_of(const std::string& name, const std::vector<PairRow>& rows, bool measured = false) {
  metric::Run run{name, {{"state_digest", "00112233445566778899aabbccddeeff"}}, {}};
  metric::Table& table = run.records;
  for (const char* const column :
       {"epoch", "step", "rank", "tokens", "loss", "valid_loss", "grad_norm", "learning_rate"})
    table.column(column);
  if (measured) table.column("iteration_time"), table.column("peak_mem");
  for (const PairRow& row : rows) {
    for (metric::Column& column : table.columns) {
      const auto found = row.value.find(column.name);
      if (column.name == "epoch" || column.name == "step" || column.name == "rank") {
        column.integers().push_back(column.name == "epoch" ? row.epoch : column.name == "step" ? row.step : row.rank);
      } else if (column.name == "peak_mem") {
        column.integers().push_back(row.step);
      } else if (column.name == "iteration_time") {
        column.reals().push_back(0.1);
      } else if (column.type() == metric::Type::integer) {
        column.integers().push_back(found == row.value.end() ? metric::kAbsentInteger
                                                             : static_cast<std::int64_t>(found->second));
      } else {
        column.reals().push_back(found == row.value.end() ? metric::absent_real() : found->second);
      }
    }
  }
  return run;
}

inline std::vector<PairRow> some_rows(Random& random) {
  std::uniform_real_distribution<double> value(0.5, 9);
  const std::size_t epochs = 1 + below(random, 3), steps = 3 + below(random, 5), ranks = 1 + below(random, 3);
  std::vector<PairRow> rows;
  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    for (std::size_t step = 1; step <= steps; ++step) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        PairRow row{
            static_cast<std::int64_t>(epoch), static_cast<std::int64_t>(step), static_cast<std::int64_t>(rank), {}};
        row.value = {{"loss", value(random)},
                     {"grad_norm", value(random)},
                     {"learning_rate", 1e-3 / value(random)},
                     {"tokens", 512}};
        if (step == steps) row.value["valid_loss"] = value(random);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

/// `count` pairs of each kind.
inline std::vector<RunPair> run_pairs(std::uint64_t seed, int count) {
  Random random(seed);
  std::vector<RunPair> pairs;
  using Rows = std::vector<PairRow>;
  const auto add = [&](const std::string& kind, bool equal, const std::function<void(Rows&, Rows&)>& change) {
    for (int i = 0; i < count; ++i) {
      Rows a = some_rows(random), b = a;
      change(a, b);
      pairs.push_back({kind, run_of("a", a), run_of("b", b), equal});
    }
  };
  const auto same = [](Rows&, Rows&) {};
  add("equal: the same values", true, same);
  add("equal: another order of the ranks", true, [](Rows&, Rows& b) {
    std::stable_sort(b.begin(), b.end(), [](const PairRow& x, const PairRow& y) { return x.rank < y.rank; });
  });
  add("equal: a second attempt of the same values", true, [&](Rows&, Rows& b) {
    const auto from = static_cast<std::ptrdiff_t>(below(random, b.size()));
    const std::int64_t epoch = b[static_cast<std::size_t>(from)].epoch, step = b[static_cast<std::size_t>(from)].step;
    Rows again;
    for (const PairRow& row : b) {
      if (std::pair(row.epoch, row.step) >= std::pair(epoch, step)) again.push_back(row);
    }
    b.insert(b.end(), again.begin(), again.end());
  });
  add("equal: a step in two records", true, [&](Rows&, Rows& b) {
    const std::size_t at = below(random, b.size());
    PairRow second = b[at];
    second.value = {{"grad_norm", b[at].value["grad_norm"]}};
    b[at].value.erase("grad_norm");
    b.insert(b.begin() + static_cast<std::ptrdiff_t>(at) + 1, second);
  });
  for (int i = 0; i < count; ++i) {
    const Rows rows = some_rows(random);
    pairs.push_back({"equal: times and memory beside", run_of("a", rows), run_of("b", rows, true), true});
  }

  for (const char* const column : {"loss", "grad_norm", "learning_rate"}) {
    add(std::string("one ulp of one ") + column, false, [&](Rows&, Rows& b) {
      double& value = b[anywhere(random, b.size())].value[column];
      value = std::nextafter(value, 100.0);
    });
  }
  add("one ulp of one valid_loss", false, [&](Rows&, Rows& b) {
    double& value = b.back().value["valid_loss"];
    value = std::nextafter(value, 100.0);
  });
  add("one token", false, [&](Rows&, Rows& b) { b[anywhere(random, b.size())].value["tokens"] += 1; });
  add("the sign of a zero", false, [&](Rows& a, Rows& b) {
    const std::size_t at = anywhere(random, b.size());
    const char* const column = below(random, 2) ? "loss" : "learning_rate";
    a[at].value[column] = 0.0, b[at].value[column] = -0.0;
  });
  add("nan or inf in one", false, [&](Rows&, Rows& b) {
    b[anywhere(random, b.size())].value[below(random, 2) ? "loss" : "grad_norm"] = below(random, 2) ? NAN : INFINITY;
  });
  add("nan in both", false, [&](Rows& a, Rows& b) {
    const std::size_t at = anywhere(random, b.size());
    a[at].value["loss"] = b[at].value["loss"] = NAN;
  });
  add("a missing value", false,
      [&](Rows&, Rows& b) { b[anywhere(random, b.size())].value.erase(below(random, 2) ? "loss" : "grad_norm"); });
  add("a missing record", false,
      [&](Rows&, Rows& b) { b.erase(b.begin() + static_cast<std::ptrdiff_t>(anywhere(random, b.size()))); });
  add("a missing epoch", false, [&](Rows& a, Rows& b) {
    const std::int64_t gone = a[anywhere(random, a.size())].epoch;
    a.push_back(a.back()), a.back().epoch += 1, b = a;  // so that one is left
    std::erase_if(b, [&](const PairRow& row) { return row.epoch == gone; });
  });
  add("another epoch", false, [&](Rows&, Rows& b) {
    const std::int64_t last = b.back().epoch;
    for (PairRow& row : b) row.epoch += row.epoch == last;
  });
  add("a missing rank", false, [&](Rows& a, Rows& b) {
    a.push_back(a.front()), a.back().rank = 7, b = a;
    std::erase_if(b, [](const PairRow& row) { return row.rank == 7; });
  });
  add("a value of another rank", false, [&](Rows& a, Rows& b) {
    PairRow other = a.front();
    other.rank = 7;
    a.push_back(other), b.push_back(other);
    b.back().value["loss"] += 1;
  });
  add("a missing column", false, [&](Rows&, Rows& b) {
    const char* const column = below(random, 2) ? "grad_norm" : "loss";
    for (PairRow& row : b) row.value.erase(column);
  });
  add("another length", false, [&](Rows&, Rows& b) {
    const PairRow last = b.back();
    std::erase_if(b, [&](const PairRow& row) { return row.epoch == last.epoch && row.step == last.step; });
  });
  add("a second attempt of other values", false, [&](Rows&, Rows& b) {
    Rows again = b;
    again[anywhere(random, again.size())].value["loss"] += 0.25;
    b.insert(b.end(), again.begin(), again.end());
  });
  add("a first attempt of other values", false, [&](Rows&, Rows& b) {
    Rows again = b;
    b[anywhere(random, b.size())].value["loss"] += 0.25;
    b.insert(b.end(), again.begin(), again.end());
  });
  add("a restart from the first step that died there", false, [&](Rows&, Rows& b) { b.push_back(b.front()); });
  for (int i = 0; i < count; ++i) {
    const Rows rows = some_rows(random);
    RunPair other{"another digest", run_of("a", rows), run_of("b", rows), false};
    other.b.attributes["state_digest"].back() = '0';
    pairs.push_back(std::move(other));
    RunPair none{"a digest in one alone", run_of("a", rows), run_of("b", rows), false};
    (i % 2 ? none.a : none.b).attributes.erase("state_digest");
    pairs.push_back(std::move(none));
  }
  return pairs;
}

struct TensorPair {
  std::string kind;
  std::vector<std::pair<std::string, tensorfile::Tensor>> a, b;
  bool equal = false;
};

inline constexpr tensorfile::Dtype kPairTypes[] = {tensorfile::Dtype::f32, tensorfile::Dtype::f16,
                                                   tensorfile::Dtype::bf16, tensorfile::Dtype::f64,
                                                   tensorfile::Dtype::i64};

/// Finite bytes of `count` elements.
inline std::string some_bytes(tensorfile::Dtype dtype, std::size_t count, Random& random) {
  std::uniform_real_distribution<double> value(-2, 2);
  std::string bytes(count * tensorfile::size_of(dtype), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const double real = value(random);
    const auto narrow = static_cast<float>(real);
    const auto put = [&](auto word) { std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word); };
    if (dtype == tensorfile::Dtype::f32) put(narrow);
    if (dtype == tensorfile::Dtype::f64) put(real);
    if (dtype == tensorfile::Dtype::f16) put(tensorfile::f32_to_f16(narrow));
    if (dtype == tensorfile::Dtype::bf16) put(tensorfile::f32_to_bf16(narrow));
    if (dtype == tensorfile::Dtype::i64) put(static_cast<std::int64_t>(random()));
  }
  return bytes;
}

/// `count` pairs of each kind and type.
inline std::vector<TensorPair> tensor_pairs(std::uint64_t seed, int count) {
  using tensorfile::Dtype;
  using tensorfile::Storage;
  using tensorfile::Tensor;
  Random random(seed);
  std::vector<TensorPair> pairs;
  const auto tensor = [](Dtype dtype, const std::string& bytes) {
    return tensorfile::make_tensor(dtype, {static_cast<std::int64_t>(bytes.size() / tensorfile::size_of(dtype))},
                                   Storage::own(bytes));
  };
  // The exponent and the sign in the upper bytes of a float; integers have neither.
  const auto add = [&](const std::string& kind, bool equal, Dtype dtype,
                       const std::function<void(std::string&, std::string&, std::size_t)>& change) {
    for (int i = 0; i < count; ++i) {
      TensorPair pair{kind + " (" + std::string(name_of(dtype)) + ")", {}, {}, equal};
      constexpr std::size_t kSizes[] = {1, 7, 4096, 4099, 20001};
      const std::size_t chosen = below(random, 3);
      for (std::size_t t = 0; t < 3; ++t) {
        const std::size_t size = kSizes[below(random, 5)];
        std::string a = some_bytes(dtype, size, random), b = a;
        if (t == chosen) change(a, b, tensorfile::size_of(dtype) * anywhere(random, size));
        pair.a.emplace_back("w" + std::to_string(t), tensor(dtype, a));
        pair.b.emplace_back("w" + std::to_string(t), tensor(dtype, b));
      }
      pairs.push_back(std::move(pair));
    }
  };
  for (const Dtype dtype : kPairTypes) {
    const std::size_t size = tensorfile::size_of(dtype);
    add("equal: the same tensors", true, dtype, [](std::string&, std::string&, std::size_t) {});
    add("one bit of one element", false, dtype, [&](std::string&, std::string& b, std::size_t at) {
      b[at] = static_cast<char>(b[at] ^ (1 << below(random, 8)));
    });
    add("another length", false, dtype, [&](std::string&, std::string& b, std::size_t) { b.resize(b.size() + size); });
    if (dtype == Dtype::i64) continue;
    const auto zero = [&](std::string& bytes, std::size_t at) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\0');
    };
    add("the sign of a zero", false, dtype, [&](std::string& a, std::string& b, std::size_t at) {
      zero(a, at), zero(b, at);
      b[at + size - 1] = '\x80';
    });
    const auto nan = [&](std::string& bytes, std::size_t at) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\xFF');
    };
    add("the payload of a nan", false, dtype, [&](std::string& a, std::string& b, std::size_t at) {
      nan(a, at), nan(b, at);
      b[at] = '\xFE';
    });
    add("nan in both", false, dtype, [&](std::string& a, std::string& b, std::size_t at) { nan(a, at), nan(b, at); });
  }
  for (int i = 0; i < count; ++i) {
    TensorPair base{"", {}, {}, false};
    for (const Dtype dtype : kPairTypes)
      base.a.emplace_back(name_of(dtype), tensor(dtype, some_bytes(dtype, 60, random)));
    base.b = base.a;
    const std::size_t at = anywhere(random, base.b.size());
    TensorPair missing = base, extra = base, renamed = base, shape = base, type = base, turned = base;
    missing.kind = "a missing tensor", missing.b.erase(missing.b.begin() + static_cast<std::ptrdiff_t>(at));
    extra.kind = "one tensor more", extra.b.emplace_back("more", base.b[at].second);
    renamed.kind = "another name", renamed.b[at].first += "x";
    shape.kind = "another shape", shape.b[at].second.shape = {6, 10}, shape.b[at].second.strides = {10, 1};
    type.kind = "another type", type.b[1].second.dtype = Dtype::bf16;
    for (auto* const side : {&turned.a, &turned.b})
      (*side)[at].second.shape = {6, 10}, (*side)[at].second.strides = {1, 6};
    turned.kind = "equal: another order in memory", turned.equal = true;
    // The same values, row-major.
    Tensor& view = turned.b[at].second;
    std::string bytes(view.byte_count(), '\0');
    tensorfile::read_raw(turned.a[at].second, bytes);
    view = tensorfile::make_tensor(view.dtype, {6, 10}, Storage::own(bytes));
    for (TensorPair* const pair : {&missing, &extra, &renamed, &shape, &type, &turned})
      pairs.push_back(std::move(*pair));
  }
  return pairs;
}

/// Counts what a comparison made of the pairs.
class Tally {
 public:
  explicit Tally(std::string comparison) : comparison_(std::move(comparison)) {}
  /// `passes`: the comparison calls the pair equal.
  void count(const std::string& kind, bool equal, bool passes) {
    auto& [pairs, wrong] = kinds_[kind];
    ++pairs, wrong += passes != equal;
    all_wrong_ += passes != equal;
    ++all_;
  }
  int wrong() const { return all_wrong_; }
  int all() const { return all_; }
  /// "zs-verify: 1200 pairs of 30 kinds, 0 wrong, 1.2 s", and a line a kind; also the kinds that were judged wrong.
  std::string text(bool kinds) const {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    std::string made = comparison_ + ": " + std::to_string(all_) + " pairs of " + std::to_string(kinds_.size()) +
                       " kinds, " + std::to_string(all_wrong_) + " wrong, " +
                       std::to_string(seconds.count()).substr(0, 5) + " s\n";
    for (const auto& [kind, found] : kinds_) {
      if (kinds || found.second)
        made += "  " + kind + ": " + std::to_string(found.first) + ", wrong " + std::to_string(found.second) + "\n";
    }
    return made;
  }

 private:
  std::string comparison_;
  std::map<std::string, std::pair<int, int>> kinds_;
  int all_ = 0, all_wrong_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace zs::compare
