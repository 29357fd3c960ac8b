// SPDX-License-Identifier: Apache-2.0
// Metric files: the same content in two forms (tab-separated text and HDF5), recognised by their first bytes.
// zs-metrics(5) describes the forms.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"

namespace zs::metric {

/// The metrics of a training's folder: folder/metrics.h5; "" if `folder` is not one.
std::string file_in(const std::string& folder);

/// Whether the bytes begin as metric records or a summary, in either form.
bool is_metrics(std::string_view bytes);

/// Reads a file, stdin for "-", or a training's folder, in either form, also several concatenated streams. Throws
/// Error, with path and line, at the first malformed line, a corrupt or truncated HDF5 image, two runs with the same
/// name, and an empty input.
Store read(const std::string& path);

/// Adds the content of an input, called `place` in messages. Throws Error at a duplicate name of a run or condition.
void join(Store& into, Store&& from, const std::string& place);

/// The text form of the runs (a summary has none: it is HDF5).
std::string to_tsv(const std::vector<Run>& runs);

/// The HDF5 form as a file image. The same store always gives the same bytes.
std::string to_h5(const Store& store);

/// One JSON object per record and line: {"run":NAME, COLUMN:VALUE, ...}; absent cells are left out; nan and inf are the
/// strings "nan", "inf", "-inf", since JSON has no such numbers.
std::string to_jsonl(const std::vector<Run>& runs);

/// All records as one CSV table: the run, then every column that any run has. It has no attributes.
std::string to_csv(const std::vector<Run>& runs);

/// Parses the content of an input named `name` (for messages).
Store parse(std::string_view bytes, const std::string& name);

}  // namespace zs::metric
