// SPDX-License-Identifier: Apache-2.0
// protozero for messages that may be damaged: a field of an unexpected type throws an exception instead of ending the
// process.
#pragma once
#include <protozero/exception.hpp>

namespace zs::protobuf {
struct WrongField : protozero::exception {
  const char* what() const noexcept override { return "a field of another type"; }
};
}  // namespace zs::protobuf

#define protozero_assert(condition) ((condition) ? void() : throw zs::protobuf::WrongField())

#include <concepts>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zs::protobuf {

inline std::string_view view(protozero::data_view data) { return {data.data(), data.size()}; }

inline void take(protozero::pbf_reader& message, std::string& to) { to = message.get_string(); }
inline void take(protozero::pbf_reader& message, std::vector<std::string>& to) { to.push_back(message.get_string()); }
inline void take(protozero::pbf_reader& message, std::string_view& to) { to = view(message.get_view()); }
inline void take(protozero::pbf_reader& message, double& to) { to = message.get_double(); }
inline void take(protozero::pbf_reader& message, std::int32_t& to) { to = message.get_int32(); }
inline void take(protozero::pbf_reader& message, std::int64_t& to) { to = message.get_int64(); }
inline void take(protozero::pbf_reader& message, bool& to) { to = message.get_bool(); }
inline void take(protozero::pbf_reader& message, const std::invocable<protozero::pbf_reader&> auto& to) { to(message); }

/// A known field of a message: its tag, and what takes its value: a variable of its type, or a function of the message.
template <typename To>
struct Field {
  std::uint32_t tag;
  To to;
};
template <typename To>
Field(std::uint32_t, To&&) -> Field<To>;

/// Reads a message, and skips all other fields. Throws protozero::exception.
template <typename... To>
void read(protozero::pbf_reader message, const Field<To>&... fields) {
  while (message.next()) {
    if (!((message.tag() == fields.tag && (take(message, fields.to), true)) || ...)) message.skip();
  }
}

}  // namespace zs::protobuf
