// SPDX-License-Identifier: Apache-2.0
#include "probe/record.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/base64.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

namespace zs::probe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string path_of(const std::string& folder, int rank) { return folder + "/rank-" + std::to_string(rank) + ".jsonl"; }

/// A number; what is not finite is a text.
double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? parse_real(value.get<std::string>()).value_or(std::nan("")) : std::nan("");
}

std::uint64_t hex(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error("a digest has 16 hexadecimal digits");
  return std::stoull(text, nullptr, 16);
}

/// Little-endian float64 in base64.
Sketch sketch(const std::string& text) {
  static_assert(std::endian::native == std::endian::little);
  const std::string bytes = from_base64(text);
  if (bytes.empty() || bytes.size() % 64 != 0 || bytes.size() > 16 * 64)
    throw Error("a sketch has 8 numbers for each of at most 16 ranges");
  Sketch numbers(bytes.size() / 8);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// The content of a file from that byte on.
std::string read_from(const std::string& path, std::uintmax_t at) {
  if (at == 0) return Input(path).read_all();
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file) throw Error(path, 0, "cannot be read any more");
  return content;
}

/// A name, PLACE/PARAMETER or a parameter's, without the module that its parameter begins with.
std::string without(const std::string& name, const std::string& prefix) {
  const std::size_t slash = name.find('/');
  const std::size_t at = slash == std::string::npos ? 0 : slash + 1;
  return prefix.empty() || name.compare(at, prefix.size(), prefix) != 0
             ? name
             : name.substr(0, at) + name.substr(at + prefix.size());
}

}  // namespace

class Growing::Reader {
 public:
  explicit Reader(const std::string& folder, std::int64_t after = 0) : folder_(folder), after_(after) {}

  Run read() {
    grow();
    begin_after();
    return std::move(run_);
  }

  /// Reads what was added to the ranks' files. A step counts when all ranks have it.
  Run& grow() {
    run_.ranks = file(0);
    if (run_.ranks < 1 || run_.ranks > 1 << 20) throw Error(path_of(folder_, 0), 1, "has no number of ranks");
    for (int rank = 1; rank < run_.ranks; ++rank) {
      if (file(rank) != run_.ranks)
        throw Error(path_of(folder_, rank), 1, "is of a training on another number of ranks");
    }
    for (auto step = waiting_.begin(); step != waiting_.end();) {
      if (seen_[step->first] == run_.ranks) {
        for (const auto& [name, tensor] : step->second.tensors.all()) whole(step->first, name, tensor);
        run_.steps.insert(waiting_.extract(step++));
      } else {
        ++step;
      }
    }
    return run_;
  }

 private:
  /// The result of the last skipped step is the start of the following ones.
  void begin_after() {
    if (after_ == 0) return;
    if (const auto last = run_.steps.find(after_); last != run_.steps.end())
      run_.starts.try_emplace(after_, std::move(last->second.tensors));
    std::erase_if(run_.steps, [&](const auto& step) { return step.first <= after_; });
    std::erase_if(run_.starts, [&](const auto& start) { return start.first < after_; });
  }

  void whole(std::int64_t step, const std::string& name, const Tensor& tensor) {
    if (!tensor.whole())
      run_.faults.push_back("step " + to_text(step) + ": of " + name + " " + to_text(tensor.held) + " of " +
                            to_text(tensor.of) + " elements are there");
  }

  /// A rank's file, as far as it was read.
  struct File {
    std::uintmax_t at = 0;  ///< bytes
    std::int64_t line = 0;
    int ranks = 0;
    std::set<std::int64_t> steps;
    std::string damage;
  };

  int file(int rank) {
    const std::string path = path_of(folder_, rank);
    File& known = files_[rank];
    const std::string content = read_from(path, known.at);
    for (std::size_t at = 0; at < content.size() && known.damage.empty();) {
      const std::size_t end = content.find('\n', at);
      if (end == std::string::npos) break;  // cut: the training was killed within it, or still writes it
      ++known.line;
      try {
        row(Json::parse(std::string_view(content).substr(at, end - at)), rank, known);
      } catch (const Json::exception&) {
        known.damage = "is no line of zs_probe";
      } catch (const Error& error) {
        known.damage = error.what();
      }
      known.at += end + 1 - at;
      at = end + 1;
    }
    if (!known.damage.empty()) throw Error(path, known.line, known.damage);
    if (known.line == 0) throw Error(path, 0, "is empty, expected the record of zs_probe");
    return known.ranks;
  }

  void row(const Json& row, int rank, File& known) {
    if (known.line == 1 && !row.contains("zs_probe")) throw Error("is not the first line of zs_probe");
    if (row.contains("zs_probe")) {
      known.ranks = head(row);
    } else if (row.contains("end")) {
      run_.end = row.at("end").get<std::int64_t>();
      ++run_.ends;
    } else if (row.contains("start")) {
      const auto done = row.at("start").get<std::int64_t>();
      if (row.contains("counted") && row.at("counted").is_number_integer())
        run_.counted[done] = row.at("counted").get<std::int64_t>();
      for (const Json& tensor : row.at("tensors")) add(run_.starts[done], tensor, rank, "", "start");
    } else {
      const auto step = row.at("step").get<std::int64_t>();
      if (!known.steps.insert(step).second) throw Error("a step stands twice");
      add_step(step, row, rank);
      ++seen_[step];
    }
  }

  int head(const Json& row) {
    if (row.at("zs_probe").get<int>() != 2) throw Error("is of a version that this zs-verify does not know");
    run_.torch = row.at("torch").get<std::string>();
    if (run_.id.empty()) run_.id = row.value("id", "");
    run_.layout = row.value("layout", "");
    run_.framework = row.value("framework", "");
    if (row.contains("tied")) run_.ties = row.at("tied").get<std::map<std::string, std::vector<std::string>>>();
    if (row.contains("frozen")) run_.frozen = row.at("frozen").get<std::set<std::string>>();
    if (row.contains("unseen")) run_.unseen = row.at("unseen").get<std::vector<std::string>>();
    return row.at("world_size").get<int>();
  }

  void add_step(std::int64_t number_of, const Json& row, int rank) {
    Step& step = waiting_[number_of];
    if (!row.at("loss").is_null()) step.losses[rank] = number(row.at("loss"));
    const std::string values = row.at("values").is_null()
                                   ? ""
                                   : folder_ + "/" + fs::path(row.at("values").get<std::string>()).filename().string();
    const std::string what = "step " + to_text(number_of);
    current_ = number_of;
    for (const Json& tensor : row.at("tensors")) add(step.tensors, tensor, rank, values, what);
    current_ = -1;
    for (const Json& local : row.value("locals", Json::array())) {
      const int by = local.at("by").get<int>(), micro = local.at("micro").get<int>();
      Contribution& into = step.locals[{by, micro}];
      into.by = by, into.micro = micro;
      add(into.tensors, local, rank, "", what + ", micro-batch " + std::to_string(micro));
    }
    for (const Json& output : row.value("outputs", Json::array())) add_output(step.outputs, output, rank, what);
    if (row.contains("computed") && row.at("computed").is_string())
      step.computed = row.at("computed").get<std::string>();
    step.batch[rank] = row.value("batch", std::vector<std::vector<std::string>>());
    for (const Json& count : row.value("targets", Json::array()))
      step.targets[rank].push_back(count.is_null() ? std::nullopt : std::optional(count.get<std::int64_t>()));
    step.generators[rank] = row.value("rng", std::map<std::string, std::string>());
    const Json scalars = row.value("scalars", Json::object());
    if (scalars.contains("norm_squares"))  // a norm whose ranks have a share each
      step.scalars["norm"] = std::hypot(step.scalars["norm"], std::sqrt(number(scalars.at("norm_squares"))));
    if (rank != 0) return;
    for (const auto& [key, value] : scalars.items()) {
      if (key != "norm_squares") step.scalars[key] = number(value);
    }
    for (const Json& group : row.value("groups", Json::array())) {
      if (group.contains("lr")) step.rates.push_back(number(group.at("lr")));
      auto& options = step.groups.emplace_back();
      for (const auto& [key, value] : group.items()) {
        if (value.is_number()) options[key] = {number(value)};
        if (value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_number(); }))
          for (const Json& one : value) options[key].push_back(number(one));
      }
    }
  }

  /// For one sample: several ranks hold the same, or parts that only they can join.
  void add_output(Tensors& into, const Json& row, int rank, const std::string& where) {
    const auto module = row.at("name").get<std::string>();
    const std::string name = module + "/" + row.at("sample").get<std::string>();
    Tensors one;
    add(one, row, rank, "", where + ": output of");
    const Tensor& made = one.all().front().second;
    const Tensor* const known = into.find(name);
    if (!known)
      into.at(name) = made;
    else if (!known->same(made) || known->pieces.empty() || known->pieces.front().rank == rank)
      run_.parted.insert(module);
  }

  void add(Tensors& into, const Json& row, int rank, const std::string& values, const std::string& where) {
    const std::string name = without(row.at("name").get<std::string>(), run_.prefix);
    const std::string what = where + ": " + name;
    Tensor& tensor = into.at(name);
    const auto of = row.at("of").get<std::int64_t>();
    const auto dtype = row.at("dtype").get<std::string>();
    if (tensor.dtype.empty()) {
      tensor.dtype = dtype;
      tensor.of = of;
      tensor.shape = row.at("shape").get<std::vector<std::int64_t>>();
    }
    if (tensor.of != of || tensor.dtype != dtype) throw Error(what + " has another size or type on another rank");
    Tensor::Piece piece{"",
                        row.at("begin").get<std::int64_t>(),
                        row.at("count").get<std::int64_t>(),
                        !row.contains("runs"),
                        hex(row.at("digest").get<std::string>()),
                        rank,
                        values};
    const Sketch numbers = sketch(row.at("sketch").get<std::string>());
    if (tensor.sketch.empty()) tensor.sketch.assign(numbers.size(), 0);
    if (tensor.sketch.size() != numbers.size()) throw Error(what + " has a sketch of another size on another rank");
    if (piece.count == 0) return;
    if (piece.begin < 0 || piece.count < 0 || piece.count > of || piece.begin > of - piece.count)
      if (piece.contiguous || piece.begin < 0 || piece.count < 0 || piece.count > of)
        throw Error(what + " has a part outside of it");
    piece.key = piece.contiguous ? to_text(piece.begin) + "+" + to_text(piece.count) : row.at("runs").dump();
    for (const Tensor::Piece& known : tensor.pieces) {
      if (known.key == piece.key) {  // another copy of it
        if (known.digest != piece.digest && current_ >= 0) run_.replicas[{current_, name}] = {known.rank, rank};
        if (known.digest != piece.digest)
          run_.faults.push_back(what + " differs between rank " + std::to_string(known.rank) + " and rank " +
                                std::to_string(rank));
        return;
      }
      if (known.contiguous && piece.contiguous && piece.begin < known.begin + known.count &&
          known.begin < piece.begin + piece.count)
        throw Error(what + ": the parts of rank " + std::to_string(known.rank) + " and rank " + std::to_string(rank) +
                    " overlap");
    }
    tensor.digest += piece.digest;
    tensor.squares += number(row.at("squares"));
    for (std::size_t i = 0; i < numbers.size(); ++i) tensor.sketch[i] += numbers[i];
    tensor.held += piece.count;
    if (tensor.held > tensor.of) throw Error(what + ": its parts overlap");
    tensor.pieces.push_back(std::move(piece));
  }

  std::string folder_;
  std::int64_t after_;
  Run run_;
  std::map<int, File> files_;
  std::map<std::int64_t, Step> waiting_;  // for the other ranks
  std::map<std::int64_t, int> seen_;
  std::int64_t current_ = -1;  // step
};

bool Tensor::same(const Tensor& other) const {
  return dtype == other.dtype && of == other.of && held == other.held && digest == other.digest;
}

Tensor& Tensors::at(const std::string& name) {
  const auto [place, added] = index_.try_emplace(name, held_.size());
  if (added) held_.emplace_back(name, Tensor());
  return held_[place->second].second;
}

const Tensor* Tensors::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &held_[found->second].second;
}

void Tensors::strip(const std::string& prefix) {
  index_.clear();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    std::string& name = held_[i].first;
    name = without(name, prefix);
    index_[name] = i;
  }
}

namespace {

std::set<std::string> parameters(const Run& run) {
  std::set<std::string> names;
  if (run.steps.empty()) return names;
  for (const auto& [name, tensor] : run.steps.begin()->second.tensors.all()) {
    if (name.starts_with("param/")) names.insert(name.substr(6));
  }
  return names;
}

/// The modules that all names begin with: "net.", "module.net.".
std::string common_prefix(const std::set<std::string>& names) {
  if (names.empty()) return "";
  std::string prefix = *names.begin();
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < std::min(prefix.size(), name.size()) && prefix[same] == name[same]) ++same;
    prefix.resize(same);
  }
  return prefix.substr(0, prefix.rfind('.') + 1);
}

void strip(Run& run, const std::string& prefix) {
  run.prefix = prefix;
  for (auto& [number, step] : run.steps) {
    step.tensors.strip(prefix);
    for (auto& [key, local] : step.locals) local.tensors.strip(prefix);
  }
  for (auto& [number, tensors] : run.starts) tensors.strip(prefix);
  const auto without = [&](const std::string& name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  };
  std::set<std::string> frozen;
  for (const std::string& name : run.frozen) frozen.insert(without(name));
  std::map<std::string, std::vector<std::string>> ties;
  for (auto& [name, others] : run.ties) {
    for (std::string& other : others) other = without(other);
    ties[without(name)] = others;
  }
  decltype(run.replicas) replicas;
  for (const auto& [key, ranks] : run.replicas) {
    const std::size_t at = key.second.find('/') + 1;
    replicas[{key.first, key.second.substr(0, at) + without(key.second.substr(at))}] = ranks;
  }
  run.frozen = frozen, run.ties = ties, run.replicas = replicas;
}

}  // namespace

void align(Run& a, Run& b) {
  const auto left = parameters(a), right = parameters(b);
  if (std::any_of(left.begin(), left.end(), [&](const std::string& name) { return right.contains(name); })) return;
  for (const auto& [run, mine, theirs] : {std::tuple{&a, &left, &right}, {&b, &right, &left}}) {
    const std::string prefix = common_prefix(*mine);
    if (prefix.empty()) continue;
    if (std::any_of(mine->begin(), mine->end(),
                    [&](const std::string& name) { return theirs->contains(name.substr(prefix.size())); }))
      return strip(*run, prefix);
  }
}

int version(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored) || !fs::is_regular_file(path_of(folder, 0), ignored)) return 0;
  Input file(path_of(folder, 0));
  std::array<char, 256> start{};
  const std::string_view text(start.data(), file.read(start.data(), start.size()));
  static constexpr std::string_view kKey = "{\"zs_probe\": ";
  return text.starts_with(kKey) && text.size() > kKey.size() && text[kKey.size()] == '2' ? 2 : 1;
}

Run read(const std::string& folder, std::int64_t after) { return Growing::Reader(folder, after).read(); }

Growing::Growing(const std::string& folder) : reader_(std::make_unique<Reader>(folder)) {}
Growing::~Growing() = default;
Run& Growing::read() { return reader_->grow(); }

}  // namespace zs::probe
