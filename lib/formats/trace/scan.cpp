// SPDX-License-Identifier: Apache-2.0
#include "trace/scan.hpp"

#include <algorithm>
#include <cstring>

namespace zs::trace {
namespace {

constexpr std::size_t kBlock = 4 << 20, kLongest = 256 << 20;

}  // namespace

bool Text::has(std::size_t ahead) {
  while (at_ + ahead >= buffer_.size()) {
    if (ended_) return false;
    more();
  }
  return true;
}

void Text::skip_blanks() {
  while (has(0) && static_cast<unsigned char>(buffer_[at_]) <= ' ') ++at_;
}

void Text::more() {
  if (at_ > 0) {
    buffer_.erase(0, at_);
    passed_ += static_cast<std::int64_t>(at_);
    at_ = 0;
  }
  const std::size_t size = buffer_.size();
  if (size > kLongest) throw Error(input_.name(), 0, "holds a value of more than 256 MB: is it a trace?");
  buffer_.resize(size + kBlock);
  std::size_t count = 0;
  try {
    count = input_.read(buffer_.data() + size, kBlock);
  } catch (const Error& error) {  // a compressed file that is cut: what could be read counts
    faults_({"", 0, error.what()});
  }
  buffer_.resize(size + count);
  ended_ = count == 0;
}

std::string_view Text::value() {
  std::size_t i = 0;
  int depth = 0;
  bool inside = false, escaped = false;
  const bool bare = peek() != '{' && peek() != '[' && peek() != '"';
  while (has(i)) {
    const char* const text = buffer_.data() + at_;
    const std::size_t size = buffer_.size() - at_;
    for (; i < size; ++i) {
      const char c = text[i];
      if (escaped) {
        escaped = false;
        continue;
      }
      if (inside) {
        const void* const quote = std::memchr(text + i, '"', size - i);
        const std::size_t end = quote ? static_cast<std::size_t>(static_cast<const char*>(quote) - text) : size;
        const void* const slash = std::memchr(text + i, '\\', end - i);
        if (slash) {
          i = static_cast<std::size_t>(static_cast<const char*>(slash) - text);
          escaped = true;
          continue;
        }
        i = end;
        if (!quote) break;
        inside = false;
        if (depth > 0) continue;
        const std::string_view whole(text, i + 1);
        at_ += whole.size();
        return whole;
      }
      if (c == '"') {
        inside = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (bare && depth == 0) return at_ += i, std::string_view(text, i);
        if (--depth > 0) continue;
        at_ += i + 1;
        return {text, i + 1};
      } else if (bare && (c == ',' || static_cast<unsigned char>(c) <= ' ')) {
        at_ += i;
        return {text, i};
      }
    }
  }
  return {};
}

Fields::Fields(std::string_view object) {
  if (object.size() < 2 || object.front() != '{' || object.back() != '}') throw Error("malformed JSON");
  rest_ = object.substr(1, object.size() - 2);
}

bool Fields::next(std::string_view& key, std::string_view& value) {
  blanks();
  if (rest_.empty()) return false;
  key = text();
  key = key.substr(1, key.size() - 2);
  blanks();
  take(':');
  blanks();
  value = any();
  blanks();
  if (!rest_.empty()) take(',');
  return true;
}

void Fields::blanks() {
  while (!rest_.empty() && static_cast<unsigned char>(rest_.front()) <= ' ') rest_.remove_prefix(1);
}

void Fields::take(char c) {
  if (rest_.empty() || rest_.front() != c) throw Error("malformed JSON");
  rest_.remove_prefix(1);
}

std::string_view Fields::cut(std::size_t size) {
  const std::string_view part = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return part;
}

std::string_view Fields::text() {
  if (rest_.empty() || rest_.front() != '"') throw Error("malformed JSON");
  std::size_t i = 1;
  while (i < rest_.size() && rest_[i] != '"') i += rest_[i] == '\\' ? 2 : 1;
  if (i >= rest_.size()) throw Error("malformed JSON");
  return cut(i + 1);
}

std::string_view Fields::any() {
  if (rest_.empty()) throw Error("malformed JSON");
  if (rest_.front() == '"') return text();
  if (rest_.front() != '{' && rest_.front() != '[') return cut(std::min(rest_.find_first_of(", \t\r\n"), rest_.size()));
  int depth = 0;
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '"') {
      for (++i; i < rest_.size() && rest_[i] != '"'; ++i) i += rest_[i] == '\\';
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return cut(i + 1);
    }
  }
  throw Error("malformed JSON");
}

}  // namespace zs::trace
