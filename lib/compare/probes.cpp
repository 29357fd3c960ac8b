// SPDX-License-Identifier: Apache-2.0
#include "compare/probes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::compare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string path_of(const std::string& folder, int rank) { return folder + "/rank-" + std::to_string(rank) + ".jsonl"; }

/// A number that may be NaN or Infinity, which Python writes bare and which stand as texts here.
double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? parse_real(value.get<std::string>()).value_or(std::nan("")) : std::nan("");
}

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

void add_piece(Probed& tensor, const Json& row, int rank, const std::string& values, const std::string& what,
               ProbedRun& run) {
  Probed::Piece piece{row.at("begin").get<std::int64_t>(), row.at("count").get<std::int64_t>(),
                      hex(row.at("digest").get<std::string>()), rank, values};
  if (piece.count == 0) return;
  if (piece.begin < 0 || piece.count < 0 || piece.count > tensor.of || piece.begin > tensor.of - piece.count)
    throw Error(what + " has a part outside of it");
  for (const Probed::Piece& known : tensor.pieces) {
    if (known.begin == piece.begin && known.count == piece.count) {  // another copy of it
      if (known.digest != piece.digest)
        run.faults.push_back(what + " differs between rank " + std::to_string(known.rank) + " and rank " +
                             std::to_string(rank));
      return;
    }
    if (piece.begin < known.begin + known.count && known.begin < piece.begin + piece.count)
      throw Error(what + ": the parts of rank " + std::to_string(known.rank) + " and rank " + std::to_string(rank) +
                  " overlap");
  }
  tensor.digest += piece.digest;
  tensor.squares += number(row.at("squares"));
  tensor.held += piece.count;
  tensor.pieces.push_back(std::move(piece));
}

void add_step(const Json& line, int rank, const std::string& folder, ProbedRun& run) {
  const auto step = line.at("step").get<std::int64_t>();
  ProbedStep& into = run.steps[step];
  if (!line.at("loss").is_null()) into.losses[rank] = number(line.at("loss"));
  const std::string values = line.at("values").is_null()
                                 ? ""
                                 : folder + "/" + fs::path(line.at("values").get<std::string>()).filename().string();
  for (const Json& row : line.at("tensors")) {
    const auto name = row.at("name").get<std::string>();
    const std::string what = "step " + to_text(step) + ": " + name;
    auto known = std::find_if(into.tensors.begin(), into.tensors.end(), [&](const auto& t) { return t.first == name; });
    if (known == into.tensors.end()) {
      Probed made;
      made.dtype = row.at("dtype").get<std::string>();
      made.of = row.at("of").get<std::int64_t>();
      made.shape = row.at("shape").get<std::vector<std::int64_t>>();
      known = into.tensors.insert(into.tensors.end(), {name, std::move(made)});
    }
    if (known->second.of != row.at("of").get<std::int64_t>() ||
        known->second.dtype != row.at("dtype").get<std::string>())
      throw Error(what + " has another size or type on another rank");
    add_piece(known->second, row, rank, values, what, run);
  }
}

/// The first line of a rank's file: how many ranks there are.
int read_rank(const std::string& folder, int rank, ProbedRun& run, std::set<std::int64_t>& steps) {
  const std::string path = path_of(folder, rank);
  const std::string content = Input(path).read_all();
  std::int64_t line = 0;
  int ranks = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = content.find('\n', at);
    if (end == std::string::npos) break;  // cut: the training was killed within it
    ++line;
    try {
      const Json row = Json::parse(quoted_words(std::string_view(content).substr(at, end - at)));
      if (line == 1) {
        if (row.at("zs_probe").get<int>() != 1) throw Error("is of a version that this zs-verify does not know");
        ranks = row.at("world_size").get<int>();
        run.torch = row.at("torch").get<std::string>();
      } else if (row.contains("end")) {
        run.end = row.at("end").get<std::int64_t>();
      } else {
        add_step(row, rank, folder, run);
        if (!steps.insert(row.at("step").get<std::int64_t>()).second) throw Error("a step stands twice");
      }
    } catch (const Json::exception&) {
      throw Error(path, line, "is no line of zs_probe.py");
    } catch (const Error& error) {
      throw Error(path, line, error.what());
    }
    at = end + 1;
  }
  if (line == 0) throw Error(path, 0, "is empty, expected the record of zs_probe.py");
  return ranks;
}

std::vector<Part> parts_of(const Probed& tensor, const std::string& name) {
  std::vector<Part> parts;
  for (const Probed::Piece& piece : tensor.pieces) {
    if (piece.values.empty() || !fs::exists(piece.values)) return {};
    for (auto& [held, value] : tensorfile::read_safetensors(piece.values).tensors) {
      if (held == name) parts.push_back({name, piece.begin, std::move(value)});
    }
  }
  return parts;
}

/// What another order of the same sums may come to, relative to the norm, for a type's digits.
double rounding(const std::string& dtype) {
  const double epsilon = dtype == "BF16" ? 0x1p-8 : dtype == "F16" ? 0x1p-11 : dtype == "F64" ? 0x1p-53 : 0x1p-24;
  return 256 * epsilon;
}

std::string place_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= std::max<std::int64_t>(1, shape[i]))
    at[i] = index % std::max<std::int64_t>(1, shape[i]);
  return tensorfile::to_text(at);
}

/// Whether the bytes that both hold are the same.
bool same(const Probed& a, const Probed& b) {
  return a.dtype == b.dtype && a.of == b.of && a.held == b.held && a.digest == b.digest;
}

bool has_gradients(const ProbedStep& step) {
  return std::any_of(step.tensors.begin(), step.tensors.end(),
                     [](const auto& t) { return t.first.starts_with("grad/"); });
}

class Comparison {
 public:
  Comparison(const std::string& a, const std::string& b, const Tolerance& tolerance)
      : name_a_(a), name_b_(b), a_(read_probe(a)), b_(read_probe(b)), tolerance_(tolerance) {}

  ProbeAnswer run() {
    for (const auto& [step, left] : a_.steps) {
      const auto right = b_.steps.find(step);
      if (right == b_.steps.end()) {
        ++alone_;
        continue;
      }
      ++steps_;
      one_step(step, left, right->second);
    }
    alone_ += static_cast<std::int64_t>(b_.steps.size()) - steps_;
    return answer();
  }

 private:
  void add(const std::string& key, const std::string& value) { lines_.emplace_back(key, value); }

  void one_step(std::int64_t step, const ProbedStep& left, const ProbedStep& right) {
    const bool began = differing_ > 0 || losses_ > 0;
    std::vector<std::string> gradients;  // that differ, in the order of forward
    const auto find = [](const ProbedStep& in, const std::string& name) {
      const auto found =
          std::find_if(in.tensors.begin(), in.tensors.end(), [&](const auto& t) { return t.first == name; });
      return found == in.tensors.end() ? nullptr : &found->second;
    };
    for (const auto& [rank, loss] : left.losses) {  // of other ranks than B's it is of other samples
      const auto other = right.losses.find(rank);
      if (a_.ranks != b_.ranks || other == right.losses.end()) continue;
      if (std::bit_cast<std::uint64_t>(loss) == std::bit_cast<std::uint64_t>(other->second)) continue;
      if (losses_++ == 0)
        loss_ = "step " + to_text(step) + ", rank " + std::to_string(rank) + ": " + to_text(loss) + " and " +
                to_text(other->second);
      if (!tolerance_.accepts(loss, other->second)) refused_ = true;
    }
    for (const auto& [name, tensor] : left.tensors) {
      const Probed* const other = find(right, name);
      if (!other && name.starts_with("grad/") && !has_gradients(right)) continue;  // the end of a coarse stride
      if (!other) {
        missing_.insert(name + " is missing in " + name_b_);
        continue;
      }
      ++tensors_;
      elements_ += tensor.held;
      if (!std::isfinite(tensor.squares) && !std::isfinite(other->squares))
        wild_.insert("step " + to_text(step) + ": " + name);
      if (same(tensor, *other)) continue;
      ++differing_;
      if (name.starts_with("grad/")) gradients.push_back(name.substr(5));
      if (first_.empty()) tell_first(step, name, tensor, *other);
      judge(step, name, tensor, *other);
    }
    for (const auto& [name, tensor] : right.tensors) {
      if (name.starts_with("grad/") && !has_gradients(left)) continue;
      if (!find(left, name)) missing_.insert(name + " is missing in " + name_a_);
    }
    if (began || (differing_ == 0 && losses_ == 0)) return;
    add("stage", losses_ > 0 ? "forward" : gradients.empty() ? "optimizer" : "backward, or the reduction of gradients");
    // Backward goes from the last unit to the first, and takes a difference with it.
    if (losses_ == 0 && gradients.size() > 1)
      add("backward",
          "came to " + gradients.back() + " first, of " + std::to_string(gradients.size()) + " gradients that differ");
  }

  void tell_first(std::int64_t step, const std::string& name, const Probed& a, const Probed& b) {
    first_ = name;
    add("step", to_text(step));
    add("what", name.starts_with("grad/") ? "gradient" : "parameter");
    add("parameter", name.substr(name.find('/') + 1));
    if (a.dtype != b.dtype || a.of != b.of) {
      add("tensors", name + " has " + to_text(a.of) + " elements of " + a.dtype + " in A, " + to_text(b.of) + " of " +
                         b.dtype + " in B");
      return;
    }
    add("norm_a", to_text(a.norm()));
    add("norm_b", to_text(b.norm()));
    const std::vector<Part> left = parts_of(a, name), right = parts_of(b, name);
    if (left.empty() || right.empty()) {
      add("element", "not known: zs_probe kept no values of this step on both sides (values=True)");
      return;
    }
    const Tensors found = parts(left, right, name_a_, name_b_, {});
    if (!found.first) return;
    add("index", to_text(found.first->index));
    add("place", place_text(found.first->index, a.shape));
    add("value_a", found.first->a);
    add("value_a_hex", found.first->a_hex);
    add("value_b", found.first->b);
    add("value_b_hex", found.first->b_hex);
    add("elements", to_text(found.differing) + " of " + to_text(found.elements) + " differ, at most by " +
                        ulp_text(found.largest.ulp) + " ulp");
  }

  /// Whether a tensor that differs does so within the tolerance, and whether it looks like rounding.
  void judge(std::int64_t step, const std::string& name, const Probed& a, const Probed& b) {
    if (a.dtype != b.dtype || a.of != b.of) {
      refused_ = true;
      return;
    }
    const double apart = std::fabs(a.norm() - b.norm()) / std::max({a.norm(), b.norm(), 1e-300});
    if (!(apart <= rounding(a.dtype)) && beyond_.empty())
      beyond_ = "step " + to_text(step) + ", " + name + ": the norms are " + to_rounded_text(a.norm(), 6) + " and " +
                to_rounded_text(b.norm(), 6);
    if (tolerance_.exact() || refused_) return;
    const std::vector<Part> left = parts_of(a, name), right = parts_of(b, name);
    if (left.empty() || right.empty()) {
      unseen_ = true;
      if (!tolerance_.accepts(a.norm(), b.norm())) refused_ = true;
      return;
    }
    refused_ = parts(left, right, name_a_, name_b_, tolerance_).refused > 0;
  }

  ProbeAnswer answer() {
    Verdict verdict = Verdict::exact;
    // Steps that only one has recorded then lie between those of the other.
    const bool both_ended = a_.end >= 0 && a_.end == b_.end;
    if (differing_ > 0 || losses_ > 0)
      verdict = tolerance_.exact() || refused_ ? Verdict::different : unseen_ ? Verdict::inconclusive : Verdict::within;
    else if (!missing_.empty() || (alone_ > 0 && !both_ended))
      verdict = Verdict::inconclusive;
    std::vector<std::string> faults;
    for (const auto& [name, run] : {std::pair{&name_a_, &a_}, {&name_b_, &b_}}) {
      for (const std::string& fault : run->faults) faults.push_back(*name + ": " + fault);
    }
    if (tensors_ == 0 || !faults.empty() || !wild_.empty()) verdict = std::max(verdict, Verdict::failed);
    ProbeAnswer answer{verdict, {{"verdict", std::string(name(verdict))}}};
    const auto add = [&](const std::string& key, const std::string& value) { answer.lines.emplace_back(key, value); };
    const auto some = [](const auto& texts) {
      std::string text;
      std::size_t told = 0;
      for (const std::string& one : texts) {
        if (++told <= 5) text += (text.empty() ? "" : "; ") + one;
      }
      return told > 5 ? text + "; and " + std::to_string(told - 5) + " more" : text;
    };
    answer.lines.insert(answer.lines.end(), lines_.begin(), lines_.end());
    if (differing_ > 0)
      add("kind", beyond_.empty()
                      ? "rounding: every norm agrees as well as another order of the same sums would leave it"
                      : "more than rounding: " + beyond_);
    if (losses_ > 0) add("loss", loss_);
    if (tensors_ == 0) add("failure", "nothing in common: no tensor of any step that both have");
    if (!faults.empty()) add("failure", some(faults));
    if (!wild_.empty()) add("not finite", some(wild_));
    if (unseen_) add("note", "the tolerance was tried on norms alone where no values were kept");
    if (!missing_.empty()) add("missing", some(missing_));
    if (alone_ > 0) add("steps_alone", to_text(alone_));
    add("steps_compared", to_text(steps_));
    add("tensors_compared", to_text(tensors_));
    add("elements_compared", to_text(elements_));
    add("tensors_differing", to_text(differing_));
    add("ranks_a", std::to_string(a_.ranks));
    add("ranks_b", std::to_string(b_.ranks));
    if (a_.torch != b_.torch) add("torch", a_.torch + " in A, " + b_.torch + " in B: other bits are expected");
    return answer;
  }

  std::string name_a_, name_b_;
  ProbedRun a_, b_;
  Tolerance tolerance_;
  std::vector<std::pair<std::string, std::string>> lines_;
  std::string first_, beyond_, loss_;
  std::set<std::string> missing_, wild_;
  std::int64_t steps_ = 0, alone_ = 0, losses_ = 0, tensors_ = 0, elements_ = 0, differing_ = 0;
  bool refused_ = false, unseen_ = false;
};

}  // namespace

double Probed::norm() const { return std::sqrt(squares); }

bool holds_probe(const std::string& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && fs::is_regular_file(path_of(folder, 0), ignored);
}

ProbedRun read_probe(const std::string& folder) {
  ProbedRun run;
  std::vector<std::set<std::int64_t>> steps(1);
  run.ranks = read_rank(folder, 0, run, steps[0]);
  if (run.ranks < 1 || run.ranks > 1 << 20) throw Error(path_of(folder, 0), 1, "has no number of ranks");
  for (int rank = 1; rank < run.ranks; ++rank) {
    if (read_rank(folder, rank, run, steps.emplace_back()) != run.ranks)
      throw Error(path_of(folder, rank), 1, "is of a training on another number of ranks");
  }
  // A killed training may have a last step on some ranks only: it is no step.
  std::erase_if(run.steps, [&](const auto& step) {
    return !std::all_of(steps.begin(), steps.end(), [&](const auto& of_rank) { return of_rank.contains(step.first); });
  });
  for (const auto& [step, held] : run.steps) {
    for (const auto& [name, tensor] : held.tensors) {
      if (tensor.held != tensor.of)
        run.faults.push_back("step " + to_text(step) + ": of " + name + " " + to_text(tensor.held) + " of " +
                             to_text(tensor.of) + " elements are there");
    }
  }
  return run;
}

ProbeAnswer compare_probes(const std::string& a, const std::string& b, const Tolerance& tolerance) {
  return Comparison(a, b, tolerance).run();
}

}  // namespace zs::compare
