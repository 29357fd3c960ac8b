// SPDX-License-Identifier: Apache-2.0
// Reads the rows of one file of a dump into sequences.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rolloutfile/form.hpp"
#include "tensorfile/value.hpp"

namespace zs::rolloutfile {

/// The last whole number in a path's file name, else in its folder's: "train_data_step12.jsonl" is 12. -1: none.
std::int64_t last_number(const std::string& path);

class Rows {
 public:
  Rows(const Form& form, std::string path, Dump& into);
  /// Throws Error, located.
  void read();

 private:
  /// The values of a row by the names of its form.
  struct Row {
    std::map<std::string, std::vector<double>, std::less<>> numbers{};
    std::map<std::string, std::vector<double>> replays{};
    std::map<std::string, std::string, std::less<>> texts{};
    const std::vector<double>* find(const char* name) const;
    double number(const char* name, double otherwise) const;
  };

  void lines();
  void torch();
  void pickle();
  void msgpack();
  void hdf5();
  void header(const nlohmann::json& row);
  Row row_of(const nlohmann::json& value) const;
  void add(const Row& row);
  /// A value for each token of the completion, of a list that has one for each of them or for each token.
  std::vector<double> of_completion(const Sequence& sequence, const Row& row, const char* name) const;

  const Form& form_;
  std::string path_;
  Dump& into_;
  std::int64_t line_ = 0, step_ = 0;
  std::string how_ = "whole";  ///< how the training ended, as far as the file says
};

}  // namespace zs::rolloutfile
