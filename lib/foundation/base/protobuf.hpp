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

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string_view>

namespace zs::protobuf {

inline std::string_view view(protozero::data_view data) { return {data.data(), data.size()}; }

}  // namespace zs::protobuf
