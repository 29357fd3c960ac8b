// SPDX-License-Identifier: Apache-2.0
#include "tracker/tfevents.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/checksum.hpp"
#include "base/protobuf.hpp"
#include "base/words.hpp"

namespace zs::tracker {
namespace {

using protobuf::Field;
using protozero::pbf_reader;
using protozero::pbf_writer;

// Fields of tensorboard's messages (tensorboard/compat/proto: event, summary, tensor, types).
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kEventSummary = 5, kSessionLog = 7 };
enum ValueField { kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9 };
enum TensorField {
  kDtype = 1,
  kShape = 2,
  kContent = 4,
  kFloat = 5,
  kDouble = 6,
  kInt = 7,
  kString = 8,
  kInt64 = 10,
  kBool = 11,
  kHalf = 13
};
enum Dtype {
  kDtFloat = 1,
  kDtDouble = 2,
  kDtInt32 = 3,
  kDtString = 7,
  kDtInt64 = 9,
  kDtBool = 10,
  kDtBfloat16 = 14,
  kDtHalf = 19
};

constexpr std::size_t kFrameHeader = 12, kFrameFooter = 4;

template <typename T>
T little(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The masked form in which TFRecord stores a checksum, so that a checksum of bytes that hold checksums is sound.
std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t sum = crc32c(bytes);
  return ((sum >> 15) | (sum << 17)) + 0xA282EAD8U;
}

double half_value(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const double fraction = bits & 1023U, sign = (bits & 0x8000U) ? -1 : 1;
  if (exponent == 31) return fraction > 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

double bfloat16_value(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

/// The only element of a tensor, as TensorFlow stores it: raw bytes, or a repeated field of its type. False if there is
/// none, several, or one of another type.
bool read_tensor(const pbf_reader& tensor, EventValue& value) {
  std::int32_t dtype = 0;
  std::string_view content;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  // A number, or a packed range of them.
  const auto numbers_of = [&](auto packed, auto one) {
    return [&numbers, packed, one](pbf_reader& field) {
      if (field.wire_type() != protozero::pbf_wire_type::length_delimited)
        return numbers.push_back(static_cast<double>((field.*one)()));
      for (const auto number : (field.*packed)()) numbers.push_back(static_cast<double>(number));
    };
  };
  const auto ints = numbers_of(&pbf_reader::get_packed_int32, &pbf_reader::get_int32);
  protobuf::read(tensor, Field{kDtype, dtype}, Field{kContent, content},
                 Field{kFloat, numbers_of(&pbf_reader::get_packed_float, &pbf_reader::get_float)},
                 Field{kDouble, numbers_of(&pbf_reader::get_packed_double, &pbf_reader::get_double)}, Field{kInt, ints},
                 Field{kHalf, ints}, Field{kInt64, numbers_of(&pbf_reader::get_packed_int64, &pbf_reader::get_int64)},
                 Field{kBool, numbers_of(&pbf_reader::get_packed_bool, &pbf_reader::get_bool)}, Field{kString, texts});
  if (dtype == kDtString) {
    value.is_text = true;
    value.text = joined(texts, "\n");
    return !texts.empty();
  }
  const bool bits = dtype == kDtHalf || dtype == kDtBfloat16;
  if (numbers.size() == 1) {
    value.scalar = numbers[0];
    if (!bits) return true;
    if (!(numbers[0] >= 0 && numbers[0] <= 0xFFFF)) return false;  // no pattern of 16 bits
    const auto pattern = static_cast<std::uint32_t>(numbers[0]);
    value.scalar = dtype == kDtHalf ? half_value(pattern) : bfloat16_value(pattern);
    return true;
  }
  if (!numbers.empty()) return false;
  const auto is = [&](int type, std::size_t size) { return dtype == type && content.size() == size; };
  if (is(kDtFloat, 4))
    value.scalar = little<float>(content);
  else if (is(kDtDouble, 8))
    value.scalar = little<double>(content);
  else if (is(kDtInt32, 4))
    value.scalar = little<std::int32_t>(content);
  else if (is(kDtInt64, 8))
    value.scalar = static_cast<double>(little<std::int64_t>(content));
  else if (is(kDtBool, 1))
    value.scalar = content[0] != 0;
  else if (is(kDtHalf, 2))
    value.scalar = half_value(little<std::uint16_t>(content));
  else if (is(kDtBfloat16, 2))
    value.scalar = bfloat16_value(little<std::uint16_t>(content));
  else
    return false;
  return true;
}

std::string plugin_of(pbf_reader metadata) {
  while (metadata.next(1)) {
    pbf_reader plugin = metadata.get_message();
    while (plugin.next(1)) return plugin.get_string();
  }
  return {};
}

void read_value(const pbf_reader& message, Event& event) {
  EventValue value;
  std::string plugin;
  bool scalar = false, known = false;
  std::string_view tensor;
  const auto simple = [&](pbf_reader& field) {
    value.scalar = field.get_float();
    scalar = known = true;
  };
  protobuf::read(message, Field{kTag, value.tag}, Field{kSimpleValue, simple}, Field{kTensor, tensor},
                 Field{kMetadata, [&](pbf_reader& metadata) { plugin = plugin_of(metadata.get_message()); }});
  if (!scalar && tensor.data() && (plugin.empty() || plugin == "scalars" || plugin == "text"))
    known = read_tensor(pbf_reader(tensor.data(), tensor.size()), value);
  if (known)
    event.values.push_back(std::move(value));
  else
    ++event.other;
}

Event event_of(std::string_view bytes) {
  Event event;
  const auto read_one = [&](pbf_reader& value) { read_value(value.get_message(), event); };
  const auto summary = [&](pbf_reader& part) { protobuf::read(part.get_message(), Field{1, read_one}); };
  const auto begins = [&](pbf_reader& status) { event.restarts = status.get_int32() == 1; };
  const auto log = [&](pbf_reader& part) { protobuf::read(part.get_message(), Field{1, begins}); };
  protobuf::read({bytes.data(), bytes.size()}, Field{kWallTime, event.wall_time}, Field{kStep, event.step},
                 Field{kFileVersion, event.version}, Field{kEventSummary, summary}, Field{kSessionLog, log});
  return event;
}

void write_text(pbf_writer& out, const std::string& text) {
  {
    pbf_writer tensor(out, kTensor);
    tensor.add_int32(kDtype, kDtString);
    {
      pbf_writer shape(tensor, kShape);
      pbf_writer dimension(shape, 2);
      dimension.add_int64(1, 1);
    }
    tensor.add_bytes(kString, text);
  }
  pbf_writer metadata(out, kMetadata);
  pbf_writer plugin(metadata, 1);
  plugin.add_string(1, "text");
}

}  // namespace

std::string to_frame(const Event& event) {
  std::string data;
  pbf_writer out(data);
  out.add_double(kWallTime, event.wall_time);
  if (event.step != 0) out.add_int64(kStep, event.step);
  if (!event.version.empty()) out.add_string(kFileVersion, event.version);
  if (event.restarts) {
    pbf_writer log(out, kSessionLog);
    log.add_int32(1, 1);
  }
  if (!event.values.empty()) {
    pbf_writer summary(out, kEventSummary);
    for (const EventValue& value : event.values) {
      pbf_writer one(summary, 1);
      one.add_string(kTag, value.tag);
      if (value.is_text)
        write_text(one, value.text);
      else
        one.add_float(kSimpleValue, static_cast<float>(value.scalar));
    }
  }
  std::string frame;
  put(frame, static_cast<std::uint64_t>(data.size()));
  put(frame, masked(frame));
  frame += data;
  put(frame, masked(data));
  return frame;
}

void read_events(std::string_view bytes, const std::string& name,
                 const std::function<void(const Event&, std::int64_t)>& use, const FaultSink& faults) {
  std::size_t at = 0;
  std::int64_t number = 0;
  const auto fault = [&](const std::string& what) {
    faults({name, 0, "event " + std::to_string(number) + ", at byte " + std::to_string(at) + ": " + what});
  };
  while (at < bytes.size()) {
    ++number;
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < kFrameHeader) return fault("the file ends within it");
    const std::string_view head = rest.substr(0, 8);
    if (little<std::uint32_t>(rest.substr(8)) != masked(head)) {
      return fault("its length has a wrong checksum: the last " + std::to_string(rest.size()) +
                   " bytes of the file cannot be read");
    }
    const auto size = little<std::uint64_t>(head);
    if (size > rest.size() - kFrameHeader || rest.size() - kFrameHeader - size < kFrameFooter)
      return fault("the file ends within it");
    const std::string_view data = rest.substr(kFrameHeader, size);
    if (little<std::uint32_t>(rest.substr(kFrameHeader + size)) != masked(data)) {
      fault("wrong checksum: left out");
    } else {
      try {
        use(event_of(data), number);
      } catch (const protozero::exception& error) {
        fault(std::string("not an event: ") + error.what() + ": left out");
      }
    }
    at += kFrameHeader + size + kFrameFooter;
  }
}

}  // namespace zs::tracker
