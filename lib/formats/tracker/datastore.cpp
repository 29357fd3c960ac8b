// SPDX-License-Identifier: Apache-2.0
#include "tracker/datastore.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/protobuf.hpp"

namespace zs::tracker {
namespace {

using protobuf::Field;
using protozero::pbf_reader;
using protozero::pbf_writer;

constexpr std::size_t kBlock = 32768, kChunkHeader = 7;
constexpr std::string_view kMagic = ":W&B";
constexpr std::array<char, 3> kVersion = {'\xE1', '\xBE', 0};
enum Type : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint32_t checksum(char type, std::string_view data) {
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(&type), 1);
  return static_cast<std::uint32_t>(
      crc32(sum, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

std::uint32_t number(std::string_view bytes, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::uint32_t{static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])} << (8 * i);
  return value;
}

void put(std::string& out, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 255U);
}

// Fields of wandb/proto/wandb_internal.proto.
constexpr std::uint32_t kNum = 1, kHistory = 2, kSummary = 3, kConfig = 5, kOutputRaw = 13, kRun = 17, kExit = 18,
                        kFinal = 20, kHeader = 21, kFooter = 22;
constexpr std::uint32_t kRunId = 1, kEntity = 2, kProject = 3, kRunConfig = 4, kGroup = 6, kJobType = 7,
                        kDisplayName = 8, kNotes = 9, kTags = 10, kHost = 13, kStartTime = 17, kGit = 21;

Item read_item(const pbf_reader& message) {
  Item item;
  std::string nested;
  const auto add = [&](pbf_reader& part) { nested += (nested.empty() ? "" : ".") + part.get_string(); };
  protobuf::read(message, Field{1, item.key}, Field{2, add}, Field{16, item.json});
  if (item.key.empty()) item.key = nested;
  return item;
}

void read_items(const pbf_reader& message, WandbRecord& record) {
  protobuf::read(message, Field{1, [&](pbf_reader& item) { record.items.push_back(read_item(item.get_message())); }},
                 Field{2, [&](pbf_reader& step) {
                         if (record.kind != WandbRecord::Kind::history) return step.skip();
                         protobuf::read(step.get_message(), Field{1, record.step});
                       }});
}

double read_time(const pbf_reader& message) {
  double seconds = 0;
  protobuf::read(message, Field{1, [&](pbf_reader& whole) { seconds += static_cast<double>(whole.get_int64()); }},
                 Field{2, [&](pbf_reader& part) { seconds += part.get_int32() * 1e-9; }});
  return seconds;
}

void read_run(const pbf_reader& message, WandbRecord& record) {
  protobuf::read(message, Field{kRunId, record.id}, Field{kEntity, record.entity}, Field{kProject, record.project},
                 Field{kRunConfig, [&](pbf_reader& config) { read_items(config.get_message(), record); }},
                 Field{kGroup, record.group}, Field{kJobType, record.job_type}, Field{kDisplayName, record.name},
                 Field{kNotes, record.notes}, Field{kTags, record.tags}, Field{kHost, record.host},
                 Field{kStartTime, [&](pbf_reader& time) { record.start_time = read_time(time.get_message()); }},
                 Field{kGit, [&](pbf_reader& git) {
                         protobuf::read(git.get_message(), Field{2, record.commit});
                       }});
}

void write_items(pbf_writer& out, const std::vector<Item>& items) {
  for (const Item& item : items) {
    pbf_writer one(out, 1);
    one.add_string(1, item.key);
    one.add_string(16, item.json);
  }
}

void write_time(pbf_writer& out, int field, double seconds) {
  pbf_writer time(out, static_cast<protozero::pbf_tag_type>(field));
  const double whole = std::floor(seconds);
  time.add_int64(1, static_cast<std::int64_t>(whole));
  time.add_int32(2, static_cast<std::int32_t>((seconds - whole) * 1e9));
}

void write_run(pbf_writer& out, const WandbRecord& record) {
  pbf_writer run(out, kRun);
  const auto add = [&](std::uint32_t field, const std::string& text) {
    if (!text.empty()) run.add_string(static_cast<protozero::pbf_tag_type>(field), text);
  };
  add(kRunId, record.id);
  add(kEntity, record.entity);
  add(kProject, record.project);
  {
    pbf_writer config(run, kRunConfig);
    write_items(config, record.items);
  }
  add(kGroup, record.group);
  add(kJobType, record.job_type);
  add(kDisplayName, record.name);
  add(kNotes, record.notes);
  for (const std::string& tag : record.tags) run.add_string(kTags, tag);
  add(kHost, record.host);
  write_time(run, kStartTime, record.start_time);
}

}  // namespace

std::string Datastore::header() { return std::string(kMagic) + std::string(kVersion.data(), kVersion.size()); }

std::string Datastore::add(std::string_view record) {
  std::string out;
  bool first = true;
  do {
    if (kBlock - at_ < kChunkHeader) {
      out.append(kBlock - at_, '\0');
      at_ = 0;
    }
    const std::string_view data = record.substr(0, kBlock - at_ - kChunkHeader);
    record.remove_prefix(data.size());
    const bool last = record.empty();
    const char type = first ? (last ? kFull : kFirst) : (last ? kLast : kMiddle);
    put(out, checksum(type, data), 4);
    put(out, static_cast<std::uint32_t>(data.size()), 2);
    out += type;
    out += data;
    at_ = (at_ + kChunkHeader + data.size()) % kBlock;
    first = false;
  } while (!record.empty());
  return out;
}

void read_datastore(std::string_view bytes, const std::string& name,
                    const std::function<void(std::string_view, std::int64_t)>& use, const FaultSink& faults) {
  if (!bytes.starts_with(kMagic.substr(0, std::min(kMagic.size(), bytes.size()))) || bytes.empty())
    throw Error(name, 0, "is no run of W&B: it does not begin with ':W&B'");
  const auto fault = [&](std::size_t at, const std::string& what) {
    faults({name, 0, "at byte " + std::to_string(at) + ": " + what});
  };
  const std::size_t head = kMagic.size() + kVersion.size();
  if (bytes.size() < head) return fault(bytes.size(), "the file ends within its header");
  if (bytes.substr(4, 3) != std::string_view(kVersion.data(), kVersion.size()))
    throw Error(name, 0, "is of a version of W&B's files that zs does not know");
  std::string joined;
  bool open = false;
  std::int64_t count = 0;
  for (std::size_t at = head; at < bytes.size();) {
    const std::size_t left = kBlock - at % kBlock;
    if (left < kChunkHeader) {
      at += left;
      continue;
    }
    const std::string_view rest = bytes.substr(at, left);
    // The writer was killed here, or has not come further yet.
    if (rest.size() < kChunkHeader) return fault(at, "the file ends within a record");
    const std::size_t size = number(rest.substr(4), 2);
    const char type = rest[6];
    const auto damaged = [&](const std::string& what) {
      fault(at, what + ": left out, with the rest of its block of " + std::to_string(kBlock) + " bytes");
      open = false;
      at += left;
    };
    if (type < kFull || type > kLast || size > left - kChunkHeader) {
      damaged("no record begins here");
      continue;
    }
    if (size > rest.size() - kChunkHeader) return fault(at, "the file ends within a record");
    const std::string_view data = rest.substr(kChunkHeader, size);
    if (number(rest, 4) != checksum(type, data)) {
      damaged("a record with a wrong checksum");
      continue;
    }
    const bool begins = type == kFull || type == kFirst;
    if (begins == open) {
      fault(at,
            open ? "a record ends before its last part: left out" : "the beginning of a record is missing: left out");
      open = false;
      if (!begins) {
        at += kChunkHeader + size;
        continue;
      }
    }
    if (begins) joined.clear();
    joined += data;
    open = type == kFirst || type == kMiddle;
    if (!open) use(joined, ++count);
    at += kChunkHeader + size;
  }
  if (open) fault(bytes.size(), "the file ends within a record");
}

std::string to_bytes(const WandbRecord& record) {
  using Kind = WandbRecord::Kind;
  std::string data;
  pbf_writer out(data);
  out.add_int64(kNum, record.number);
  switch (record.kind) {
    case Kind::run:
      write_run(out, record);
      break;
    case Kind::config: {
      pbf_writer config(out, kConfig);
      write_items(config, record.items);
      break;
    }
    case Kind::history: {
      pbf_writer history(out, kHistory);
      write_items(history, record.items);
      pbf_writer step(history, 2);
      step.add_int64(1, record.step);
      break;
    }
    case Kind::summary: {
      pbf_writer summary(out, kSummary);
      write_items(summary, record.items);
      break;
    }
    case Kind::exit: {
      pbf_writer exit(out, kExit);
      exit.add_int32(1, record.exit_code);
      exit.add_int32(2, static_cast<std::int32_t>(record.runtime));
      break;
    }
    case Kind::output: {
      pbf_writer output(out, kOutputRaw);
      output.add_enum(1, 1);  // stdout
      write_time(output, 2, record.start_time);
      output.add_string(3, record.line);
      break;
    }
    case Kind::header: {
      pbf_writer header(out, kHeader);
      pbf_writer version(header, 1);
      version.add_string(1, "0.15.12");  // whose records these are
      version.add_string(2, "0.12.0");
      break;
    }
    case Kind::final:
      out.add_message(kFinal, "", 0);  // empty, and there: pbf_writer would leave it out
      break;
    case Kind::footer:
      out.add_message(kFooter, "", 0);
      break;
    case Kind::other:
      break;
  }
  return data;
}

WandbRecord wandb_record(std::string_view bytes) {
  using Kind = WandbRecord::Kind;
  WandbRecord record;
  const auto is = [&](Kind kind, const auto&... fields) {
    return [&record, kind, fields...](pbf_reader& part) {
      record.kind = kind;
      protobuf::read(part.get_message(), fields...);
    };
  };
  const auto has_items = [&](Kind kind) {
    return [&record, kind](pbf_reader& part) {
      record.kind = kind;
      read_items(part.get_message(), record);
    };
  };
  const auto exit_code = [&](pbf_reader& exit) { record.exit_code = exit.get_int32(); };
  const auto runtime = [&](pbf_reader& exit) { record.runtime = exit.get_int32(); };
  const auto line = [&](pbf_reader& output) { record.line = output.get_string(); };
  const auto run = [&](pbf_reader& part) {
    record.kind = Kind::run;
    read_run(part.get_message(), record);
  };
  protobuf::read({bytes.data(), bytes.size()}, Field{kNum, record.number}, Field{kHistory, has_items(Kind::history)},
                 Field{kSummary, has_items(Kind::summary)}, Field{kConfig, has_items(Kind::config)}, Field{kRun, run},
                 Field{kExit, is(Kind::exit, Field{1, exit_code}, Field{2, runtime})},
                 Field{kOutputRaw, is(Kind::output, Field{3, line})}, Field{kHeader, is(Kind::header)},
                 Field{kFinal, is(Kind::final)}, Field{kFooter, is(Kind::footer)});
  return record;
}

}  // namespace zs::tracker
