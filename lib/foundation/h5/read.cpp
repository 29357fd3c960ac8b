// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"
#include "h5/call.hpp"
#include "h5/image.hpp"

namespace zs::h5 {
namespace {

// Limit for the expanded datasets of an image in memory: a damaged size must not crash the machine.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 33;

// Deflate compresses at most to a thousandth; rows that were never written take no space in a file.
constexpr std::uint64_t kLargestRatio = 1100;

/// Bytes that the datasets of the image opened last may still take: each may be believable, and their sum not.
std::uint64_t bytes_left = 0;

std::uint64_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// A text as HDF5 gave it, without its padding.
std::string trimmed(const char* text, std::size_t size, H5T_str_t padding) {
  std::string_view cell(text, size);
  if (padding == H5T_STR_NULLTERM) cell = cell.substr(0, cell.find('\0'));
  const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  while (!cell.empty() && cell.back() == pad) cell.remove_suffix(1);
  return std::string(cell);
}

struct Cells {
  std::uint64_t count, most;  ///< values; bytes that they may take
  const Handle &space, &type;
  std::string doing;
};

/// Reads texts by `get(memory type, buffer)`: H5Dread or H5Aread.
template <typename Get>
std::vector<std::string> read_texts(const Cells& cells, Get get) {
  std::vector<std::string> texts;
  texts.reserve(cells.count);
  if (checked(H5Tis_variable_str(cells.type.get()), cells.doing) > 0) {
    std::vector<char*> pointers(cells.count);
    Handle memory = owned(H5Tcopy(H5T_C_S1), cells.doing);
    checked(H5Tset_size(memory.get(), H5T_VARIABLE), cells.doing);
    checked(H5Tset_cset(memory.get(), H5Tget_cset(cells.type.get())), cells.doing);
    checked(get(memory.get(), pointers.data()), cells.doing);
    for (const char* const text : pointers) texts.emplace_back(text ? text : "");
    checked(H5Dvlen_reclaim(memory.get(), cells.space.get(), H5P_DEFAULT, pointers.data()), cells.doing);
    return texts;
  }
  const std::size_t width = H5Tget_size(cells.type.get());
  std::string bytes(cells.count * width, '\0');
  checked(get(cells.type.get(), bytes.data()), cells.doing);
  const H5T_str_t padding = H5Tget_strpad(cells.type.get());
  for (std::uint64_t i = 0; i < cells.count; ++i) texts.push_back(trimmed(bytes.data() + i * width, width, padding));
  return texts;
}

template <typename Get>
Values read_values(const Cells& cells, Get get) {
  const std::size_t width = std::max<std::size_t>(8, H5Tget_size(cells.type.get()));
  if (cells.count > kMostBytes / width || cells.count * width > cells.most) {
    throw Error("cannot " + cells.doing + ": its size of " + std::to_string(cells.count) + " is not believable");
  }
  if (cells.count * width > bytes_left)
    throw Error("cannot " + cells.doing + ": all columns together take too much memory");
  bytes_left -= cells.count * width;
  const auto numbers = [&]<typename T>(std::vector<T> values, hid_t memory) {
    if (cells.count > 0) checked(get(memory, values.data()), cells.doing);
    return values;
  };
  switch (H5Tget_class(cells.type.get())) {
    case H5T_INTEGER: {
      if (H5Tget_sign(cells.type.get()) != H5T_SGN_NONE || H5Tget_size(cells.type.get()) < 8)
        return numbers(std::vector<std::int64_t>(cells.count), H5T_NATIVE_INT64);
      std::vector<std::int64_t> values;  // HDF5 would make the largest integer of those that do not fit
      for (const std::uint64_t value : numbers(std::vector<std::uint64_t>(cells.count), H5T_NATIVE_UINT64)) {
        if (value > INT64_MAX) throw Error("cannot " + cells.doing + ": " + std::to_string(value) + " is too large");
        values.push_back(static_cast<std::int64_t>(value));
      }
      return values;
    }
    case H5T_FLOAT:
      return numbers(std::vector<double>(cells.count), H5T_NATIVE_DOUBLE);
    case H5T_STRING:
      return cells.count > 0 ? read_texts(cells, get) : std::vector<std::string>();
    default:
      throw Error("cannot " + cells.doing + ": only integers, reals and texts are read");
  }
}

std::string attribute_text(hid_t attribute, const std::string& name) {
  const std::string doing = "read attribute '" + name + "'";
  const Handle space = owned(H5Aget_space(attribute), doing), type = owned(H5Aget_type(attribute), doing);
  if (checked(H5Sget_simple_extent_npoints(space.get()), doing) != 1)
    throw Error("cannot " + doing + ": not one value");
  const Values values = read_values({1, kMostBytes, space, type, doing},
                                    [&](hid_t memory, void* buffer) { return H5Aread(attribute, memory, buffer); });
  if (const auto* const integers = std::get_if<0>(&values)) return to_text(integers->front());
  if (const auto* const reals = std::get_if<1>(&values)) return to_text(reals->front());
  return std::get<2>(values).front();
}

Attributes attributes_of(hid_t object) {
  // By number HDF5 would make and sort the whole table for each.
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5A_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  checked(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, take, &names), "list attributes");
  Attributes found;
  for (const std::string& name : names) {
    const Handle attribute = owned(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open an attribute");
    found[name] = attribute_text(attribute.get(), name);
  }
  return found;
}

}  // namespace

std::uint64_t image_size(std::string_view bytes) {
  if (!bytes.starts_with(kSignature)) throw Error("not HDF5 data");
  if (bytes.size() < 48) throw Error("truncated HDF5 data: it ends in its superblock");
  const int version = static_cast<unsigned char>(bytes[8]);
  if (version > 3)
    throw Error("HDF5 superblock version " + std::to_string(version) + " is not known; the data is corrupt or newer");
  const std::size_t address_width_at = version < 2 ? 13 : 9;
  const std::size_t base_at = version == 0 ? 24 : version == 1 ? 28 : 12;
  const std::size_t end_at = base_at + 16;
  if (end_at + 8 > bytes.size()) throw Error("truncated HDF5 data: it ends in its superblock");
  if (bytes[address_width_at] != 8) throw Error("HDF5 data with addresses that are not 8 bytes wide is not supported");
  if (little_endian(bytes, base_at) != 0) throw Error("HDF5 data with a user block is not supported");
  const std::uint64_t size = little_endian(bytes, end_at);
  if (size < 48) throw Error("corrupt HDF5 data: its superblock gives a size of " + std::to_string(size) + " bytes");
  return size;
}

Image Image::open(std::string_view bytes) {
  prepare();
  bytes_left = std::min(kMostBytes, (std::uint64_t{1} << 26) + kLargestRatio * bytes.size());
  static std::uint64_t count = 0;
  const Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), "open the HDF5 data");
  checked(H5Pset_fapl_core(access.get(), 1 << 20, false), "open the HDF5 data");
  checked(H5Pset_file_image(access.get(), const_cast<char*>(bytes.data()), bytes.size()), "open the HDF5 data");
  const std::string name = "zs-read-" + std::to_string(++count);
  return Image(owned(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), "open the HDF5 data"));
}

Group Image::root() const { return Group(owned(H5Gopen2(file_.get(), "/", H5P_DEFAULT), "open the root group")); }

bool Group::has(const std::string& name) const {
  return checked(H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT), "look for '" + name + "'") > 0;
}

std::vector<Member> Group::members() const {
  const Handle properties = owned(H5Gget_create_plist(handle_.get()), "list a group");
  unsigned flags = 0;
  checked(H5Pget_link_creation_order(properties.get(), &flags), "list a group");
  const H5_index_t by = flags & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  H5G_info_t info;
  checked(H5Gget_info(handle_.get(), &info), "list a group");
  std::vector<Member> members;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto get_name = [&](char* buffer, std::size_t size) {
      return checked(H5Lget_name_by_idx(handle_.get(), ".", by, H5_ITER_INC, i, buffer, size, H5P_DEFAULT),
                     "list a group");
    };
    std::string name(static_cast<std::size_t>(get_name(nullptr, 0)), '\0');
    get_name(name.data(), name.size() + 1);
    require_hard(name);
    const Handle object = owned(H5Oopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open '" + name + "'");
    const H5I_type_t type = H5Iget_type(object.get());
    if (type != H5I_GROUP && type != H5I_DATASET) continue;  // a named type holds no data
    members.push_back({name, type == H5I_GROUP});
  }
  return members;
}

/// A link could lead into another file, which was not checked.
void Group::require_hard(const std::string& name) const {
  H5L_info_t link;
  checked(H5Lget_info(handle_.get(), name.c_str(), &link, H5P_DEFAULT), "open group '" + name + "'");
  if (link.type != H5L_TYPE_HARD) throw Error("cannot open '" + name + "': it is a link to another place");
}

Group Group::open(const std::string& name) const {
  require_hard(name);
  return Group(owned(H5Gopen2(handle_.get(), name.c_str(), H5P_DEFAULT), "open group '" + name + "'"));
}

Values Group::read(const std::string& name) const {
  const std::string doing = "read dataset '" + name + "'";
  require_hard(name);
  const Handle dataset = owned(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), doing);
  const Handle space = owned(H5Dget_space(dataset.get()), doing), type = owned(H5Dget_type(dataset.get()), doing);
  if (H5Sget_simple_extent_ndims(space.get()) != 1) throw Error("cannot " + doing + ": it has not one dimension");
  const Handle properties = owned(H5Dget_create_plist(dataset.get()), doing);
  if (H5Pget_layout(properties.get()) == H5D_VIRTUAL || H5Pget_external_count(properties.get()) > 0) {
    throw Error("cannot " + doing + ": its data is in another file");
  }
  const auto rows = static_cast<std::uint64_t>(checked(H5Sget_simple_extent_npoints(space.get()), doing));
  constexpr std::uint64_t kUnwritten = 1 << 22;
  const std::uint64_t most = kUnwritten + kLargestRatio * H5Dget_storage_size(dataset.get());
  return read_values({rows, most, space, type, doing}, [&](hid_t memory, void* buffer) {
    return H5Dread(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

Attributes Group::attributes() const { return attributes_of(handle_.get()); }

Attributes Group::attributes(const std::string& name) const {
  require_hard(name);
  const Handle object = owned(H5Oopen(handle_.get(), name.c_str(), H5P_DEFAULT), "open '" + name + "'");
  return attributes_of(object.get());
}

}  // namespace zs::h5
