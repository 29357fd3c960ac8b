// SPDX-License-Identifier: Apache-2.0
#include "metric/hdf5.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <exception>
#include <new>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/secret.hpp"
#include "h5/image.hpp"
#include "metric/escape.hpp"
#include "metric/file.hpp"

// The shadows of the sanitizers fill the address space; g++ and clang++ say it in two ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ZS_SHADOWED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ZS_SHADOWED
#endif
#endif
namespace zs::metric {
namespace {

constexpr std::string_view kVersionKey = "zs_metrics";
constexpr std::int64_t kVersion = 1;

/// How an absent cell is stored, for whoever reads the file without zs.
std::string_view missing(Type type) {
  switch (type) {
    case Type::integer:
      return "-9223372036854775808 is absent";
    case Type::real:
      return "the NaN with payload 1954 (bits 0x7FF80000000007A2) is absent, any other NaN is a value";
    case Type::text:
      return "an empty text is absent";
  }
  return "";
}

h5::Values values_of(const Column& column) {
  switch (column.type()) {
    case Type::integer:
      return column.integers();
    case Type::real:
      return column.reals();
    case Type::text:
      return column.texts();
  }
  return {};
}

void write_table(h5::Group& group, const Table& table) {
  for (const Column& column : table.columns) {
    if (column.name.empty()) throw Error("a column needs a name");
    group.write(link_name(column.name), values_of(column),
                {{"unit", column.unit}, {"missing", std::string(missing(column.type()))}});
  }
}

void write_attributes(h5::Group& group, const std::map<std::string, std::string>& attributes) {
  for (const auto& [key, value] : attributes) {
    if (key.empty() || key == kVersionKey) throw Error("an attribute cannot be named '" + key + "'");
    group.set(key, withheld(key, value));
  }
}

void write_tables(h5::Group& root, const std::string& name, const std::map<std::string, Table>& tables) {
  if (tables.empty()) return;
  h5::Group group = root.make(name);
  for (const auto& [key, table] : tables) {
    h5::Group made = group.make(link_name(key));
    write_table(made, table);
  }
}

/// A column of whole numbers that was written as reals.
Column whole(Column reals) {
  Column column(reals.name, reals.unit, Type::integer);
  for (std::size_t row = 0; row < reals.size(); ++row) {
    const double value = reals.reals()[row];
    const bool absent = reals.absent(row) || std::isnan(value);  // pandas has no other sign for an absent integer
    if (!absent && !(std::fabs(value) <= 0x1p53 && value == std::trunc(value)))
      throw Error("column '" + reals.name + "' holds " + to_text(value) + ", which is not a whole number");
    column.integers().push_back(absent ? kAbsentInteger : static_cast<std::int64_t>(value));
  }
  return column;
}

/// A column of the standard type, if the file's type can be converted without loss.
Column column_of(const std::string& name, const std::string& unit, h5::Values&& values) {
  const Standard* const usual = standard(name);
  if (auto* const integers = std::get_if<std::vector<std::int64_t>>(&values)) {
    Column column(name, unit, Type::integer);
    column.integers() = std::move(*integers);
    if (!usual || usual->type != Type::real) return column;
    Column real(name, unit, Type::real);
    for (std::size_t row = 0; row < column.size(); ++row) real.reals().push_back(column.real(row));
    return real;
  }
  if (auto* const reals = std::get_if<std::vector<double>>(&values)) {
    Column column(name, unit, Type::real);
    column.reals() = std::move(*reals);
    return usual && usual->type == Type::integer ? whole(std::move(column)) : column;
  }
  Column column(name, unit, Type::text);
  column.texts() = std::get<std::vector<std::string>>(std::move(values));
  return column;
}

Table read_table(const h5::Group& group, const std::string& place) {
  Table table;
  for (const h5::Member& member : group.members()) {
    if (member.group) throw Error("expected a dataset at " + place + "/" + member.name + ", found a group");
    const h5::Attributes attributes = group.attributes(member.name);
    const auto unit = attributes.find("unit");
    table.columns.push_back(
        column_of(unlink_name(member.name), unit == attributes.end() ? "" : unit->second, group.read(member.name)));
    const Column& last = table.columns.back();
    if (last.size() != table.rows()) {
      throw Error("dataset " + place + "/" + member.name + " has " + std::to_string(last.size()) +
                  " rows, those before it " + std::to_string(table.rows()));
    }
  }
  return table;
}

std::map<std::string, Table> read_tables(const h5::Group& root, const std::string& name) {
  std::map<std::string, Table> tables;
  if (!root.has(name)) return tables;
  const h5::Group group = root.open(name);
  for (const h5::Member& member : group.members()) {
    tables[unlink_name(member.name)] = read_table(group.open(member.name), "/" + name + "/" + member.name);
  }
  return tables;
}

std::vector<Run> read_runs(const h5::Group& root) {
  std::vector<Run> runs;
  if (!root.has("runs")) return runs;
  const h5::Group group = root.open("runs");
  for (const h5::Member& member : group.members()) {
    const h5::Group run = group.open(member.name);
    runs.push_back({unlink_name(member.name), run.attributes(), canonical(read_table(run, "/runs/" + member.name))});
    if (runs.back().name.empty()) throw Error("a run without a name");
  }
  return runs;
}

Store read_image(std::string_view bytes) {
  const h5::Image image = h5::Image::open(bytes);
  const h5::Group root = image.root();
  Store store;
  store.attributes = root.attributes();
  const auto version = store.attributes.extract(std::string(kVersionKey));
  if (version.empty()) throw Error("HDF5 data, but no metrics in it (its root has no attribute zs_metrics)");
  if (version.mapped() != to_text(kVersion)) {
    throw Error("metric format '" + version.mapped() + "' is not known here, only 1: update zs");
  }
  store.runs = read_runs(root);
  if (root.has("summary")) store.summary = read_table(root.open("summary"), "/summary");
  store.curves = read_tables(root, "curves");
  store.tables = read_tables(root, "tables");
  return store;
}

constexpr std::array<std::string_view, 4> kUnchecked = {"TREE", "SNOD", "HEAP", "GCOL"};  // signatures in the format
constexpr std::size_t kVersionAt = 8;
constexpr int kFirstChecked = 2;  // version of the superblock

/// In the copy: writes 'd' and the result, or 'e' and the message.
void work_within_limits(const std::function<std::string()>& work, int file, rlim_t seconds) {
  const rlimit processor{seconds, seconds}, core{0, 0};
  ::setrlimit(RLIMIT_CPU, &processor);
  ::setrlimit(RLIMIT_CORE, &core);
#if !defined(ZS_SHADOWED)
  rlimit memory{};
  ::getrlimit(RLIMIT_AS, &memory);
  memory.rlim_cur = std::min<rlim_t>(memory.rlim_cur, most_in_memory() * 2);  // RLIM_INFINITY is the largest
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGXCPU}) std::signal(signal, SIG_DFL);
  std::string answer;
  try {
    answer = "d" + work();
  } catch (const std::bad_alloc&) {
    answer = "eout of memory: its columns are too long";
  } catch (const std::exception& error) {
    answer = std::string("e") + error.what();
  }
  write_all(file, answer, "the answer");
}

}  // namespace

std::string to_h5(const Store& store) {
  h5::Image image = h5::Image::create();
  h5::Group root = image.root();
  root.set(std::string(kVersionKey), kVersion);
  write_attributes(root, store.attributes);
  h5::Group runs = root.make("runs");
  for (const Run& run : store.runs) {
    if (run.name.empty()) throw Error("a run needs a name");
    h5::Group group = runs.make(link_name(run.name));
    write_attributes(group, run.attributes);
    write_table(group, canonical(run.records));
  }
  if (store.summary) {
    h5::Group summary = root.make("summary");
    write_table(summary, *store.summary);
  }
  write_tables(root, "curves", store.curves);
  write_tables(root, "tables", store.tables);
  return image.finish();
}

Store from_h5(std::string_view bytes) {
  if (!needs_guard(bytes)) return read_image(bytes);
  const unsigned seconds = 5 + static_cast<unsigned>(bytes.size() >> 22);
  return read_image(guarded([&] { return to_h5(read_image(bytes)); }, seconds));
}

std::map<std::string, std::string> facts_of(std::string_view bytes) {
  if (needs_guard(bytes)) return {};
  try {
    const h5::Image image = h5::Image::open(bytes);
    const h5::Group runs = image.root().open("runs");
    return runs.open(runs.members().at(0).name).attributes();
  } catch (const std::exception&) {  // from_h5() says why
    return {};
  }
}

bool needs_guard(std::string_view image) {
  return image.size() <= kVersionAt || image[kVersionAt] < kFirstChecked ||
         std::ranges::any_of(
             kUnchecked, [&](std::string_view signature) { return image.find(signature) != std::string_view::npos; });
}

std::string guarded(const std::function<std::string()>& work, unsigned seconds) {
  Ended ended = run_copy([&](int file) { work_within_limits(work, file, seconds); });
  std::string& answer = ended.output;
  if (const int signal = ended.status - 128; signal > 0) {
    throw Error(std::string("corrupt HDF5 data: the HDF5 library ") +
                (signal == SIGXCPU || signal == SIGKILL ? "does not come to an end" : "crashes") + " on it (signal " +
                std::to_string(signal) + ")");
  }
  if (answer.empty() || ended.status != 0) throw Error("cannot read the HDF5 data: its reader ended early");
  const bool failed = answer.front() == 'e';
  answer.erase(0, 1);
  if (failed) throw Error(answer);
  return std::move(answer);
}

}  // namespace zs::metric
