// SPDX-License-Identifier: Apache-2.0
#include "image/listing.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "image/image.hpp"

namespace zs::image {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// The content of a folder, ordered by name, without hidden files.
struct Inside {
  Names folders, files;
};

Inside inside(const std::string& folder) {
  Inside found;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(".")) continue;
    if (printable(name) != name)
      throw Error(printable(entry.string()), 0,
                  "its name holds control characters or is not UTF-8: rename it, it is written into logs and reports");
    (is_folder(entry) ? found.folders : found.files).push_back(name);
  }
  return found;
}

bool exists(const std::string& path) { return is_there(path); }

/// Images by class, then made one list.
class Classes {
 public:
  explicit Classes(const Names& names) : names_(names), paths_(names.size()) {}

  void add(std::size_t label, std::string path) { paths_[label].push_back(std::move(path)); }

  Part part() const {
    Part part;
    std::size_t most = 0;
    for (const Names& of_class : paths_) most = std::max(most, of_class.size());
    for (std::size_t i = 0; i < most; ++i) {
      for (std::size_t label = 0; label < paths_.size(); ++label) {
        if (i < paths_[label].size()) part.add(paths_[label][i], static_cast<std::int64_t>(label));
      }
    }
    return part;
  }

  /// The label for the name of a file or folder at `where`.
  std::size_t label(const std::string& name, const std::string& where, std::int64_t line) const {
    const auto found = std::lower_bound(names_.begin(), names_.end(), name);
    if (found == names_.end() || *found != name)
      throw Error(where, line, "class '" + name + "' has no folder among the others" + did_you_mean(name, names_));
    return static_cast<std::size_t>(found - names_.begin());
  }

 private:
  const Names& names_;
  std::vector<Names> paths_;
};

/// Folders of classes. Every one of `classes` must be there if it is the training part.
Part in_folders(const std::string& root, const Names& classes, Names& left_out) {
  Classes found(classes);
  for (const std::string& name : inside(root).folders) {
    const std::string folder = root + "/" + name;
    const std::size_t label = found.label(name, folder, 0);
    const Inside here = inside(folder);
    if (!here.folders.empty())
      throw Error(folder + "/" + here.folders.front(), 0, "is a folder inside a class: images are expected");
    bool any = false;
    for (const std::string& file : here.files) {
      const std::string path = folder + "/" + file;
      if (!names_image(file)) {
        left_out.push_back(path);
        continue;
      }
      found.add(label, path);
      any = true;
    }
    if (!any) throw Error(folder, 0, "is a class without an image (*.jpg, *.jpeg, *.png)");
  }
  for (const std::string& file : inside(root).files) left_out.push_back(root + "/" + file);
  return found.part();
}

bool is_food101(const std::string& folder) {
  return exists(folder + "/images") && exists(folder + "/meta/train.txt") && exists(folder + "/meta/test.txt");
}

/// Lines of "apple_pie/1005649".
Part named_in(const std::string& folder, const std::string& file, const Names& classes) {
  const std::string path = folder + "/meta/" + file;
  std::istringstream lines(Input(path).read_all());
  Classes found(classes);
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) throw Error(path, number, "'" + line + "' is not CLASS/IMAGE");
    const std::size_t label = found.label(line.substr(0, slash), path, number);
    const std::string image = folder + "/images/" + line + ".jpg";
    if (!exists(image)) throw Error(path, number, "there is no " + image);
    found.add(label, image);
  }
  return found.part();
}

/// The folder of a part under any of its names; "" if there is none.
std::string part_folder(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const std::string path = folder + "/" + name; is_folder(path)) return path;
  }
  return "";
}

std::string class_root(const std::string& folder) {
  if (is_food101(folder)) return folder + "/images";
  const std::string train = part_folder(folder, {"train"});
  return train.empty() ? folder : train;
}

}  // namespace

void Part::add(std::string path, std::int64_t label) {
  paths.push_back(std::move(path));
  labels.push_back(label);
}

Names classes_of(const std::string& folder) { return is_folder(folder) ? inside(class_root(folder)).folders : Names(); }

Listing list(const std::string& folder) {
  Listing listing;
  listing.classes = classes_of(folder);
  if (listing.classes.size() < 2)
    throw Error(folder, 0,
                "holds " + to_text(static_cast<std::int64_t>(listing.classes.size())) +
                    " folders: images are expected in a folder for each class, at least two");
  if (is_food101(folder)) {
    listing.training = named_in(folder, "train.txt", listing.classes);
    listing.validation = named_in(folder, "test.txt", listing.classes);
    return listing;
  }
  listing.training = in_folders(class_root(folder), listing.classes, listing.left_out);
  if (class_root(folder) == folder) return listing;
  const auto read = [&](Part& part, std::initializer_list<const char*> names) {
    if (const std::string path = part_folder(folder, names); !path.empty())
      part = in_folders(path, listing.classes, listing.left_out);
  };
  read(listing.validation, {"valid", "val", "validation", "dev"});
  read(listing.test, {"test"});
  return listing;
}

void divide(Part& from, Part& to, double share) {
  std::map<std::int64_t, std::int64_t> of_class, kept;
  for (const std::int64_t label : from.labels) ++of_class[label];
  std::int64_t held = 0;
  for (const auto& [label, count] : of_class) {
    const auto taken = static_cast<std::int64_t>(static_cast<double>(count) * share);
    kept[label] = count - taken;
    held += taken;
  }
  if (held == 0 && !from.labels.empty()) --kept[from.labels.back()];  // from the class with the most images
  Part rest;
  for (std::size_t i = 0; i < from.paths.size(); ++i)
    (kept[from.labels[i]]-- > 0 ? rest : to).add(from.paths[i], from.labels[i]);
  from = std::move(rest);
}

}  // namespace zs::image
