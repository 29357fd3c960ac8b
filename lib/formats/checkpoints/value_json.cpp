// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/value_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/text.hpp"
#include "checkpoints/fact.hpp"

namespace zs::checkpoints {
namespace {

using Json = nlohmann::ordered_json;
using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_size(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

class Writer {
 public:
  explicit Writer(const TakeTensor& take) : take_(take) {}

  Json one(const Value& value, const std::string& name) const {
    if (const bool* const truth = value.get<bool>()) return *truth;
    if (const std::int64_t* const number = value.get<std::int64_t>()) return *number;
    if (const double* const real = value.get<double>())
      return std::isfinite(*real) ? Json(*real) : Json{{"float", to_text(*real)}};
    // Python's bytes need not be text, and JSON is.
    if (const std::string* const text = value.get<std::string>())
      return is_text(*text) ? Json(*text) : Json{{"bytes", to_base64(*text)}};
    if (const List* const list = value.get<List>()) return all(list->values, name);
    if (const Tuple* const tuple = value.get<Tuple>()) return {{"tuple", all(tuple->values, name)}};
    if (const Dict* const dict = value.get<Dict>()) return {{"dict", pairs(dict->items, name)}};
    if (const Tensor* const tensor = value.get<Tensor>()) return {{"tensor", take_(name, *tensor)}};
    if (const Object* const object = value.get<Object>())
      return {{"object", object->name},
              {"arguments", all(object->arguments, name)},
              {"state", all(object->state, name)},
              {"elements", all(object->elements, name)},
              {"items", pairs(object->items, name)}};
    return nullptr;
  }

 private:
  const TakeTensor& take_;

  Json all(const std::vector<Value>& values, const std::string& name) const {
    Json list = Json::array();
    for (const Value& each : values) list.push_back(one(each, name + "." + std::to_string(list.size())));
    return list;
  }

  Json pairs(const std::vector<Item>& items, const std::string& name) const {
    Json list = Json::array();
    for (const Item& item : items) {
      const std::string inner = name + "." + key_text(item.key);
      Json pair = Json::array();  // not {a, b}: two texts would become an object
      pair.push_back(one(item.key, inner)), pair.push_back(one(item.value, inner));
      list.push_back(std::move(pair));
    }
    return list;
  }
};

class Reader {
 public:
  explicit Reader(const GiveTensor& give) : give_(give) {}

  Value one(const Json& json) const {
    if (json.is_null()) return {};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) return List{all(json)};
    if (json.contains("float")) return parse_real(json["float"].get<std::string>()).value_or(NAN);
    if (json.contains("bytes")) return from_base64(json["bytes"].get<std::string>());
    if (json.contains("tuple")) return Tuple{all(json["tuple"])};
    if (json.contains("dict")) return Dict{pairs(json["dict"])};
    if (json.contains("tensor")) return give_(json["tensor"].get<std::string>());
    return Object{json.at("object").get<std::string>(), all(json.at("arguments")), all(json.at("state")),
                  all(json.at("elements")), pairs(json.at("items"))};
  }

 private:
  const GiveTensor& give_;

  std::vector<Value> all(const Json& list) const {
    std::vector<Value> values;
    for (const Json& each : list) values.push_back(one(each));
    return values;
  }

  std::vector<Item> pairs(const Json& list) const {
    std::vector<Item> items;
    for (const Json& pair : list) items.push_back({one(pair.at(0)), one(pair.at(1))});
    return items;
  }
};

}  // namespace

Json json_of(const Value& value, const std::string& name, const TakeTensor& take) {
  return Writer(take).one(value, name);
}

Value value_of_json(const Json& json, const GiveTensor& give) { return Reader(give).one(json); }

}  // namespace zs::checkpoints
