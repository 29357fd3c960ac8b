// SPDX-License-Identifier: Apache-2.0
// The record of a run: files that are each written once and never changed. If two files set the same field, the later
// file wins. Any number of processes may add files at once, without a lock.
#pragma once
#include <sys/types.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace zs::registry {

/// Named values, in order. An empty value removes an earlier one.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// Sets `key`, in place if it exists.
void set(Fields& fields, std::string_view key, std::string_view value);
/// The value of `key`, or "".
std::string value(const Fields& fields, std::string_view key);

/// Parses NAME=VALUE words. Throws UsageError at any other word.
Fields parse_fields(const std::vector<std::string>& words);

/// Adds a file with `fields` to the record of the run in `folder`. It appears whole or not at all, is on disk when this
/// returns, and is sorted after every existing file. Throws Error.
void add_to_record(const std::string& folder, const Fields& fields);

/// A record, its owners and its permissions.
struct Record {
  Fields fields;
  std::set<uid_t> owners;  ///< of its files
  mode_t mode = 0777;      ///< the permissions common to all its files
};

/// The record of the run in `folder`; empty if there is none. Other users may have put anything there: throws Error,
/// located, if one of its files is damaged, too large or no file, NotReadable if the caller may not read it.
Record record_of(const std::string& folder);
/// The fields of that record.
Fields read_record(const std::string& folder);

/// The caller may not read the run.
class NotReadable : public Error {
 public:
  using Error::Error;
};

/// "node07-1234-0": unique among all calls, processes and hosts.
std::string writer_name();

/// The content of a record's file: "#zs-record 1", then lines KEY<TAB>VALUE, in which tab, line feed, carriage return
/// and backslash are escaped as \t, \n, \r and \\.
std::string record_text(const Fields& fields);
/// Adds the fields of `text` to `fields`. Throws Error, located in `name`, if it is not such a file.
void merge_record_text(std::string_view text, const std::string& name, Fields& fields);

/// Sets each of `more` as set() does, in time linear in the number of fields of both.
void set(Fields& fields, const Fields& more);

// The words of "status" in a run's record, written by the run or by who recorded it. For its actual state see
// attribute::RunState, which experiment/state.cpp derives from the status, the lease, the steps and Slurm.
namespace status {

inline constexpr char planned[] = "planned";      ///< registered for a job that will train it
inline constexpr char running[] = "running";      ///< training, or its process ended without recording it
inline constexpr char recorded[] = "recorded";    ///< known only by fields
inline constexpr char complete[] = "complete";    ///< ended after all its steps
inline constexpr char preempted[] = "preempted";  ///< stopped with everything saved
inline constexpr char cancelled[] = "cancelled";  ///< its user cancelled its job
inline constexpr char diverged[] = "diverged";    ///< ended with a loss that is not finite
inline constexpr char failed[] = "failed";        ///< ended with an error

}  // namespace status
}  // namespace zs::registry
