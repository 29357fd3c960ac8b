// SPDX-License-Identifier: Apache-2.0
// The record of a run: what is known about it, as files that are each written once and never changed.
// The later file holds where two set one field. Any number of processes may add files at once, without a lock.
#pragma once
#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace zs::registry {

/// Named values, in order. An empty value is no value: it takes back an earlier one.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// Sets `key`, in place where it is there.
void set(Fields& fields, std::string_view key, std::string_view value);
/// The value of `key`, or "".
std::string value(const Fields& fields, std::string_view key);

/// Fields given as NAME=VALUE words. Throws UsageError at a word that is not one.
Fields parse_fields(const std::vector<std::string>& words);

/// Adds a file with `fields` to the record of the run whose folder is `folder`. It appears whole or not at all, is on
/// the disk when this returns, and comes after every file that was there before. Throws Error.
void add_to_record(const std::string& folder, const Fields& fields);

/// A record, and who may have written it and may read it.
struct Record {
  Fields fields;
  std::set<uid_t> owners;  ///< of its files
  mode_t mode = 0777;      ///< what all its files permit
};

/// The record of the run in `folder`; empty where there is none. Others may have put anything there: throws Error,
/// located, where a file of it is damaged, too large or no file, NotReadable where the caller may not look.
Record record_of(const std::string& folder);
/// Its fields.
Fields read_record(const std::string& folder);

/// A run that its owner keeps to itself.
class NotReadable : public Error {
 public:
  using Error::Error;
};

/// "node07-1234-0": no other call, process or host has the same.
std::string writer_name();

/// A file of a record: "#zs-record 1", then lines KEY<TAB>VALUE, where tab, line feed, carriage return and backslash
/// are written as \t, \n, \r and \\.
std::string record_text(const Fields& fields);
/// Sets what `text` holds in `fields`. Throws Error, located in `name`, where it is not such a file.
void merge_record_text(std::string_view text, const std::string& name, Fields& fields);

}  // namespace zs::registry
