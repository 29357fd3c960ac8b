// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/number.hpp"
#include "gradient/select.hpp"
#include "metric/file.hpp"
#include "plot/gradients.hpp"
#include "report/gradient_tables.hpp"
#include "report/words.hpp"

namespace zs::report {
namespace {

using gradient::Finding;
using gradient::History;
using gradient::Measure;
using gradient::Trouble;

constexpr double kLoggedTolerance = 1e-4;  // relative; the log's norm is summed in float32 tiles

/// "1/1500 of", "2300 times".
std::string times(double ratio) {
  return ratio < 1 ? "1/" + to_rounded_text(1 / ratio, 2) + " of" : to_rounded_text(ratio, 2) + " times";
}

/// "at step 60 its RMS is 1/1500 of the median of all layers".
std::string sentence_of(const History& history, const Finding& finding) {
  const Measure& measure = history.checkpoints[finding.checkpoint].layers[finding.layer];
  const std::string at = "at " + history.when(finding.checkpoint) + " ";
  switch (finding.trouble) {
    case Trouble::not_finite:
      return at + to_text(measure.non_finite()) + " of its " + to_text(measure.count) + " values " +
             (measure.non_finite() == 1 ? "is" : "are") + " not finite (" + to_text(measure.nans) + " nan, " +
             to_text(measure.infinities) + " inf)";
    case Trouble::zero:
      return at + "all its " + to_text(measure.count) + " values are 0";
    case Trouble::growing:
      return at + "its norm is " + times(finding.ratio) + " the median of the checkpoints before";
    default:
      return at + "its RMS is " + times(finding.ratio) + " the median of all layers";
  }
}

/// The folder of the training that a checkpoint is of.
std::string run_folder(const gradient::Source& source) {
  return std::filesystem::absolute(source.path).parent_path().parent_path().string();
}

/// The norms that a training logged, by step.
std::map<std::int64_t, double> logged_norms(const metric::Run& run) {
  std::map<std::int64_t, double> norms;
  const metric::Column* const steps = run.records.find("step");
  const metric::Column* const values = run.records.find("grad_norm");
  if (!steps || !values || steps->type() != metric::Type::integer || values->type() != metric::Type::real) return norms;
  for (std::size_t row = 0; row < run.records.rows(); ++row) {
    if (!values->absent(row)) norms[steps->integers()[row]] = values->reals()[row];
  }
  return norms;
}

LoggedNorms logged(const History& history, const LoggedRuns& runs) {
  LoggedNorms result;
  std::map<const metric::Run*, std::map<std::int64_t, double>> norms;
  for (std::size_t i = 0; i < history.checkpoints.size(); ++i) {
    const gradient::Source& source = history.checkpoints[i].source;
    const metric::Run* const run = runs.of(source);
    if (run && norms.count(run) == 0) norms[run] = logged_norms(*run);
    const std::map<std::int64_t, double>& by_step = norms[run];
    const auto found = source.step ? by_step.find(*source.step) : by_step.end();
    result.known.push_back(found != by_step.end());
    result.norms.push_back(result.known.back() ? found->second : std::nan(""));
    if (!result.known.back()) continue;
    ++result.compared;
    const double now = history.checkpoints[i].whole.norm(), then = found->second;
    const bool same =
        std::isfinite(now) ? std::abs(now - then) <= kLoggedTolerance * std::abs(then) : !std::isfinite(then);
    if (!same) result.unlike.push_back(i);
  }
  return result;
}

/// The layers with a trouble of that name, in their order; of many some.
Text layer_names(const History& history, const std::vector<Finding>& findings, const std::string& kind) {
  std::set<std::size_t> layers;
  for (const Finding& finding : findings) {
    if (gradient::name(finding.trouble) == kind) layers.insert(finding.layer);
  }
  constexpr std::size_t kMost = 6;
  std::vector<Text> texts;
  for (const std::size_t layer : layers) {
    if (texts.size() == kMost && layers.size() > kMost + 1)
      return say("{} and {} more", joined(texts, ", ", ", "), std::to_string(layers.size() - kMost));
    texts.push_back(code(history.layers[layer].name));
  }
  return joined(texts, ", ", ", ");
}

/// The findings: a row for each layer and trouble, with the last checkpoint that has it.
Grid findings_grid(const History& history, const std::vector<Finding>& findings) {
  Grid grid{"What is wrong", {"layer", "what", "checkpoints", "the last"}, {false, false, true, false}, {}};
  std::map<std::pair<std::size_t, Trouble>, std::vector<Finding>> grouped;
  for (const Finding& finding : findings) grouped[{finding.layer, finding.trouble}].push_back(finding);
  for (const auto& [key, found] : grouped) {
    grid.rows.push_back({{Text(code(history.layers[key.first].name)), static_cast<double>(key.first)},
                         {Text(bad(gradient::name(key.second)))},
                         {Text(std::to_string(found.size()) + " of " + std::to_string(history.checkpoints.size())),
                          static_cast<double>(found.size())},
                         {Text(sentence_of(history, found.back()))}});
  }
  return grid;
}

void write_gradient_verdict(const History& history, const std::vector<Finding>& findings, const LoggedNorms& log,
                            Document& document) {
  std::set<std::size_t> unsound;
  for (const Finding& finding : findings) unsound.insert(finding.layer);
  const std::size_t wrong = unsound.size();
  const std::string over = history.checkpoints.size() == 1
                               ? "at " + history.when(0)
                               : "at each of " + counted(history.checkpoints.size(), "checkpoint") +
                                     (history.by_step ? " (" + history.when(0) + " to " +
                                                            to_text(*history.checkpoints.back().source.step) + ")"
                                                      : "");
  document.verdict = wrong > 0 || !log.unlike.empty() ? Verdict::bad : Verdict::good;
  document.label = wrong > 0 ? "Unsound" : log.unlike.empty() ? "Sound" : "Not what was logged";
  Text& text = document.verdict_text;
  if (wrong == 0) {
    text += say("{}, {}.", strong("Every layer has a finite gradient, and none is zero, vanishes or explodes"), over);
  } else {
    std::vector<Text> each;
    const std::vector<Finding> worst = gradient::worst_first(findings);
    for (const Trouble trouble : {Trouble::not_finite, Trouble::exploding, Trouble::vanishing, Trouble::zero}) {
      const std::string kind = gradient::name(trouble);
      const auto example =
          std::ranges::find_if(worst, [&](const Finding& finding) { return gradient::name(finding.trouble) == kind; });
      if (example == worst.end()) continue;
      each.push_back(say("{}: {} ({}: {})", kind, layer_names(history, findings, kind),
                         history.layers[example->layer].name, sentence_of(history, *example)));
    }
    const char* const are = wrong == 1 ? " has a gradient that is not sound: " : " have gradients that are not sound: ";
    text += say("{}{}.", bad(std::to_string(wrong) + " of " + counted(history.layers.size(), "layer") + are),
                joined(each, "; ", "; "));
  }
  for (const std::size_t i : log.unlike) {
    text += say(" {}",
                bad("The norm at " + history.when(i) + ", " + to_rounded_text(history.checkpoints[i].whole.norm(), 6) +
                    ", is not what the training logged, " + to_rounded_text(log.norms[i], 6) + "."));
  }
}

Section gradient_summary(const History& history, const std::vector<Finding>& findings, const LoggedNorms& log) {
  Section section{"Summary", {}};
  section.blocks.emplace_back(Picture{"gradients",
                                      "norm of the gradient of each layer at the last checkpoint, and over the "
                                      "checkpoints",
                                      plot::gradient_figure(history)});
  List list;
  const std::size_t last = history.checkpoints.size() - 1;
  const double depth = gradient::depth_factor(history, last);
  if (std::isfinite(depth))
    list.items.push_back(say(
        "From each block to the one before it the RMS changes {} (geometric mean over the row of blocks, at {}); if "
        "it is far below 1, the first blocks learn too slowly.",
        strong(to_rounded_text(depth, 3) + "-fold"), history.when(last)));
  if (std::isfinite(history.cosine(last)))
    list.items.push_back(say("The cosine between the whole gradient at {} and the one at the checkpoint before is {}.",
                             history.when(last), strong(to_rounded_text(history.cosine(last), 3))));
  if (const gradient::Noise noise = history.noise(last); !std::isnan(noise.scale)) {
    const std::string measured =
        std::to_string(history.checkpoints[last].micro_batches) + " micro-batches at " + history.when(last);
    list.items.push_back(
        std::isinf(noise.scale)
            ? say("The {} differ by more than the whole gradient: more samples in a step would help.", measured)
            : say("By what the {} differ, the mean gradient of {} would be as much noise as gradient (the simple noise "
                  "scale of McCandlish and others, 2018).",
                  measured, strong(to_rounded_text(noise.scale, 3) + " micro-batches")));
  }
  if (log.compared > 0 && log.unlike.empty())
    list.items.push_back(say("The norm of all layers together equals the norm that the training logged, at {}.",
                             counted(log.compared, "checkpoint")));
  list.items.emplace_back(
      "The rule: a layer's gradient vanishes where its RMS (norm divided by the root of the number of values) is below "
      "1/" +
      to_text(gradient::kAcross) +
      " of the median RMS of all layers at the same checkpoint. It explodes "
      "where its RMS is above " +
      to_text(gradient::kAcross) + " times that median, or its norm above " + to_text(gradient::kGrowth) +
      " times the layer's own median over the checkpoints before. Layers that "
      "are zero or not finite are left out of medians" +
      (history.layers.size() < gradient::kFewLayers ? "; of fewer than " + std::to_string(gradient::kFewLayers) +
                                                          " layers no median is taken, so only growth is "
                                                          "judged here."
                                                    : "."));
  section.blocks.emplace_back(std::move(list));
  if (!findings.empty()) section.blocks.emplace_back(findings_grid(history, findings));
  return section;
}

/// "layer" is `noun` in every sentence and heading of the document, but in no name.
void speak_of(const std::string& noun, Document& document) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto words = [&](std::string& text) {
    for (std::size_t at = 0; (at = text.find("ayer", at + 1)) != std::string::npos;) {
      const std::size_t begin = at - 1, end = at + 4 + (text.substr(at + 4, 1) == "s" ? 1 : 0);
      const auto part = [&](std::size_t place) {  // of a word, or of a tensor's name
        const char c = place < text.size() ? text[place] : ' ';
        return letter(c) || c == '_' || (c == '.' && place + 1 < text.size() && letter(text[place + 1]));
      };
      const bool whole = (begin == 0 || (!part(begin - 1) && text[begin - 1] != '.')) && !part(end);
      if (!whole || (text[begin] != 'l' && text[begin] != 'L')) continue;
      std::string word = noun;
      if (text[begin] == 'L') word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
      text.replace(begin, 5, word);
    }
  };
  const auto sentence = [&](Text& text) {
    for (Span& span : text.spans) {
      if (span.look != Span::Look::code) words(span.text);
    }
  };
  sentence(document.verdict_text);
  for (Section& section : document.sections) {
    words(section.title);
    for (Block& block : section.blocks) {
      if (auto* const paragraph = std::get_if<Paragraph>(&block)) sentence(paragraph->text);
      if (auto* const subtitle = std::get_if<Subtitle>(&block)) words(subtitle->text);
      if (auto* const picture = std::get_if<Picture>(&block)) words(picture->caption);
      if (auto* const list = std::get_if<List>(&block)) std::for_each(list->items.begin(), list->items.end(), sentence);
      if (auto* const grid = std::get_if<Grid>(&block)) {
        words(grid->title);
        if (!grid->header.empty()) words(grid->header.front());
      }
    }
  }
}

}  // namespace

LoggedRuns::LoggedRuns(const History& history) {
  for (const auto& checkpoint : history.checkpoints) {
    const std::string folder = run_folder(checkpoint.source), path = folder + "/metrics.h5";
    if (runs_.count(folder) != 0 || !std::filesystem::exists(path)) continue;
    metric::Store store = metric::read(path);
    if (!store.runs.empty()) runs_[folder] = std::move(store.runs[0]);
  }
}

const metric::Run* LoggedRuns::of(const gradient::Source& source) const {
  const auto found = runs_.find(run_folder(source));
  return found == runs_.end() ? nullptr : &found->second;
}

Document gradients(const History& history, Format format) {
  const std::vector<Finding> findings = gradient::findings(history);
  const LoggedRuns runs(history);
  const LoggedNorms log = logged(history, runs);
  Document document;
  document.title = "Gradients of " + history.subject;
  if (format == Format::json) document.data = gradient::to_json(history);
  if (format == Format::tsv) document.rows = gradient::to_tsv(history);
  write_gradient_verdict(history, findings, log, document);
  document.sections.push_back(gradient_summary(history, findings, log));
  document.sections.push_back(layer_section(history, findings));
  document.sections.push_back(checkpoint_section(history, log));
  if (history.checkpoints.size() > 1) document.sections.push_back(direction_section(history));
  for (std::optional<Section> section : {between_section(history), loss_relation_section(history, runs)}) {
    if (section) document.sections.push_back(std::move(*section));
  }
  document.sections.push_back(tensor_section(history));
  if (plot::noun(history) != "layer") speak_of(plot::noun(history), document);
  return document;
}

}  // namespace zs::report
