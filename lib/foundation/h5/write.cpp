// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "h5/call.hpp"
#include "h5/image.hpp"

namespace zs::h5 {
namespace {

constexpr std::size_t kChunkRows = 8192, kSmallestChunk = 16;
constexpr std::size_t kSuperblock = 48;
constexpr std::size_t kMostTextBytes = std::size_t{1} << 32;

/// NUL-padded UTF-8. HDF5 has no texts of no length, so an empty one is a NUL.
Handle text_type(std::size_t size) {
  Handle type = owned(H5Tcopy(H5T_C_S1), "make a text type");
  checked(H5Tset_size(type.get(), std::max<std::size_t>(size, 1)), "make a text type");
  checked(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "make a text type");
  checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), "make a text type");
  return type;
}

void set_attribute(hid_t object, const std::string& key, hid_t type, const void* value) {
  const std::string doing = "write attribute '" + key + "'";
  const Handle space = owned(H5Screate(H5S_SCALAR), doing);
  const Handle names = owned(H5Pcreate(H5P_ATTRIBUTE_CREATE), doing);
  checked(H5Pset_char_encoding(names.get(), H5T_CSET_UTF8), doing);
  const Handle made = owned(H5Acreate2(object, key.c_str(), type, space.get(), names.get(), H5P_DEFAULT), doing);
  checked(H5Awrite(made.get(), type, value), doing);
}

void set_text(hid_t object, const std::string& key, std::string_view value) {
  std::string padded(value);
  padded.resize(std::max<std::size_t>(1, value.size()));
  set_attribute(object, key, text_type(value.size()).get(), padded.data());
}

std::size_t chunk_rows(std::size_t rows) {
  std::size_t chunk = kSmallestChunk;
  while (chunk < rows && chunk < kChunkRows) chunk *= 2;
  return chunk;
}

/// Texts side by side in cells of `width` bytes, as HDF5 takes them.
std::string packed(const std::vector<std::string>& texts, std::size_t width) {
  std::string cells(texts.size() * width, '\0');
  for (std::size_t row = 0; row < texts.size(); ++row) {
    std::memcpy(cells.data() + row * width, texts[row].data(), texts[row].size());
  }
  return cells;
}

std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  return width;
}

Handle group_properties() {
  Handle made = owned(H5Pcreate(H5P_GROUP_CREATE), "make a group");
  checked(H5Pset_link_creation_order(made.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "make a group");
  checked(H5Pset_obj_track_times(made.get(), false), "make a group");
  return made;
}

Handle link_properties() {
  Handle made = owned(H5Pcreate(H5P_LINK_CREATE), "make a link");
  checked(H5Pset_char_encoding(made.get(), H5T_CSET_UTF8), "make a link");
  return made;
}

// The memory of an image, to have its final state when the file closes. H5Fget_file_image is not suitable: it clears a
// flag in the superblock of format 1.10 but keeps the old checksum, so the copy cannot be opened.
void* allocate(size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }
void* copy(void* to, const void* from, size_t size, H5FD_file_image_op_t, void*) { return std::memcpy(to, from, size); }
void* keep(void* closed) { return closed; }
herr_t let_go(void*) { return 0; }

void* reallocate(void* memory, size_t size, H5FD_file_image_op_t, void*) { return std::realloc(memory, size); }

herr_t release(void* memory, H5FD_file_image_op_t why, void* closed) {
  if (why == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
    const char* const bytes = static_cast<const char*>(memory);
    static_cast<std::string*>(closed)->assign(bytes, image_size({bytes, kSuperblock}));
  }
  std::free(memory);
  return 0;
}

}  // namespace

Image Image::create() {
  prepare();
  static std::uint64_t count = 0;  // the library takes two images of one name for the same file
  auto closed = std::make_unique<std::string>();
  const std::string doing = "make an HDF5 image";
  const Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), doing);
  checked(H5Pset_fapl_core(access.get(), 1 << 20, false), doing);
  checked(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), doing);
  H5FD_file_image_callbacks_t callbacks{allocate, copy, reallocate, release, keep, let_go, closed.get()};
  checked(H5Pset_file_image_callbacks(access.get(), &callbacks), doing);
  // Format 1.10: its metadata carries checksums, so damage is found, not followed.
  checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), doing);
  const Handle file = owned(H5Pcreate(H5P_FILE_CREATE), doing);
  checked(H5Pset_obj_track_times(file.get(), false), doing);
  checked(H5Pset_link_creation_order(file.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), doing);
  const std::string name = "zs-write-" + std::to_string(++count);
  Image image(owned(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, file.get(), access.get()), doing));
  image.closed_ = std::move(closed);
  return image;
}

std::string Image::finish() {
  file_ = Handle();
  if (closed_->empty()) throw Error("cannot close the HDF5 image");
  return std::move(*closed_);
}

Group Group::make(const std::string& name) {
  const Handle links = link_properties(), properties = group_properties();
  return Group(owned(H5Gcreate2(handle_.get(), name.c_str(), links.get(), properties.get(), H5P_DEFAULT),
                     "make group '" + name + "'"));
}

void Group::set(const std::string& key, std::string_view value) { set_text(handle_.get(), key, value); }

void Group::set(const std::string& key, std::int64_t value) {
  set_attribute(handle_.get(), key, H5T_STD_I64LE, &value);
}

void Group::write(const std::string& name, const Values& values, const Attributes& attributes) {
  const std::string doing = "write dataset '" + name + "'";
  const hsize_t rows = std::visit([](const auto& some) { return some.size(); }, values);
  const hsize_t unlimited = H5S_UNLIMITED, chunk = chunk_rows(rows);
  const Handle space = owned(H5Screate_simple(1, &rows, &unlimited), doing);
  const Handle properties = owned(H5Pcreate(H5P_DATASET_CREATE), doing);
  checked(H5Pset_obj_track_times(properties.get(), false), doing);
  checked(H5Pset_chunk(properties.get(), 1, &chunk), doing);
  checked(H5Pset_fletcher32(properties.get()), doing);
  const Handle links = link_properties();
  const auto put = [&](hid_t type, const void* data) {
    Handle made = owned(
        H5Dcreate2(handle_.get(), name.c_str(), type, space.get(), links.get(), properties.get(), H5P_DEFAULT), doing);
    if (rows > 0) checked(H5Dwrite(made.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), doing);
    return made;
  };
  Handle made;
  if (const auto* const integers = std::get_if<std::vector<std::int64_t>>(&values)) {
    made = put(H5T_STD_I64LE, integers->data());
  } else if (const auto* const reals = std::get_if<std::vector<double>>(&values)) {
    made = put(H5T_IEEE_F64LE, reals->data());
  } else {
    const auto& texts = std::get<std::vector<std::string>>(values);
    const std::size_t width = widest(texts);
    if (width * texts.size() > kMostTextBytes) {
      throw Error("cannot " + doing + ": " + std::to_string(texts.size()) + " texts of up to " + std::to_string(width) +
                  " bytes are more than 4 GB");
    }
    made = put(text_type(width).get(), packed(texts, width).data());
  }
  for (const auto& [key, value] : attributes) set_text(made.get(), key, value);
}

namespace {

/// `stored` is the type in the file, `given` the type of the values in memory.
void write_values(const Handle& group, const std::string& name, const void* values, hid_t stored, hid_t given,
                  const std::vector<std::uint64_t>& shape) {
  const std::string doing = "write dataset '" + name + "'";
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const Handle space = owned(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), doing);
  const Handle properties = owned(H5Pcreate(H5P_DATASET_CREATE), doing);
  checked(H5Pset_obj_track_times(properties.get(), false), doing);
  const Handle links = link_properties();
  const Handle made = owned(
      H5Dcreate2(group.get(), name.c_str(), stored, space.get(), links.get(), properties.get(), H5P_DEFAULT), doing);
  checked(H5Dwrite(made.get(), given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), doing);
}

}  // namespace

void Group::write_array(const std::string& name, const std::vector<std::int64_t>& values,
                        const std::vector<std::uint64_t>& shape) {
  write_values(handle_, name, values.data(), H5T_STD_I64LE, H5T_NATIVE_INT64, shape);
}

void Group::write_array(const std::string& name, const std::vector<float>& values,
                        const std::vector<std::uint64_t>& shape) {
  write_values(handle_, name, values.data(), H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, shape);
}

}  // namespace zs::h5
