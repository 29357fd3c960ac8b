// SPDX-License-Identifier: Apache-2.0
#include "plot/trace.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "figure/axis.hpp"
#include "plot/curve.hpp"
#include "trace/launch.hpp"

namespace zs::plot {
namespace {

using trace::Trace;

constexpr double kSecond = 1e6;  // in the microseconds of traces

Sheet answer(std::string_view analysis, const trace::Question& question, std::size_t most) {
  const auto& analyses = trace::analyses();
  const auto found = std::ranges::find_if(analyses, [&](const auto& one) { return one.name == analysis; });
  return found->run(question, most);
}

double number(const std::string& cell) { return parse_real(cell).value_or(kNone); }

/// A kernel without what its name shares with many others: "void at::native::reduce_kernel<512, at::Sum>(at::Config)"
/// is "reduce_kernel<512, Sum>".
std::string kernel_name(std::string_view full) {
  if (full.starts_with("void ")) full.remove_prefix(5);
  std::string name;
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  const auto of_identifier = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  std::size_t word = 0;  // start of the identifier
  int depth = 0;         // of <>
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (full.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (full.substr(i).starts_with("::") && word < name.size()) {
      name.resize(word), ++i;  // a namespace
    } else if (c == '(' && depth == 0 && !name.empty() && name.back() != ' ') {
      break;  // the parameters
    } else {
      depth += c == '<' ? 1 : c == '>' ? -1 : 0;
      name += c;
      if (!of_identifier(c)) word = name.size();
    }
  }
  return name;
}

/// Names that would look the same when shortened, such as instances of one template: shows where they differ.
void tell_apart(std::vector<std::string*> names) {
  constexpr std::size_t kShown = 30, kHead = 18;
  std::map<std::string, std::vector<std::string*>> alike;
  for (std::string* const name : names) alike[figure::shortened(*name, kShown)].push_back(name);
  for (const auto& [shown, group] : alike) {
    if (group.size() < 2) continue;
    std::size_t common = 0;
    const auto same = [&](const std::string* name) {
      return common < name->size() && (*name)[common] == (*group.front())[common];
    };
    while (std::ranges::all_of(group, same)) ++common;
    while (common > 0 && std::isalnum(static_cast<unsigned char>((*group.front())[common - 1]))) --common;
    const std::string head = group.front()->substr(0, std::min(kHead, group.front()->find('<')));
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::string tail = group[i]->substr(std::min(common, group[i]->size()));
      *group[i] = tail.empty() ? *group[i] + " #" + std::to_string(i + 1) : head + ".. " + tail;
    }
  }
}

/// An answer whose rows begin with a kernel.
Sheet of_kernels(Sheet answer) {
  std::vector<std::string*> names;
  for (auto& row : answer.rows) row[0] = kernel_name(row[0]), names.push_back(&row[0]);
  tell_apart(names);
  return answer;
}

/// Ranks by the activity of their GPUs.
void add_breakdown(const trace::Question& question, std::vector<Panel>& panels) {
  const Sheet times = answer("temporal", question, SIZE_MAX);
  if (times.rows.empty()) return;
  Panel panel;
  panel.title = "GPU time of each rank, by share";
  panel.key = "share";
  panel.columns = {"computing", "not computing", "idle"};
  panel.x_label = "from the first to the last event on the GPU", panel.y_label = "rank";
  constexpr std::size_t kPercents[] = {5, 7, 3};  // columns of the answer
  std::vector<double> shares;
  for (const auto& row : times.rows) {
    panel.rows.push_back(row[0]);
    for (const std::size_t percent : kPercents) shares.push_back(number(row[percent]));
  }
  const std::vector<std::string> texts = summary::column(shares, 4);
  for (std::size_t i = 0; i < shares.size(); ++i)
    panel.cells.push_back({i % panel.columns.size(), i / panel.columns.size(), shares[i], texts[i] + " %"});
  panel.notes.emplace_back("not computing: communication and copies that no computation hides");
  panels.push_back(std::move(panel));
}

/// A bar for each row of an answer: its name, and the time in `column`.
void add_bars(const Sheet& times, std::size_t name, std::size_t column, const std::string& title,
              const std::string& label, std::vector<Panel>& panels) {
  double most = 0;
  for (const auto& row : times.rows) most = std::max(most, number(row[column]));
  if (!(most > 0)) return;
  const Unit unit = summary::time_unit(most / kSecond);
  Panel panel;
  panel.title = title;
  panel.x_label = label + " (" + unit.name + ")";
  for (const auto& row : times.rows) {
    Bar bar;
    bar.name = row[name];
    bar.value = number(row[column]) / kSecond / unit.factor;
    bar.label = unit.text(number(row[column]) / kSecond, 3);
    panel.bars.push_back(std::move(bar));
  }
  panels.push_back(std::move(panel));
}

/// A curve over the time of the trace, with no more points than a picture can show: of each of its columns the first,
/// the largest and the last, so that what stays the same between columns is level.
Series course(const std::string& name, std::size_t hue, const std::vector<double>& times,
              const std::vector<double>& values, const Unit& unit) {
  constexpr double kColumns = 600;
  Series series;
  series.name = name;
  series.colour = Ink(hue);
  const auto add = [&](std::size_t i) {
    series.x.push_back(times[i] / kSecond / unit.factor);
    series.y.push_back(values[i]);
  };
  const double width = times.empty() ? 0 : (times.back() - times.front()) / kColumns;
  for (std::size_t i = 0, end = 0; i < times.size(); i = end) {
    do ++end;
    while (end < times.size() && times[end] - times[i] <= width);
    const auto at = [&](std::size_t place) { return values.begin() + static_cast<std::ptrdiff_t>(place); };
    const auto largest = static_cast<std::size_t>(std::max_element(at(i), at(end)) - values.begin());
    add(i);
    if (largest > i) add(largest);
    if (end - 1 > largest) add(end - 1);
  }
  return series;
}

Unit time_axis(Panel& panel, double last) {
  Unit unit = summary::time_unit(last / kSecond);
  panel.x_label = "time (" + unit.name + ")";
  panel.from_zero = panel.x_from_zero = true;
  return unit;
}

void add_queues(const std::vector<Trace>& traces, std::vector<Panel>& panels) {
  Panel panel;
  panel.title = "Launches that waited on each stream of rank " + to_text(traces.front().rank);
  panel.y_label = "launches";
  const auto queues = trace::queues(traces.front());
  double last = 0;
  for (const auto& [stream, queue] : queues) last = std::max(last, queue.times.back());
  const Unit time = time_axis(panel, last);
  for (const auto& [stream, queue] : queues) {
    std::vector<double> times, lengths;  // as steps: a length stays until the next change
    for (std::size_t i = 0; i < queue.times.size(); ++i) {
      if (i > 0) times.push_back(queue.times[i]), lengths.push_back(queue.lengths[i - 1]);
      times.push_back(queue.times[i]), lengths.push_back(queue.lengths[i]);
    }
    panel.series.push_back(
        course("stream " + to_text(std::int64_t{stream}), panel.series.size(), times, lengths, time));
  }
  if (!panel.series.empty()) panels.push_back(std::move(panel));
}

void add_memory(const std::vector<Trace>& traces, std::vector<Panel>& panels) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::vector<double>, std::vector<double>>> devices;
  double most = 0, last = 0;
  for (const Trace& trace : traces) {
    for (const trace::Memory& point : trace.memory) {
      auto& [times, values] = devices[{trace.rank, point.device}];
      times.push_back(point.ts);
      values.push_back(static_cast<double>(point.allocated));
      most = std::max(most, values.back()), last = std::max(last, point.ts);
    }
  }
  if (devices.empty()) return;
  const Unit unit = summary::bytes_unit(most);
  Panel panel;
  panel.title = "Memory held";
  panel.y_label = "memory (" + unit.name + ")";
  const Unit time = time_axis(panel, last);
  for (const auto& [key, points] : devices) {
    std::vector<double> times, values;  // what is held stays until the next event: stairs
    for (std::size_t i = 0; i < points.first.size(); ++i) {
      if (i > 0) times.push_back(points.first[i]), values.push_back(values.back());
      times.push_back(points.first[i]), values.push_back(points.second[i] / unit.factor);
    }
    panel.series.push_back(course("rank " + to_text(key.first) + (key.second < 0 ? "" : ", GPU " + to_text(key.second)),
                                  panel.series.size(), times, values, time));
  }
  panels.push_back(std::move(panel));
}

}  // namespace

Figure trace_figure(const trace::Question& question) {
  const std::vector<Trace>& traces = question.traces();
  constexpr std::size_t kNames = 8;
  Figure figure;
  figure.title = "Profile of " + counted(traces.size(), "rank");
  add_breakdown(question, figure.panels);
  add_bars(of_kernels(answer("kernels", question, kNames)), 0, 2, "Kernels with the most time", "time over all ranks",
           figure.panels);
  Sheet path = answer("critical", question, kNames);
  std::erase_if(path.rows, [&](const auto& row) { return row[0] != path.rows.front()[0]; });
  if (!path.rows.empty())
    add_bars(path, 1, 2, "Critical path of rank " + path.rows.front()[0], "time on the critical path", figure.panels);
  add_queues(traces, figure.panels);
  add_bars(answer("annotations", question, kNames), 0, 2, "Annotations with the most time", "time over all ranks",
           figure.panels);
  add_bars(of_kernels(answer("stragglers", question, kNames)), 0, 6, "Collectives in which ranks waited for others",
           "waiting over all ranks", figure.panels);
  add_memory(traces, figure.panels);
  if (figure.panels.empty()) throw NoData("these traces have nothing that can be drawn");
  return figure;
}

}  // namespace zs::plot
