// SPDX-License-Identifier: Apache-2.0
// Metric files: one content, two forms (tab-separated text and HDF5), told apart by their first bytes.
// The forms are described in zs-metrics(5).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"

namespace zs::metric {

/// Where a training keeps its metrics, if `folder` is that of one: folder/metrics.h5; else "".
std::string file_in(const std::string& folder);

/// Whether the content of a file begins as metric records or a summary do, in either form.
bool is_metrics(std::string_view bytes);

/// Reads a file, stdin for "-", or a training's folder, in either form, several concatenated streams included.
/// Throws Error, with path and line, at the first malformed line, at a corrupt or truncated HDF5 image,
/// at two runs of one name, and at an empty input.
Store read(const std::string& path);

/// Adds what an input, `place` for messages, held. Throws Error at a second run or condition of one name.
void join(Store& into, Store&& from, const std::string& place);

/// The text form of the runs (a summary has none: it is HDF5).
std::string to_tsv(const std::vector<Run>& runs);

/// The HDF5 form as a file image. The same store always gives the same bytes.
std::string to_h5(const Store& store);

/// One JSON object a line per record: {"run":NAME, COLUMN:VALUE, ...}; absent cells are left out;
/// nan and inf are the strings "nan", "inf", "-inf", since JSON has no such numbers.
std::string to_jsonl(const std::vector<Run>& runs);

/// Parses the content of an input named `name` (for messages).
Store parse(std::string_view bytes, const std::string& name);

}  // namespace zs::metric
