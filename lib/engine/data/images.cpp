// SPDX-License-Identifier: Apache-2.0
#include "data/images.hpp"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <numbers>
#include <thread>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/mapped.hpp"
#include "base/number.hpp"
#include "image/image.hpp"
#include "image/listing.hpp"

namespace zs::data {
namespace {

std::uint64_t mixed(std::uint64_t key, std::int64_t value) { return XXH3_64bits_withSeed(&value, sizeof value, key); }

/// Calls `work` with 0 ... count - 1, by several threads; throws what the first of them in this order threw.
void each(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  std::atomic<std::int64_t> next = 0;
  const auto run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[static_cast<std::size_t>(i)] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) others.emplace_back(run);
  run();
  others.clear();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Makes one sample after another, each on its own.
class Made : public Dataset {
 public:
  Made(std::int64_t size, const Images& images) : size_(size), images_(images) {}
  std::int64_t size() const override { return size_; }

  Samples read(std::span<const Draw> draws) const override {
    const auto pixels = static_cast<std::size_t>(3 * images_.transform.size * images_.transform.size);
    Samples samples{
        std::ssize(draws), {}, std::vector<float>(draws.size() * pixels), std::vector<std::int64_t>(draws.size())};
    each(samples.count, images_.threads, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      samples.targets[at] = make(draws[at], std::span(samples.pixels).subspan(at * pixels, pixels));
    });
    return samples;
  }

 protected:
  const Images& settings() const { return images_; }

 private:
  std::int64_t size_;
  Images images_;

  /// Fills in the pixels and gives the label.
  virtual std::int64_t make(const Draw& draw, std::span<float> pixels) const = 0;
};

class Files final : public Made {
 public:
  Files(image::Part part, const Images& images, bool training)
      : Made(part.size(), images), part_(std::move(part)), training_(training) {}

 private:
  image::Part part_;
  bool training_;

  std::int64_t make(const Draw& draw, std::span<float> pixels) const override {
    const auto at = static_cast<std::size_t>(draw.sample);
    const auto file = Mapping::open(part_.paths[at]);
    try {
      image::apply(settings().transform, image::decode(file->bytes(), file->path()), training_,
                   mixed(mixed(settings().seed, draw.epoch), draw.sample), pixels);
    } catch (const Error& error) {
      throw Error(std::string(error.what()) + ": mend it, or leave such images out by --skip_bad_images");
    }
    return part_.labels[at];
  }
};

/// Waves whose direction is that of the class, and noise as strong.
class Generated final : public Made {
 public:
  Generated(std::int64_t first, std::int64_t size, const Images& images) : Made(size, images), first_(first) {}

 private:
  std::int64_t first_;

  std::int64_t make(const Draw& draw, std::span<float> pixels) const override {
    const std::int64_t labels = std::ssize(settings().labels), number = first_ + draw.sample, label = number % labels,
                       S = settings().transform.size;
    const double turn = std::numbers::pi * static_cast<double>(label) / static_cast<double>(labels),
                 step = 4 * std::numbers::pi / static_cast<double>(S), dx = std::cos(turn) * step,
                 dy = std::sin(turn) * step;
    const std::uint64_t key = mixed(settings().seed, number);
    for (std::int64_t i = 0; i < 3 * S * S; ++i) {
      const double wave =
          std::sin(dx * static_cast<double>(i % S) + dy * static_cast<double>(i / S % S) + static_cast<double>(label));
      const double noise = static_cast<double>(mixed(key, i) >> 11) * 0x1p-52 - 1;
      pixels[static_cast<std::size_t>(i)] = static_cast<float>(0.5 * wave + 0.5 * noise);
    }
    return label;
  }
};

Split generated(const Images& images) {
  constexpr std::int64_t kSize = 256;
  const std::int64_t size =
      images.most > 0 ? images.most : std::max<std::int64_t>(1, std::llround(kSize * images.percentage / 100));
  const auto share = [&](double portion) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(size) * portion));
  };
  Split split;
  split.path = kGenerated;
  split.training = std::make_unique<Generated>(0, size, images);
  split.validation = std::make_unique<Generated>(size, share(images.held_out.validation), images);
  if (images.held_out.test > 0)
    split.test = std::make_unique<Generated>(size + split.validation->size(), share(images.held_out.test), images);
  split.labels = images.labels;
  split.sha256 = sha256("generated images 1: " + to_text(size) + " " + to_text(std::ssize(images.labels)) + " " +
                        to_text(static_cast<std::int64_t>(images.seed)));
  return split;
}

/// Numbers the classes as the model does.
void number(image::Listing& listing, const std::string& path, const std::vector<std::string>& labels) {
  if (listing.classes.size() > labels.size()) {
    const std::string classes = to_text(std::ssize(listing.classes));
    throw Error(path, 0,
                "has " + classes + " classes, the model " + to_text(std::ssize(labels)) + " labels: set --num_labels " +
                    classes);
  }
  std::vector<std::int64_t> numbers;
  for (const std::string& name : listing.classes) {
    const auto found = std::ranges::find(labels, name);
    if (found == labels.end()) throw Error(path, 0, "class '" + name + "' is not a label of the model");
    numbers.push_back(found - labels.begin());
  }
  for (image::Part* const part : {&listing.training, &listing.validation, &listing.test}) {
    for (std::int64_t& label : part->labels) label = numbers[static_cast<std::size_t>(label)];
  }
}

/// The first `count` of a part.
void cut(image::Part& part, std::int64_t count) {
  const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, part.size()));
  part.paths.resize(size);
  part.labels.resize(size);
}

/// "3 images are bad: dir/a.jpg: is empty; dir/b.jpg: is cut short; ..."
std::string summary(const std::vector<std::string>& bad) {
  constexpr std::size_t kNamed = 3;
  std::string text = to_text(std::ssize(bad)) + (bad.size() == 1 ? " image is bad: " : " images are bad: ");
  for (std::size_t i = 0; i < std::min(bad.size(), kNamed); ++i) text += (i == 0 ? "" : "; ") + bad[i];
  return text + (bad.size() > kNamed ? "; ..." : "");
}

/// Reads the files of a part and leaves out what is bad; "HASH LABEL" for each of the others.
std::string read_all(image::Part& part, const Images& images, std::vector<std::string>& bad) {
  std::vector<std::string> lines(part.paths.size()), reasons(part.paths.size());
  each(part.size(), images.threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const auto file = Mapping::open(part.paths[at]);
    try {
      if (images.skip_bad)
        image::decode(file->bytes(), file->path());
      else
        image::check(file->bytes(), file->path());
    } catch (const Error& error) {
      reasons[at] = error.what();
      return;
    }
    const XXH128_hash_t hash = XXH3_128bits(file->bytes().data(), file->bytes().size());
    lines[at] = to_hex({reinterpret_cast<const char*>(&hash), sizeof hash}) + " " + to_text(part.labels[at]) + "\n";
  });
  std::string text;
  image::Part good;
  for (std::size_t i = 0; i < part.paths.size(); ++i) {
    text += lines[i];
    if (reasons[i].empty())
      good.add(part.paths[i], part.labels[i]);
    else
      bad.push_back(reasons[i]);
  }
  part = std::move(good);
  return text;
}

}  // namespace

Split images(const Images& images) {
  if (images.path == kGenerated) return generated(images);
  image::Listing listing = image::list(images.path);
  number(listing, images.path, images.labels);
  Split split;
  split.notes = images.held_out.without_effect(listing.validation.size() > 0, listing.test.size() > 0);
  if (listing.validation.size() == 0) divide(listing.training, listing.validation, images.held_out.validation);
  if (listing.test.size() == 0 && images.held_out.test > 0)
    divide(listing.training, listing.test, images.held_out.test);

  std::vector<std::string> bad;
  std::string content;
  for (image::Part* const part : {&listing.training, &listing.validation, &listing.test}) {
    const std::int64_t size = static_cast<std::int64_t>(static_cast<double>(part->size()) * images.percentage / 100);
    cut(*part, part == &listing.training && images.most > 0 ? std::min(size, images.most) : size);
    content += to_text(part->size()) + "\n" + read_all(*part, images, bad);
  }
  if (!bad.empty() && !images.skip_bad)
    throw Error(images.path, 0, summary(bad) + ": mend them, or leave them out by --skip_bad_images");
  if (!bad.empty()) split.notes.push_back(images.path + ": left out, " + summary(bad));
  if (listing.training.size() == 0 || listing.validation.size() == 0)
    throw Error(images.path, 0,
                "leaves no image to " + std::string(listing.training.size() == 0 ? "train on" : "validate with"));
  if (!listing.left_out.empty())
    split.notes.push_back(images.path + ": " + to_text(std::ssize(listing.left_out)) +
                          " files are not *.jpg, *.jpeg or *.png and are left out: " + listing.left_out.front() +
                          (listing.left_out.size() > 1 ? ", ..." : ""));
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  split.sha256 = "xxh128:" + to_hex({reinterpret_cast<const char*>(&hash), sizeof hash});
  split.path = images.path;
  split.labels = images.labels;
  const bool tested = listing.test.size() > 0;
  split.training = std::make_unique<Files>(std::move(listing.training), images, true);
  split.validation = std::make_unique<Files>(std::move(listing.validation), images, false);
  if (tested) split.test = std::make_unique<Files>(std::move(listing.test), images, false);
  return split;
}

}  // namespace zs::data
