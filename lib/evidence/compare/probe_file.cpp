// SPDX-License-Identifier: Apache-2.0
#include "compare/probe_file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

namespace zs::compare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string path_of(const std::string& folder, int rank) { return folder + "/rank-" + std::to_string(rank) + ".jsonl"; }

/// Python's bare NaN, Infinity and -Infinity as texts.
std::string quoted_words(std::string_view line) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (inside && line[i] == '\\' && i + 1 < line.size()) {
      out.append(line.substr(i++, 2));
      continue;
    }
    if (line[i] == '"') inside = !inside;
    bool word = false;
    for (const std::string_view bare : {"-Infinity", "Infinity", "NaN"}) {
      if (inside || !line.substr(i).starts_with(bare)) continue;
      out += '"' + std::string(bare) + '"';
      i += bare.size() - 1;
      word = true;
      break;
    }
    if (!word) out += line[i];
  }
  return out;
}

/// A number that may be NaN or infinite, which are texts here.
double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::nan("");
  if (text == "Infinity" || text == "-Infinity") return text == "Infinity" ? HUGE_VAL : -HUGE_VAL;
  throw Error("'" + text + "' is no number");
}

std::int64_t whole(const Json& object, const char* key, std::int64_t lowest) {
  const Json& value = object.at(key);
  if (!value.is_number_integer()) throw Error(std::string(key) + " is no whole number");
  const auto found = value.get<std::int64_t>();
  if (found < lowest) throw Error(std::string(key) + " is " + to_text(found));
  return found;
}

/// A recorded field that this reader does not compare must not pass as equal.
void require_known(const Json& object, std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) throw Error("is no line of zs_probe");
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Error("has '" + key + "', which this zs-verify does not know: take the version of the recorder");
  }
}

std::uint64_t hex(const std::string& text) {
  std::uint64_t value = 0;
  if (text.size() != 16) throw Error("a digest has 16 digits");
  for (const char c : text) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) throw Error("a digest has hexadecimal digits");
    value = value << 4 | digit;
  }
  return value;
}

/// The state of a rank's file while and after it is read.
struct RankFile {
  int rank = 0;
  std::string path;
  std::map<std::int64_t, std::int64_t> lines;   ///< line of each step
  std::int64_t end = -1, every = 0, told = -1;  ///< told: the announced number of lines of steps
  std::int64_t before = 0;                      ///< lines of steps before the training resumed
  bool sketches = false;                        ///< of version 2: only gradients and parameters are used
};

/// The ranks whose files are in a folder, in order.
std::vector<std::int64_t> ranks_in(const std::string& folder) {
  std::vector<std::int64_t> ranks;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string_view name = entry.path().native();
    name.remove_prefix(name.rfind('/') + 1);
    if (!name.starts_with("rank-") || !name.ends_with(".jsonl") || !entry.is_regular_file(ignored)) continue;
    if (const auto rank = parse_int(name.substr(5, name.size() - 11)); rank && *rank >= 0) ranks.push_back(*rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

class Reader {
 public:
  Reader(std::string folder, std::int64_t after) : folder_(std::move(folder)), after_(after) {}

  ProbedRun run() {
    read(0);
    if (run_.ranks < 1 || run_.ranks > 1 << 20) throw Error(path_of(folder_, 0), 1, "has no number of ranks");
    for (int rank = 1; rank < run_.ranks; ++rank) read(rank);
    for (const std::int64_t rank : ranks_in(folder_)) {
      if (rank >= run_.ranks)
        throw Error(folder_ + "/rank-" + to_text(rank) + ".jsonl", 0,
                    "is there, and the training has " + std::to_string(run_.ranks) + " ranks: it is of another");
    }
    for (const RankFile& file : files_) whole_file(file);
    same_steps();
    keep_common();
    stride();
    std::erase_if(run_.steps, [&](const auto& step) { return step.first <= after_; });
    whole_tensors();
    hold();
    return std::move(run_);
  }

 private:
  std::string folder_;
  std::int64_t after_;
  ProbedRun run_;
  std::vector<RankFile> files_;
  std::map<std::int64_t, std::unordered_map<std::string, std::size_t>> places_;  // of tensors, by step

  void fault(const std::string& path, std::int64_t line, const std::string& what) {
    run_.faults.push_back(located(path, line, what));
  }

  void read(int rank) {
    RankFile file{rank, path_of(folder_, rank), {}};
    const std::string content = Input(file.path).read_all();
    std::int64_t line = 0;
    bool torn = false;
    for (std::size_t at = 0; at < content.size();) {
      const std::size_t end = content.find('\n', at);
      ++line;
      if (end == std::string::npos) {
        torn = true;
        fault(file.path, line, "is cut: the training was killed, or the file is damaged");
        break;
      }
      try {
        one(Json::parse(quoted_words(std::string_view(content).substr(at, end - at))), line, file);
      } catch (const Json::exception&) {
        throw Error(file.path, line, "is no line of zs_probe");
      } catch (const Error& error) {
        throw Error(file.path, line, error.what());
      }
      at = end + 1;
    }
    if (line == 0 || (line == 1 && torn)) throw Error(file.path, 0, "is empty, expected the record of zs_probe");
    if (file.end < 0 && !torn)
      fault(file.path, line,
            "is the last line, and no end: the training did not call close(), was killed, or still runs");
    files_.push_back(std::move(file));
  }

  void one(const Json& row, std::int64_t line, RankFile& file) {
    if (line == 1) return header(row, file);
    // probe/answer.hpp compares what zs-train does not record, if both sides have it.
    if (file.sketches && (row.contains("start") || row.contains("zs_probe"))) return;
    if (row.contains("zs_probe")) return resumed(row, file);
    if (file.end >= 0) throw Error("stands behind the end of the recording");
    if (row.contains("end")) return end(row, line, file);
    if (!file.sketches) require_known(row, {"step", "computed", "loss", "targets", "tensors", "values"});
    const std::int64_t step = whole(row, "step", 1);
    const bool first = file.before > 0 && file.before == static_cast<std::int64_t>(file.lines.size());
    if (first && step <= file.lines.rbegin()->first)
      throw Error("step " + to_text(step) + " stands behind the end of the recording: it is of another training");
    if (file.lines.contains(step)) {
      fault(file.path, line, "step " + to_text(step) + " is there twice, first in line " + to_text(file.lines[step]));
      return;
    }
    if (!file.lines.empty() && step < file.lines.rbegin()->first)
      fault(file.path, line, "step " + to_text(step) + " comes after step " + to_text(file.lines.rbegin()->first));
    file.lines[step] = line;
    add_step(row, step, file);
  }

  void header(const Json& row, RankFile& file) {
    const std::int64_t version = whole(row, "zs_probe", 0);
    if (version != 1 && version != 2) throw Error("is of a version that this zs-verify does not know");
    file.sketches = version == 2;
    require_known(row,
                  {"zs_probe", "rank", "world_size", "torch", "id", "layout", "framework", "tied", "frozen", "unseen"});
    if (whole(row, "rank", 0) != file.rank)
      throw Error("is of rank " + to_text(whole(row, "rank", 0)) + ", in the file of rank " +
                  std::to_string(file.rank));
    const auto ranks = static_cast<int>(std::min<std::int64_t>(whole(row, "world_size", 1), INT32_MAX));
    if (file.rank == 0) run_.ranks = ranks;
    if (ranks != run_.ranks) throw Error("is of a training on another number of ranks");
    if (file.rank == 0) run_.torch = row.at("torch").get<std::string>();
    if (file.lines.empty() && file.end < 0)
      run_.ids.push_back(row.contains("id") ? row.at("id").get<std::string>() : "");
  }

  /// The training stopped and went on: its steps follow, and another end.
  void resumed(const Json& row, RankFile& file) {
    header(row, file);
    file.end = file.told = -1;
    file.before = static_cast<std::int64_t>(file.lines.size());
  }

  void end(const Json& row, std::int64_t line, RankFile& file) {
    require_known(row, {"end", "rank", "lines", "every", "since", "how", "unseen"});
    file.end = whole(row, "end", 0);
    if (row.contains("rank") && whole(row, "rank", 0) != file.rank)
      throw Error("is the end of rank " + to_text(whole(row, "rank", 0)));
    if (row.contains("lines")) file.told = file.before + whole(row, "lines", 0);
    if (row.contains("every") && !row.at("every").is_null()) file.every = whole(row, "every", 1);
    if (!file.lines.empty() && file.end < file.lines.rbegin()->first)
      fault(file.path, line,
            "ends after " + to_text(file.end) + " steps, behind step " + to_text(file.lines.rbegin()->first));
  }

  void add_step(const Json& line, std::int64_t step, const RankFile& file) {
    ProbedStep& into = run_.steps[step];
    if (line.contains("computed") && line.at("computed").is_string())
      into.computed = line.at("computed").get<std::string>();
    if (!file.sketches && line.contains("targets")) {
      for (const Json& count : line.at("targets")) into.targets = into.targets.value_or(0) + count.get<std::int64_t>();
    }
    if (!line.at("loss").is_null()) into.losses[file.rank] = number(line.at("loss"));
    const std::string values = line.at("values").is_null()
                                   ? ""
                                   : folder_ + "/" + fs::path(line.at("values").get<std::string>()).filename().string();
    auto& places = places_[step];
    std::set<std::string> names;
    for (const Json& row : line.at("tensors")) {
      const auto name = row.at("name").get<std::string>();
      if (file.sketches && !name.starts_with("grad/") && !name.starts_with("param/")) continue;
      if (row.contains("runs"))
        throw Error(name + " is cut along another axis than its first: it is compared with a probe of zs_probe alone");
      if (!file.sketches && row.contains("sketch")) throw Error(name + " has a sketch, which this version has not");
      require_known(row, {"name", "dtype", "of", "shape", "begin", "count", "digest", "squares", "sketch"});
      if (!names.insert(name).second) throw Error(name + " is there twice");
      Probed made;
      made.dtype = row.at("dtype").get<std::string>();
      made.of = whole(row, "of", 0);
      made.shape = row.at("shape").get<std::vector<std::int64_t>>();
      double count = 1;
      for (const std::int64_t extent : made.shape) count *= static_cast<double>(extent);
      if (count != static_cast<double>(made.of)) throw Error(name + " has another shape than its number of elements");
      const auto [place, is_new] = places.emplace(name, into.tensors.size());
      if (is_new) into.tensors.emplace_back(name, made);
      Probed& known = into.tensors[place->second].second;
      if (known.of != made.of || known.dtype != made.dtype || known.shape != made.shape)
        throw Error("step " + to_text(step) + ": " + name + " has another size, shape or type on another rank");
      add_piece(known, row, values, step, name, file);
    }
  }

  void add_piece(Probed& tensor, const Json& row, const std::string& values, std::int64_t step, const std::string& name,
                 const RankFile& file) {
    Probed::Piece piece{whole(row, "begin", 0), whole(row, "count", 0), hex(row.at("digest").get<std::string>()),
                        file.rank, values};
    const double squares = number(row.at("squares"));
    if (squares < 0) throw Error(name + " has a sum of squares below 0");
    if (piece.count == 0) {
      if (squares != 0) throw Error(name + " has a part without elements, and a sum of their squares");
      return;
    }
    ++tensor.holders;
    if (piece.count > tensor.of || piece.begin > tensor.of - piece.count)
      throw Error(name + " has a part outside of it");
    const auto next =
        std::lower_bound(tensor.pieces.begin(), tensor.pieces.end(), piece.begin,
                         [](const Probed::Piece& known, std::int64_t begin) { return known.begin < begin; });
    if (next != tensor.pieces.end() && next->begin == piece.begin &&
        next->count == piece.count) {  // another copy of it
      if (next->digest != piece.digest)
        fault(file.path, file.lines.at(step),
              "step " + to_text(step) + ": " + name + " differs between rank " + std::to_string(next->rank) +
                  " and rank " + std::to_string(file.rank));
      if (!std::isfinite(squares)) tensor.squares = squares;
      return;
    }
    const auto require_apart = [&](const Probed::Piece& known) {
      if (piece.begin < known.begin + known.count && known.begin < piece.begin + piece.count)
        throw Error(name + ": the parts of rank " + std::to_string(known.rank) + " and rank " +
                    std::to_string(file.rank) + " overlap");
    };
    if (next != tensor.pieces.end()) require_apart(*next);
    if (next != tensor.pieces.begin()) require_apart(*(next - 1));
    tensor.digest += piece.digest;
    tensor.squares += squares;
    tensor.held += piece.count;
    tensor.pieces.insert(next, std::move(piece));
  }

  /// Its own end, the same as of rank 0, and as many lines as the recorder wrote.
  void whole_file(const RankFile& file) {
    if (file.told >= 0 && file.told != static_cast<std::int64_t>(file.lines.size()))
      fault(file.path, 0,
            "has " + to_text(static_cast<std::int64_t>(file.lines.size())) + " steps of " + to_text(file.told) +
                " that were written");
    if (file.end != files_.front().end && file.end >= 0 && files_.front().end >= 0)
      fault(file.path, 0, "ends after " + to_text(file.end) + " steps, rank 0 after " + to_text(files_.front().end));
    if (file.every != files_.front().every && file.end >= 0 && files_.front().end >= 0)
      fault(file.path, 0, "has another stride than rank 0");
  }

  /// The first step that a rank lacks and another has.
  void same_steps() {
    std::map<std::int64_t, std::string> places;  // the place of each step
    for (const RankFile& file : files_) {
      for (const auto& [step, line] : file.lines) places.emplace(step, file.path + ":" + to_text(line));
    }
    for (const RankFile& file : files_) {
      for (const auto& [step, place] : places) {
        if (file.lines.contains(step)) continue;
        fault(file.path, 0, "lacks step " + to_text(step) + ", which is in " + place);
        break;
      }
    }
  }

  /// A step that some rank lacks is no step: it is a fault, and cannot be compared.
  void keep_common() {
    std::erase_if(run_.steps, [&](const auto& step) {
      return !std::all_of(files_.begin(), files_.end(),
                          [&](const RankFile& file) { return file.lines.contains(step.first); });
    });
    const bool ended = std::all_of(files_.begin(), files_.end(), [](const RankFile& file) { return file.end >= 0; });
    if (ended) run_.end = files_.front().end, run_.every = files_.front().every;
  }

  /// Step 1, each `every`-th, and what else a recorder may add: step 2, which it measures, and the last, by close().
  bool explains(std::int64_t every, std::int64_t& step) const {
    for (step = every; step <= run_.end; step += every) {
      if (step > after_ && !run_.steps.contains(step)) return false;
    }
    step = 1;
    if (run_.end > 0 && after_ == 0 && !run_.steps.contains(1)) return false;
    for (const auto& [its, held] : run_.steps) {
      step = its;
      if (its > 2 && its != run_.end && its % every != 0) return false;
    }
    return true;
  }

  /// The recorded stride must explain the steps; for an older recorder without one, the first stride that does.
  void stride() {
    if (run_.end < 0) return;
    std::int64_t step = 0;
    if (files_.front().every > 0 && !explains(run_.every, step)) {
      fault(files_.front().path, 0,
            (run_.steps.contains(step) ? "has step " : "lacks step ") + to_text(step) +
                ", where step 1 and each multiple of " + to_text(run_.every) + " up to " + to_text(run_.end) +
                " is recorded");
    }
    if (files_.front().every > 0 || run_.steps.empty()) return;
    for (run_.every = 1; run_.every <= run_.end; ++run_.every) {
      if (explains(run_.every, step)) return;
    }
    // None but the first and the last, or steps that no stride explains.
    if (!explains(run_.every, step))
      fault(files_.front().path, 0, "has steps of no stride, the first is step " + to_text(step));
  }

  void whole_tensors() {
    for (const auto& [step, held] : run_.steps) {
      for (const auto& [name, tensor] : held.tensors) {
        if (tensor.held != tensor.of)
          fault(files_.front().path, files_.front().lines.at(step),
                "step " + to_text(step) + ": of " + name + " " + to_text(tensor.held) + " of " + to_text(tensor.of) +
                    " elements are there");
      }
    }
  }

  void hold() {
    for (const auto& [step, held] : run_.steps) {
      run_.holdings.add("steps");
      if (!held.losses.empty()) run_.holdings.add("loss");
      for (const auto& [name, tensor] : held.tensors) run_.holdings.add(name);
    }
  }
};

}  // namespace

double Probed::norm() const { return std::sqrt(squares); }

bool Probed::same(const Probed& other) const {
  return dtype == other.dtype && of == other.of && shape == other.shape && held == other.held && digest == other.digest;
}

const Probed* ProbedStep::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

bool ProbedStep::has_gradients() const {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.first.starts_with("grad/"); });
}

bool ProbedRun::leaves_out(std::int64_t step) const {
  return end >= step && step > 1 && every > 1 && step % every != 0 && !steps.contains(step);
}

bool ProbedRun::is_close(std::int64_t step) const {
  const auto found = steps.find(step);
  return step == end && step > 1 && every > 1 && step % every != 0 && found != steps.end() &&
         !found->second.has_gradients();
}

std::string ProbedRun::layout() const {
  const std::string on = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  std::set<std::string> all, cut;
  for (const auto& [step, held] : steps) {
    for (const auto& [name, tensor] : held.tensors) {
      all.insert(name);
      if (tensor.pieces.size() > 1 || tensor.holders < ranks) cut.insert(name);
    }
  }
  if (cut.empty()) return "whole on " + on;
  if (cut.size() == all.size()) return "cut over " + on;
  return std::to_string(cut.size()) + " of " + std::to_string(all.size()) + " tensors cut over " + on +
         ", the others whole";
}

bool holds_probe(const std::string& folder) { return !ranks_in(folder).empty(); }

ProbedRun read_probe(const std::string& folder, std::int64_t after) { return Reader(folder, after).run(); }

}  // namespace zs::compare
