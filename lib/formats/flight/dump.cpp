// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "flight/dump.hpp"
#include "tensorfile/pickle.hpp"

namespace zs::flight {
namespace {

namespace fs = std::filesystem;
using tensorfile::Value;

/// JSON as the value that the same dump's pickle has.
Value value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    tensorfile::List list;
    for (const auto& each : json) list.values.push_back(value_of(each));
    return list;
  }
  if (!json.is_object()) return {};
  tensorfile::Dict dict;
  for (const auto& [key, each] : json.items()) dict.items.push_back({key, value_of(each)});
  return dict;
}

const std::vector<Value>& list_of(const Value* value) {
  static const std::vector<Value> kNone;
  if (const auto* const list = value ? value->get<tensorfile::List>() : nullptr) return list->values;
  if (const auto* const tuple = value ? value->get<tensorfile::Tuple>() : nullptr) return tuple->values;
  return kNone;
}

std::string text_of(const Value* value) {
  if (!value) return "";
  if (const auto* const text = value->get<std::string>()) return *text;
  if (const auto* const number = value->get<std::int64_t>()) return to_text(*number);
  const std::string text = joined(list_of(value), ", ", [](const Value& each) { return text_of(&each); });
  return value->get<tensorfile::List>() || value->get<tensorfile::Tuple>() ? "[" + text + "]" : text;
}

/// "[[1024]]" of one tensor as "[1024]".
std::string of_one(const Value* value) {
  const auto& sizes = list_of(value);
  return sizes.size() == 1 ? text_of(&sizes[0]) : text_of(value);
}

std::int64_t integer(const Value& entry, const char* key) {
  const Value* const value = entry.find(key);
  const auto* const number = value ? value->get<std::int64_t>() : nullptr;
  return number ? *number : -1;
}

/// The innermost line that is the training's own.
std::string place_of(const Value* frames) {
  for (const Value& frame : list_of(frames)) {
    const std::string file = text_of(frame.find("filename"));
    if (file.find("site-packages/") != std::string::npos || file.find("/torch/") != std::string::npos) continue;
    const std::string function = text_of(frame.find("name"));
    return fs::path(file).filename().string() + ":" + text_of(frame.find("line")) +
           (function.empty() || function == "<module>" ? "" : " in " + function);
  }
  return "";
}

void add(const Value& entry, Dump& dump) {
  const Value* const p2p = entry.find("is_p2p");
  if (const bool* const alone = p2p ? p2p->get<bool>() : nullptr; alone && *alone) return;
  const auto& group = list_of(entry.find("process_group"));
  std::string name = group.size() > 1 ? text_of(&group[1]) : "";
  if (name.empty() || name == "undefined") name = group.empty() ? text_of(entry.find("pg_id")) : text_of(&group[0]);
  Collective one;
  one.number = integer(entry, "collective_seq_id");
  one.name = text_of(entry.find("profiling_name"));
  one.name = one.name.substr(one.name.find(':') + 1);
  one.sizes = of_one(entry.find("input_sizes"));
  one.types = of_one(entry.find("input_dtypes"));
  one.place = place_of(entry.find("frames"));
  one.completed = text_of(entry.find("state")) == "completed";
  dump.collectives[name][one.number] = std::move(one);
}

/// The number at the end of a file name; -1 if there is none.
int rank_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return static_cast<int>(digits < name.size() && name.size() - digits < 9 ? parse_int(name.substr(digits)).value_or(-1)
                                                                           : -1);
}

/// "rank 1", "ranks 0, 2 and 3".
std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + with_and(ranks, [](int rank) { return std::to_string(rank); });
}

std::string at(const Collective& one) { return one.place.empty() ? "" : " at " + one.place; }
std::string called(const Collective& one) { return one.name + " of " + one.sizes + " " + one.types; }

/// Each rank gives and gets as much as the others.
bool is_even(const std::string& name) {
  return name.find("all_to_all") == std::string::npos && name.find("coalesced") == std::string::npos &&
         name != "gather" && name != "scatter";
}

/// One group's collectives, by rank.
struct Group {
  std::string name;
  std::vector<int> ranks;
  std::vector<const std::map<std::int64_t, Collective>*> collectives;  ///< nullptr: the rank left no dump
};

/// The last collective of a rank that did not arrive.
std::string last_of(const std::map<std::int64_t, Collective>& collectives) {
  if (collectives.empty()) return "it has entered none";
  const Collective& last = collectives.rbegin()->second;
  return "its last is collective " + to_text(last.number) + ", " + last.name + at(last);
}

Finding explain(const Group& group, std::int64_t number) {
  std::vector<int> present, missing, silent;
  std::vector<const Collective*> found;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (!group.collectives[i]) {
      silent.push_back(group.ranks[i]);
      continue;
    }
    const auto entered = group.collectives[i]->find(number);
    if (entered == group.collectives[i]->end()) {
      missing.push_back(group.ranks[i]);
    } else {
      present.push_back(group.ranks[i]);
      found.push_back(&entered->second);
    }
  }
  if (present.empty()) return {};
  const Collective& first = *found[0];
  const std::string what = "collective " + to_text(number) + " of " + group.name;
  for (std::size_t i = 1; i < found.size(); ++i) {
    const Collective& other = *found[i];
    const std::string who = ranks_text({present[0]}), others = ranks_text({present[i]});
    if (other.name != first.name)
      return {true, what + " is " + first.name + at(first) + " on " + who + ", and " + other.name + at(other) + " on " +
                        others};
    if (is_even(first.name) && (other.sizes != first.sizes || other.types != first.types))
      return {true, what + ", " + first.name + ", is of " + first.sizes + " " + first.types + at(first) + " on " + who +
                        ", and of " + other.sizes + " " + other.types + at(other) + " on " + others};
  }
  const bool done = std::ranges::all_of(found, [](const Collective* one) { return one->completed; });
  if (done) return {};
  const std::string waiting = ranks_text(present) + (present.size() == 1 ? " waits" : " wait");
  if (!missing.empty()) {
    std::string where;
    if (missing.size() == 1) {
      const auto it = std::ranges::find(group.ranks, missing[0]);
      where = ": " + last_of(*group.collectives[static_cast<std::size_t>(it - group.ranks.begin())]);
    }
    return {true, ranks_text(missing) + " did not enter " + what + ", " + called(first) + ", in which " + waiting +
                      at(first) + where};
  }
  if (!silent.empty())
    return {true,
            ranks_text(silent) + " left no dump, and " + waiting + " in " + what + ", " + called(first) + at(first)};
  std::vector<int> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i]->completed) out.push_back(present[i]);
  }
  return {true, "every rank present " + what + ", " + called(first) + at(first) + ", and " +
                    (out.empty() ? "none" : "only " + ranks_text(out)) +
                    " completed it: a link, a GPU or what ran before it"};
}

}  // namespace

Dump read_dump(const std::string& path) {
  const std::string bytes = Input(path).read_all();
  Value root;
  if (bytes.starts_with("{")) {
    const auto json = nlohmann::json::parse(bytes, nullptr, false);
    if (json.is_discarded()) throw Error(path, 0, "is not JSON: is it cut?");
    root = value_of(json);
  } else {
    root = tensorfile::unpickle(bytes, path, [&](const std::string&) -> tensorfile::StoragePtr {
      throw Error(path, 0, "holds tensors: is it a dump of the Flight Recorder?");
    });
  }
  const Value* const entries = root.find("entries");
  const Value* const groups = root.find("pg_config");
  if (!entries && !groups) throw Error(path, 0, "is not a dump of the Flight Recorder: it has no entries");
  Dump dump;
  dump.rank = rank_of(path);
  if (dump.rank < 0) throw Error(path, 0, "its name does not end with a rank");
  if (const auto* const dict = groups ? groups->get<tensorfile::Dict>() : nullptr) {
    for (const auto& [key, group] : dict->items) {
      std::string name = text_of(group.find("desc"));
      if (name.empty() || name == "undefined") name = text_of(&key);
      // "[0, 1]", a text.
      const auto ranks = nlohmann::json::parse(text_of(group.find("ranks")), nullptr, false);
      if (!ranks.is_array()) continue;
      for (const auto& rank : ranks) {
        if (rank.is_number_integer()) dump.groups[name].push_back(rank.get<int>());
      }
    }
  }
  for (const Value& entry : list_of(entries)) add(entry, dump);
  return dump;
}

std::vector<Dump> read_dumps(const std::string& folder, const FaultSink& faults) {
  std::vector<Dump> dumps;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string path = entry.string();
    if (!is_file(entry) || rank_of(path) < 0) continue;
    try {
      dumps.push_back(read_dump(path));
    } catch (const Error& error) {
      faults({"", 0, error.what()});
    }
  }
  if (!is_folder(folder)) throw Error(folder, 0, "is no folder");
  if (dumps.empty()) throw Error(folder, 0, "holds no dump of the Flight Recorder (files whose names end with a rank)");
  std::ranges::sort(dumps, [](const Dump& a, const Dump& b) { return a.rank < b.rank; });
  return dumps;
}

Finding explain(const std::vector<Dump>& dumps) {
  std::set<std::string> names;
  for (const Dump& dump : dumps) {
    for (const auto& [name, collectives] : dump.collectives) names.insert(name);
  }
  static const std::map<std::int64_t, Collective> kNone;
  for (const std::string& name : names) {
    Group group{name, {}, {}};
    std::set<int> ranks;
    for (const Dump& dump : dumps) {
      const auto listed = dump.groups.find(name);
      if (listed != dump.groups.end()) ranks.insert(listed->second.begin(), listed->second.end());
      if (dump.collectives.count(name)) ranks.insert(dump.rank);
    }
    // Older entries have made room for newer ones: what every rank still has is compared.
    std::int64_t oldest = 0, newest = 0;
    for (const int rank : ranks) {
      const auto dump = std::ranges::find(dumps, rank, &Dump::rank);
      group.ranks.push_back(rank);
      if (dump == dumps.end()) {
        group.collectives.push_back(nullptr);
        continue;
      }
      const auto collectives = dump->collectives.find(name);
      group.collectives.push_back(collectives == dump->collectives.end() ? &kNone : &collectives->second);
      if (group.collectives.back()->empty()) continue;
      oldest = std::max(oldest, group.collectives.back()->begin()->first);
      newest = std::max(newest, group.collectives.back()->rbegin()->first);
    }
    for (std::int64_t number = oldest; number <= newest; ++number) {
      if (Finding finding = explain(group, number); finding.stuck) return finding;
    }
  }
  return {false, "every rank entered the same collectives and completed them"};
}

}  // namespace zs::flight
