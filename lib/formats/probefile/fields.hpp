// SPDX-License-Identifier: Apache-2.0
// The rows of a recording (share/probe/zs_probe, zs-train --probe): a JSON object a line. A list of fields belongs to
// each kind of row. The reader (parse.hpp) reads the fields of the list and refuses others; the ledger of a comparison
// (probe/account.hpp) walks the same list and has a function for each rule: a field that is read and not compared does
// not compile.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace zs::probefile {

/// How a field is compared.
namespace rule {
struct Row {};            ///< says which row it is: the reader checks it
struct Rank {};           ///< rank and number of ranks: the reader checks them; other numbers are another layout
struct Copy {};           ///< equal ones are a copy of one recording
struct Version {};        ///< of PyTorch: told
struct Environment {};    ///< where it was computed: told; goldens are chosen by it
struct Layout {};         ///< told; another one excuses what a layout alone has
struct Names {};          ///< of parameters: the same on both sides
struct Unseen {};         ///< what is not recorded: nothing is exact
struct End {};            ///< the end, how it came, the stride and the number of lines: the reader checks them
struct Counted {};        ///< a resumed training's own counter: that of the steps made
struct Tensors {};        ///< joined over ranks: by bits, else by the bound of the place
struct Contributions {};  ///< the same, of a micro-batch
struct Outputs {};        ///< the same, of a module and a sample
struct Loss {};           ///< of a rank: by bits, else by the bound of the type
struct Losses {};         ///< of a micro-batch: the same
struct Scalars {};        ///< norms as losses; settings are the same
struct Groups {};         ///< for each parameter the options of the group that holds it
struct Schedules {};      ///< of the same layout: the same
struct Counters {};       ///< for each parameter: the same
struct Samples {};        ///< the same, in whatever order and cut
struct Targets {};        ///< of a micro-batch: the same
struct Generators {};     ///< the same, but Python's own
struct Computed {};       ///< the type of the forward pass: the coarser one is the bound
struct Places {};         ///< what a row is limited to
struct File {};           ///< where values lie
struct Form {};           ///< type, size and shape: the same on all ranks and on both sides
struct Part {};           ///< what a rank holds: the reader joins it
struct Bits {};           ///< equal digests are equal bits
struct Squares {};        ///< finite, and the same where the bits are
struct Orders {};         ///< of weights: a permutation is told by them
struct Sums {};           ///< the distance is theirs; the same where the bits are
struct Sample {};         ///< of the elements: the same where the bits are
}  // namespace rule

template <class Row, class Value, class Rule>
struct Field {
  const char* name;
  Value Row::*value;
  Rule rule;
  bool required = false;
};
template <class Row, class Value, class Rule>
Field(const char*, Value Row::*, Rule, bool) -> Field<Row, Value, Rule>;
template <class Row, class Value, class Rule>
Field(const char*, Value Row::*, Rule) -> Field<Row, Value, Rule>;

/// A number that may be a text: "nan".
struct Real {
  double value = 0;
  operator double() const { return value; }  // implicit: read as a number
};
/// 16 hexadecimal digits.
struct Digest {
  std::uint64_t bits = 0;
};
/// Linear sums of a tensor: 8 for each of its ranges.
using Sketch = std::vector<double>;
/// Some elements of a tensor, those at elements_of(): of these the ones that the rank holds, in order.
struct Elements {
  std::vector<double> values;
};
/// An option of an optimizer's group: numbers, or a text.
struct Option {
  std::vector<double> numbers;
  std::string text;
  bool operator==(const Option&) const = default;
};
struct Group {
  std::map<std::string, Option> options;
  std::vector<std::string> params;
  std::string optimizer;  ///< its class
};
/// The number of elements that are kept of a tensor, evenly spaced: number k is at k * spacing(total), in row-major
/// order.
inline constexpr std::int64_t kElements = 32;
inline std::int64_t spacing(std::int64_t total) {
  const std::int64_t every = total / std::min(total, kElements);
  return every > 1 && every % 2 == 0 ? every - 1 : every;  // an odd one visits all columns of a matrix
}
/// A schedule of torch before the update.
struct Schedule {
  std::string name;        ///< its class
  std::int64_t count = 0;  ///< how often it has moved
  std::vector<Real> rates;
  std::optional<std::vector<Real>> formula;  ///< what its formula says of the rates
};
inline constexpr std::tuple kSchedule{
    Field{"name", &Schedule::name, rule::Row{}, true}, Field{"count", &Schedule::count, rule::Schedules{}, true},
    Field{"rates", &Schedule::rates, rule::Schedules{}, true}, Field{"formula", &Schedule::formula, rule::Schedules{}}};
using Runs = std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>;

struct TensorRow {
  std::string name, dtype, sample;
  std::int64_t total = 0, begin = 0, count = 0;
  std::vector<std::int64_t> shape;
  std::optional<Runs> runs;
  Digest digest;
  Real squares;
  Sketch sketch;
  std::optional<Elements> elements;
  std::optional<std::int64_t> micro, by;
  Digest set, rows, cols;  ///< of weights: whatever the order of elements, of rows; of columns
};
inline constexpr std::tuple kTensor{Field{"name", &TensorRow::name, rule::Row{}, true},
                                    Field{"sample", &TensorRow::sample, rule::Row{}},
                                    Field{"micro", &TensorRow::micro, rule::Row{}},
                                    Field{"by", &TensorRow::by, rule::Row{}},
                                    Field{"dtype", &TensorRow::dtype, rule::Form{}, true},
                                    Field{"of", &TensorRow::total, rule::Form{}, true},
                                    Field{"shape", &TensorRow::shape, rule::Form{}, true},
                                    Field{"begin", &TensorRow::begin, rule::Part{}, true},
                                    Field{"count", &TensorRow::count, rule::Part{}, true},
                                    Field{"runs", &TensorRow::runs, rule::Part{}},
                                    Field{"digest", &TensorRow::digest, rule::Bits{}, true},
                                    Field{"squares", &TensorRow::squares, rule::Squares{}, true},
                                    Field{"set", &TensorRow::set, rule::Orders{}},
                                    Field{"rows", &TensorRow::rows, rule::Orders{}},
                                    Field{"cols", &TensorRow::cols, rule::Orders{}},
                                    Field{"sketch", &TensorRow::sketch, rule::Sums{}, true},
                                    Field{"elements", &TensorRow::elements, rule::Sample{}}};

struct HeadRow {
  std::int64_t version = 0, rank = 0, ranks = 0;
  std::string torch, id, layout, framework;
  std::map<std::string, std::vector<std::string>> tied;
  std::vector<std::string> frozen, unseen;
  std::vector<std::string> loose;                         ///< trained parameters that no optimizer moves
  std::map<std::string, std::vector<std::int64_t>> axes;  ///< of each axis of parallelism: ranks, this one's place
  std::map<std::string, std::string> environment;         ///< processor, instruction set, kernels, ...
};
inline constexpr std::tuple kHead{Field{"zs_probe", &HeadRow::version, rule::Row{}, true},
                                  Field{"rank", &HeadRow::rank, rule::Rank{}, true},
                                  Field{"world_size", &HeadRow::ranks, rule::Rank{}, true},
                                  Field{"torch", &HeadRow::torch, rule::Version{}, true},
                                  Field{"id", &HeadRow::id, rule::Copy{}, true},
                                  Field{"layout", &HeadRow::layout, rule::Layout{}, true},
                                  Field{"framework", &HeadRow::framework, rule::Layout{}, true},
                                  Field{"tied", &HeadRow::tied, rule::Names{}, true},
                                  Field{"frozen", &HeadRow::frozen, rule::Names{}, true},
                                  Field{"loose", &HeadRow::loose, rule::Names{}},
                                  Field{"axes", &HeadRow::axes, rule::Layout{}},
                                  Field{"unseen", &HeadRow::unseen, rule::Unseen{}, true},
                                  Field{"environment", &HeadRow::environment, rule::Environment{}}};

/// Parameters, state and buffers before step `start` + 1.
struct StartRow {
  std::int64_t start = 0;
  std::optional<std::int64_t> counted;
  std::vector<TensorRow> tensors;
};
inline constexpr std::tuple kStart{Field{"start", &StartRow::start, rule::Row{}, true},
                                   Field{"counted", &StartRow::counted, rule::Counted{}},
                                   Field{"tensors", &StartRow::tensors, rule::Tensors{}, true}};

struct StepRow {
  std::int64_t step = 0;
  std::vector<std::string> only, unseen;
  std::optional<std::string> computed, values;
  std::optional<Real> loss;
  std::vector<Real> losses;
  std::map<std::string, Real> scalars;
  std::vector<Group> groups;
  std::vector<Schedule> schedules;
  std::map<std::string, std::vector<std::string>> counters;
  std::vector<std::vector<std::string>> batch;
  std::vector<std::optional<std::int64_t>> targets;
  std::map<std::string, std::string> generators;
  std::vector<TensorRow> tensors, locals, outputs;
};
inline constexpr std::tuple kStep{Field{"step", &StepRow::step, rule::Row{}, true},
                                  Field{"only", &StepRow::only, rule::Places{}},
                                  Field{"computed", &StepRow::computed, rule::Computed{}},
                                  Field{"loss", &StepRow::loss, rule::Loss{}, true},
                                  Field{"losses", &StepRow::losses, rule::Losses{}, true},
                                  Field{"scalars", &StepRow::scalars, rule::Scalars{}, true},
                                  Field{"groups", &StepRow::groups, rule::Groups{}, true},
                                  Field{"schedules", &StepRow::schedules, rule::Schedules{}},
                                  Field{"counters", &StepRow::counters, rule::Counters{}},
                                  Field{"batch", &StepRow::batch, rule::Samples{}, true},
                                  Field{"targets", &StepRow::targets, rule::Targets{}},
                                  Field{"rng", &StepRow::generators, rule::Generators{}},
                                  Field{"outputs", &StepRow::outputs, rule::Outputs{}},
                                  Field{"locals", &StepRow::locals, rule::Contributions{}, true},
                                  Field{"tensors", &StepRow::tensors, rule::Tensors{}, true},
                                  Field{"values", &StepRow::values, rule::File{}, true},
                                  Field{"unseen", &StepRow::unseen, rule::Unseen{}}};

struct EndRow {
  std::int64_t end = 0, rank = 0;
  std::optional<std::int64_t> every, since, lines;
  std::string how;
  std::vector<std::string> unseen;
};
inline constexpr std::tuple kEnd{
    Field{"end", &EndRow::end, rule::End{}, true},     Field{"rank", &EndRow::rank, rule::Rank{}, true},
    Field{"every", &EndRow::every, rule::End{}, true}, Field{"since", &EndRow::since, rule::End{}},
    Field{"lines", &EndRow::lines, rule::End{}},       Field{"how", &EndRow::how, rule::End{}},
    Field{"unseen", &EndRow::unseen, rule::Unseen{}}};

/// Calls `what` with each field of a list.
template <class List, class What>
void each(const List& list, What&& what) {
  std::apply([&](const auto&... field) { (what(field), ...); }, list);
}

}  // namespace zs::probefile
