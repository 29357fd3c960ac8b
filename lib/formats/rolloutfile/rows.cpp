// SPDX-License-Identifier: Apache-2.0
#include "rolloutfile/rows.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace zs::rolloutfile {
namespace {

using Json = nlohmann::json;

/// Numbers of a JSON value: a number, a text for one that is not finite, a list of these, or base64 of float32.
std::vector<double> numbers_of(const Json& value) {
  if (value.is_array()) {
    std::vector<double> numbers;
    numbers.reserve(value.size());
    for (const Json& one : value) {
      const std::vector<double> inner = numbers_of(one);
      numbers.insert(numbers.end(), inner.begin(), inner.end());
    }
    return numbers;
  }
  if (value.is_number()) return {value.get<double>()};
  if (value.is_boolean()) return {value.get<bool>() ? 1.0 : 0.0};
  if (value.is_null()) return {kNan};
  if (!value.is_string()) throw Error("has " + value.dump() + " where numbers belong");
  const auto& text = value.get_ref<const std::string&>();
  if (const auto number = parse_real(text)) return {*number};
  const std::string bytes = from_base64(text);
  if (bytes.size() % sizeof(float) != 0) throw Error("has a text where numbers belong");
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return {floats.begin(), floats.end()};
}

bool named(std::string_view name, const char* other) { return other && name == other; }

}  // namespace

std::int64_t last_number(const std::string& path) {
  const std::filesystem::path whole(path);
  for (const std::string& name : {whole.stem().string(), whole.parent_path().filename().string()}) {
    const std::size_t end = name.find_last_of("0123456789");
    if (end == name.npos || name.starts_with("rank_") || name.starts_with("rollout-")) continue;
    const std::size_t begin = name.find_last_not_of("0123456789", end);
    return parse_int(name.substr(begin == name.npos ? 0 : begin + 1, end - (begin == name.npos ? -1 : begin)))
        .value_or(-1);
  }
  return -1;
}

Rows::Rows(const Form& form, std::string path, Dump& into) : form_(form), path_(std::move(path)), into_(into) {
  step_ = last_number(path_);
}

void Rows::read() {
  try {
    form_.container == Container::lines     ? lines()
    : form_.container == Container::torch   ? torch()
    : form_.container == Container::pickle  ? pickle()
    : form_.container == Container::msgpack ? msgpack()
                                            : hdf5();
    if (how_ != "whole") into_.broken.push_back(path_ + " says how the training ended: " + how_);
  } catch (const Json::exception& error) {
    throw Error(path_, line_, "is damaged: " + std::string(error.what()));
  } catch (const Error& error) {
    if (std::string(error.what()).starts_with(path_)) throw;
    throw Error(path_, line_, error.what());
  }
}

const std::vector<double>* Rows::Row::find(const char* name) const {
  if (!name) return nullptr;
  const auto found = numbers.find(std::string_view(name));
  return found == numbers.end() || found->second.empty() ? nullptr : &found->second;
}

double Rows::Row::number(const char* name, double otherwise) const {
  const std::vector<double>* const found = find(name);
  return found && found->size() == 1 ? found->front() : otherwise;
}

void Rows::header(const Json& row) {
  if (row.at("zs_rollout") != 1) throw Error("is a dump of another version: record again");
  into_.open = std::max<std::int64_t>(0, into_.open) + (row.contains("end") ? -1 : 1);
  how_ = row.value("how", "whole");  // a header that follows is of a training that has resumed
  into_.system = row.value("system", into_.system);
  into_.generator_dtype = row.value("generator_dtype", into_.generator_dtype);
  into_.trainer_dtype = row.value("trainer_dtype", into_.trainer_dtype);
}

Rows::Row Rows::row_of(const Json& value) const {
  Row row;
  for (const auto& [key, held] : value.items()) {
    if (key == "replays") {
      for (const auto& [name, numbers] : held.items()) row.replays[name] = numbers_of(numbers);
    } else if (key == "sample" || key == "sample_id" || (named(key, form_.version) && held.is_string())) {
      row.texts[key] = held.is_string() ? held.get<std::string>() : held.dump();
    } else if (held.is_number() || held.is_boolean() || held.is_array() ||
               (held.is_string() && std::string_view(form_.system) == "zs")) {
      if (held.is_array() && !held.empty() &&
          (held[0].is_object() || (held[0].is_string() && !named(key, form_.version))))
        continue;  // messages, not numbers
      if (held.is_array() && !held.empty() && held[0].is_string()) {
        row.texts[key] = held.back().get<std::string>();
      } else {
        row.numbers[key] = numbers_of(held);
      }
    }
  }
  return row;
}

void Rows::lines() {
  Input input(path_);
  std::istringstream text(input.read_all());
  for (std::string line; std::getline(text, line);) {
    ++line_;
    if (line.empty()) continue;
    if (text.eof()) throw Error("the last line is cut");
    if (nested_too_deeply(line)) throw Error("is no line of a dump");
    const Json value = Json::parse(line);
    if (!value.is_object()) throw Error("is no line of a dump");
    if (value.contains("zs_rollout")) {
      header(value);
    } else if (value.contains("turns") && value["turns"].is_array()) {  // torchtitan: each turn has its prompt
      for (const Json& turn : value["turns"]) {
        add(row_of(turn));
        if (value.contains("group_id") && value.contains("rollout_id"))
          into_.sequences.back().sample = value["group_id"].dump() + "/" + value["rollout_id"].dump();
      }
    } else {
      add(row_of(value));
    }
  }
}

void Rows::msgpack() {
  // The order of the fields of a micro-batch: ids, mask, advantages, log-probabilities, positions, lengths,
  // temperatures, environments, lengths again, log-probabilities of the reference model.
  constexpr std::size_t kLengths = 5;
  Input input(path_);
  const Json batches = Json::from_msgpack(input.read_all());
  for (const Json& batch : batches) {
    std::size_t at = 0;
    const std::size_t whole = batch.at(0).size();
    std::vector<double> lengths = numbers_of(batch.at(kLengths));
    for (const double length : lengths) {
      const auto size = static_cast<std::size_t>(length);
      if (!(length >= 0) || at + size > whole) throw Error("has sequences longer than its tokens");
      Row row;
      for (const std::size_t field : {0, 1, 3, 6, 9}) {
        if (field >= batch.size() || !batch[field].is_array() || batch[field].size() < at + size) continue;
        std::vector<double>& into = row.numbers[to_text(static_cast<std::int64_t>(field))];
        for (std::size_t i = at; i < at + size; ++i) into.push_back(numbers_of(batch[field][i]).at(0));
      }
      if (const auto* heat = row.find("6"); heat && !heat->empty()) row.numbers["temperature"] = {heat->back()};
      at += size;
      if (size > 0) add(row);
    }
  }
}

std::vector<double> Rows::of_completion(const Sequence& sequence, const Row& row, const char* name) const {
  const std::vector<double>* const found = row.find(name);
  if (!found) return {};
  const std::size_t length = sequence.length(), whole = sequence.ids.size();
  if (found->size() == length) return *found;
  if (found->size() < whole)
    throw Error(std::string(name) + " has " + std::to_string(found->size()) + " values for " + std::to_string(length) +
                " tokens of the completion");
  return {found->begin() + static_cast<std::ptrdiff_t>(sequence.prompt),
          found->begin() + static_cast<std::ptrdiff_t>(whole)};
}

void Rows::add(const Row& row) {
  const std::vector<double>* const ids = row.find(form_.ids);
  if (!ids) throw Error("lacks '" + std::string(form_.ids) + "'");
  Sequence made;
  made.step = static_cast<std::int64_t>(row.number("step", static_cast<double>(step_)));
  if (const auto* prompt = row.find(form_.prompt)) {
    made.ids.assign(prompt->begin(), prompt->end());
    made.prompt = made.ids.size();
  }
  made.ids.insert(made.ids.end(), ids->begin(), ids->end());
  const std::vector<double>* const mask = row.find(form_.mask);
  // Rows are padded on the right: the row says its length.
  const auto length = static_cast<std::size_t>(row.number("input_lengths", static_cast<double>(made.ids.size())));
  if (length < made.ids.size()) made.ids.resize(length);
  if (const double response = row.number(form_.response, kNan); response >= 0) {
    if (response > static_cast<double>(made.ids.size())) throw Error("has a completion longer than the sequence");
    made.prompt = made.ids.size() - static_cast<std::size_t>(response);
  } else if (const double prompt = row.number("prompt", kNan); prompt >= 0) {
    if (prompt > static_cast<double>(made.ids.size())) throw Error("has a prompt longer than the sequence");
    made.prompt = static_cast<std::size_t>(prompt);
  } else if (mask && mask->size() >= made.ids.size() && !form_.prompt) {  // the completion begins where tokens count
    made.prompt = static_cast<std::size_t>(std::ranges::find(*mask, 1.0) - mask->begin());
    made.prompt = std::min(made.prompt, made.ids.size());
  }
  for (const double one : of_completion(made, row, form_.mask)) made.mask.push_back(one != 0);
  if (row.number("sample_loss_mask", 1) == 0) made.mask.assign(made.length(), 0);
  const auto take = [&](Numbers& into, const char* name) {
    const std::vector<double> found = of_completion(made, row, name);
    into.assign(found.begin(), found.end());
  };
  take(made.gen, form_.gen), take(made.train, form_.train), take(made.ref, form_.ref);
  take(made.entropy, form_.entropy), take(made.raw, "raw"), take(made.turn, "turn");
  take(made.again, "again");
  for (const auto& [name, numbers] : row.replays) {
    if (numbers.size() != made.length()) throw Error("replay '" + name + "' has another length than the completion");
    made.replays[name].assign(numbers.begin(), numbers.end());
  }
  made.temperature = row.number("temperature", 0), made.top_p = row.number("top_p", 0);
  made.min_p = row.number("min_p", 0);
  made.top_k = static_cast<std::int64_t>(row.number("top_k", 0));
  made.padded = static_cast<std::int64_t>(row.number("padded", -1));
  made.cached = static_cast<std::int64_t>(row.number("cached", -1));
  made.n = static_cast<std::int64_t>(row.number("n", 0));
  for (const char* name : {"sample", "sample_id"}) {
    if (const auto text = row.texts.find(name); text != row.texts.end()) made.sample = text->second;
  }
  for (const char* name : {"index", "sample_index", "idx"}) {
    if (const double index = row.number(name, kNan); made.sample.empty() && index >= 0)
      made.sample = to_text(static_cast<std::int64_t>(index));
  }
  if (form_.version) {
    const auto text = row.texts.find(form_.version);
    const auto* const number = row.find(form_.version);
    if (text != row.texts.end() || number)
      made.versions.emplace_back(made.length(),
                                 number ? to_text(static_cast<std::int64_t>(number->back())) : text->second);
  }
  into_.sequences.push_back(std::move(made));
}

}  // namespace zs::rolloutfile
