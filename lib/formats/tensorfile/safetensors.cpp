// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs::tensorfile {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100000000;
constexpr const char* kMetadata = "__metadata__";

// The order of types in a file: by descending size, and among equals as the reference library (0.8) has it, so that
// the same tensors give the same bytes here and there.
constexpr std::array<Dtype, 16> kOrder = {
    Dtype::u64, Dtype::i64, Dtype::f64, Dtype::c64,     Dtype::f32,     Dtype::u32, Dtype::i32, Dtype::bf16,
    Dtype::f16, Dtype::u16, Dtype::i16, Dtype::f8_e4m3, Dtype::f8_e5m2, Dtype::i8,  Dtype::u8,  Dtype::boolean};

auto rank_of(Dtype dtype) { return std::ranges::find(kOrder, dtype) - kOrder.begin(); }

// One tensor of the header and its place in the data.
struct Placed {
  std::string name;
  Dtype dtype;
  Shape shape;
  std::uint64_t begin, end;
};

Json parse_header(const std::string& path, std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that enclose the current one
  const Json::parser_callback_t twice = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw Error(path, 0, parsed.get<std::string>() + ": stands twice in the header");
    }
    return true;
  };
  try {
    return Json::parse(text, twice);
  } catch (const Json::parse_error& error) {
    throw Error(path, 0, "malformed header at byte " + std::to_string(8 + error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(path, 0, "malformed header: a number out of range");
  }
}

Placed parse_tensor(const std::string& path, const std::string& name, const Json& entry) {
  const auto malformed = [&](const std::string& what) { throw Error(path, 0, name + ": " + what); };
  if (!entry.is_object()) malformed("malformed header: expected an object");
  const auto field = [&](const char* key, bool (*right)(const Json&)) -> const Json& {
    const auto found = entry.find(key);
    if (found == entry.end() || !right(*found)) malformed(std::string("malformed header: no ") + key);
    return *found;
  };
  const auto numbers = [](const Json& json) {
    return json.is_array() && std::ranges::all_of(json, [](const Json& n) { return n.is_number_unsigned(); });
  };
  const std::string type = field("dtype", [](const Json& json) { return json.is_string(); }).get<std::string>();
  const std::optional<Dtype> dtype = from_safetensors_name(type);
  if (!dtype) malformed("unknown type " + type);
  const Json& shape = field("shape", numbers);
  const Json& offsets = field("data_offsets", numbers);
  if (offsets.size() != 2 || offsets[1] < offsets[0]) malformed("malformed header: no data_offsets");
  Placed placed{name, *dtype, {}, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  std::uint64_t size = size_of(*dtype);
  for (const Json& extent : shape) {
    const auto wide = extent.get<std::uint64_t>();
    if (wide > static_cast<std::uint64_t>(INT64_MAX) || __builtin_mul_overflow(size, wide, &size)) {
      malformed("shape " + shape.dump() + " is too large");
    }
    placed.shape.push_back(static_cast<std::int64_t>(wide));
  }
  if (size != placed.end - placed.begin) {
    malformed("shape " + shape.dump() + " of " + type + " needs " + std::to_string(size) + " bytes, has " +
              std::to_string(placed.end - placed.begin));
  }
  return placed;
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& named : tensors) order.push_back(&named);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
    const auto rank_a = rank_of(a->second.dtype), rank_b = rank_of(b->second.dtype);
    return rank_a != rank_b ? rank_a < rank_b : a->first < b->first;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata) header[kMetadata][key] = text;
  std::uint64_t at = 0;
  for (const auto* named : order) {
    const auto& [name, tensor] = *named;
    const std::string_view type = safetensors_name(tensor.dtype);
    if (type.empty()) throw Error(path, 0, name + ": safetensors has no type " + std::string(name_of(tensor.dtype)));
    if (header.contains(name) || name == kMetadata) throw Error(path, 0, name + ": two tensors of one name");
    try {
      tensor.check();
    } catch (const Error& error) {
      throw Error(path, 0, name + ": " + error.what());
    }
    header[name] = {{"dtype", type}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.byte_count()}}};
    at += tensor.byte_count();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(path, 0, "names and metadata must be UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLargestHeader) throw Error(path, 0, "a header of more than 100 MB cannot be read back");
  const std::uint64_t size = text.size();
  Output output(path);
  output.write({reinterpret_cast<const char*>(&size), sizeof size});
  output.write(text);
  for (const auto* named : order) {
    stream(
        named->second, [&](std::string_view bytes) { output.write(bytes); }, path + ": " + named->first);
  }
  output.commit();
}

Safetensors read_safetensors(const std::string& path) {
  const std::shared_ptr<const Mapping> file = Mapping::open(path);
  const std::string_view bytes = file->bytes();
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) throw Error(path, 0, "is not a safetensors file: shorter than 8 bytes");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > kLargestHeader) throw Error(path, 0, "is not a safetensors file: its header would exceed 100 MB");
  if (size > bytes.size() - 8) {
    throw Error(
        path, 0,
        "is cut short: a header of " + std::to_string(size) + " bytes in a file of " + std::to_string(bytes.size()));
  }
  const std::string_view text = bytes.substr(8, size), data = bytes.substr(8 + size);
  if (!text.starts_with('{')) throw Error(path, 0, "is not a safetensors file: its header does not begin with '{'");
  const Json header = parse_header(path, text);
  Safetensors result;
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadata) {
      placed.push_back(parse_tensor(path, name, entry));
      continue;
    }
    if (!entry.is_object()) throw Error(path, 0, "malformed header: __metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw Error(path, 0, "malformed header: __metadata__ " + key + " is not text");
      result.metadata.emplace_back(key, value.get<std::string>());
    }
  }
  std::ranges::sort(placed, [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (Placed& one : placed) {
    if (one.begin != at) {
      throw Error(path, 0,
                  one.name + ": its data begins at " + std::to_string(one.begin) + ", expected " + std::to_string(at));
    }
    if (one.end > data.size())
      throw Error(path, 0,
                  one.name + ": is cut short: its data ends at " + std::to_string(one.end) + " of " +
                      std::to_string(data.size()));
    at = one.end;
    StoragePtr storage = Storage::map(file, data.substr(one.begin, one.end - one.begin), one.name, std::nullopt);
    Tensor tensor{one.dtype, one.shape, row_major(one.shape), 0, std::move(storage)};
    tensor.check();
    result.tensors.emplace_back(std::move(one.name), std::move(tensor));
  }
  if (at != data.size())
    throw Error(path, 0, std::to_string(data.size() - at) + " bytes at the end belong to no tensor");
  return result;
}

}  // namespace zs::tensorfile
