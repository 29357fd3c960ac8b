// SPDX-License-Identifier: Apache-2.0
#include "probefile/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "probefile/folder.hpp"

namespace zs::probefile {

using Ordered = nlohmann::ordered_json;
using Begin = tracker::AppendedFile::Begin;

/// The content of a file that exists.
struct Recorded {
  Begin begin = Begin::as_new;
  std::int64_t step = 0, lines = 0;  // the last step; rows of steps
  std::size_t bytes = 0;             // of whole lines
};

namespace {

Recorded recorded(const std::string& path) {
  Recorded found{.begin = Begin::behind};
  const std::string content = Input(path).read_all();
  for (std::size_t end; (end = content.find('\n', found.bytes)) != std::string::npos; found.bytes = end + 1) {
    const auto row = Ordered::parse(content.begin() + static_cast<std::ptrdiff_t>(found.bytes),
                                    content.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!row.is_object()) continue;
    found.lines += row.contains("step");
    for (const char* const key : {"step", "end"}) {
      if (const auto value = row.find(key); value != row.end() && value->is_number_integer())
        found.step = std::max(found.step, value->get<std::int64_t>());
    }
  }
  return found;
}

/// Whether a training that has made `done` steps can continue the file. Removes a line that a kill truncated.
Recorded begin(const std::string& path, std::int64_t done) {
  if (!is_there(path)) return {};
  const Recorded before = recorded(path);
  if (done == 0 || before.step > done)
    throw Error(path, 0,
                "is there already, the record of another training up to step " + to_text(before.step) +
                    ": name another folder with --probe");
  std::filesystem::resize_file(path, before.bytes);
  return before;
}

/// A name of this recording, so that a copy of it is known as one.
std::string new_id() {
  std::random_device random;
  return fmt::format("{:016x}", std::uint64_t{random()} << 32 | random());
}

/// A number; what is not finite is a text.
Ordered number(double value) { return std::isfinite(value) ? Ordered(value) : Ordered(to_text(value)); }

/// JSON with the blanks that Python writes.
std::string text_of(const Ordered& value) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, member] : value.items())
    text += (text.empty() ? "" : ", ") + (value.is_object() ? Ordered(key).dump() + ": " : "") + text_of(member);
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

/// A line: an object, with lists whose members are texts already.
std::string line(const Ordered& row, std::initializer_list<std::pair<const char*, const std::string*>> lists) {
  std::string text = text_of(row);
  text.pop_back();
  for (const auto& [key, members] : lists) text += fmt::format(", \"{}\": [{}]", key, *members);
  return text + "}\n";
}

}  // namespace

Writer::Writer(const std::string& folder, const Training& training, std::int64_t done)
    : Writer(path_of(folder, training.rank), training, begin(path_of(folder, training.rank), done)) {}

Writer::Writer(const std::string& path, const Training& training, Recorded before)
    : rank_(training.rank), lines_(before.lines), file_(path, before.begin) {
  file_.append(line({{"zs_probe", 2},
                     {"rank", training.rank},
                     {"world_size", training.ranks},
                     {"id", new_id()},
                     {"torch", training.library},
                     {"layout", training.layout},
                     {"framework", training.framework},
                     {"tied", Ordered::object()},
                     {"frozen", training.frozen},
                     {"unseen", training.unseen}},
                    {}));
}

std::string Writer::values_name(std::int64_t step) const {
  return fmt::format("step-{:08}.rank-{}.safetensors", step, rank_);
}

void Writer::start(std::int64_t done, std::int64_t counted, const std::string& tensors) {
  file_.append(line({{"start", done}, {"counted", counted}}, {{"tensors", &tensors}}));
}

void Writer::step(const StepOf& measured, const std::string& tensors, const std::string& locals) {
  add({{"step", measured.step}}, measured, tensors, locals);
}

void Writer::only(std::int64_t step, const std::vector<std::string>& places, const std::string& tensors) {
  add({{"step", step}, {"only", places}}, {}, tensors, "");
}

void Writer::add(Ordered row, const StepOf& measured, const std::string& tensors, const std::string& locals) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Ordered() : Ordered(text); };
  Ordered losses = Ordered::array(), scalars = Ordered::object(), batch = Ordered::array();
  for (const double loss : measured.losses) losses.push_back(number(loss));
  for (const auto& [name, value] : measured.scalars) scalars[name] = number(value);
  for (const auto& samples : measured.batch) {
    Ordered& digests = batch.emplace_back(Ordered::array());
    for (const std::uint64_t digest : samples) digests.push_back(fmt::format("{:016x}", digest));
  }
  row.update(Ordered{{"computed", text_or_null(measured.computed)},
                     {"loss", measured.loss ? number(*measured.loss) : Ordered()},
                     {"losses", losses},
                     {"scalars", scalars},
                     {"groups", measured.groups},
                     {"counters", measured.counters},
                     {"batch", batch},
                     {"targets", measured.targets},
                     {"values", text_or_null(measured.values)}});
  file_.append(line(row, {{"locals", &locals}, {"tensors", &tensors}}));
  ++lines_;
}

void Writer::end(std::int64_t steps, std::int64_t every, const std::string& how) {
  file_.append(
      line({{"end", steps}, {"rank", rank_}, {"every", every}, {"since", 0}, {"lines", lines_}, {"how", how}}, {}));
}

}  // namespace zs::probefile
