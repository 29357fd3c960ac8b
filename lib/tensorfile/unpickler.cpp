// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "tensorfile/pickle.hpp"

namespace zs::tensorfile {
namespace {

// While a pickle is read its values form a graph (a list may be met again, and hold itself): nodes in one arena that
// refer to each other by index. What comes out is a tree of Values.
using Id = std::uint32_t;
struct Global {
  std::string name;
};
struct Kept {  // what a persistent id stands for
  StoragePtr storage;
  std::optional<Dtype> dtype;  // of the storage's class; none for an untyped one
};
struct Sequence {
  std::vector<Id> ids;
  bool tuple = false;
};
struct Pairs {
  std::vector<Id> ids;  // key, value, key, value, ...
};
using Node = std::variant<Value, Sequence, Pairs, Global, Kept>;

constexpr int kDepth = 100;

// Names that may stand for a value or be called. Their meaning is in Unpickler::call().
const std::set<std::string, std::less<>> kCallable = {
    "collections.OrderedDict", "torch.Size", "torch.nn.parameter.Parameter", "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state", "torch._tensor._rebuild_from_type_v2",
    // written by LibTorch's pickle_save
    "torch.jit._pickle.restore_type_tag", "torch.jit._pickle.build_intlist", "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.build_doublelist", "torch.jit._pickle.build_boollist"};
const std::set<std::string, std::less<>> kInert = {"torch.Tensor", "torch.UntypedStorage",
                                                   "torch.storage.UntypedStorage"};

// "torch.float32" -> f32 by `find`; nothing for a name outside of torch.
template <class Find>
std::optional<Dtype> in_torch(const std::string& name, Find find) {
  constexpr std::string_view kModule = "torch.";
  if (!name.starts_with(kModule)) return std::nullopt;
  return find(std::string_view(name).substr(kModule.size()));
}

bool allowed(const std::string& name) {
  return kCallable.contains(name) || kInert.contains(name) || in_torch(name, from_torch_name) ||
         in_torch(name, from_storage_class);
}

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& place, const StorageSource& source)
      : bytes_(bytes), place_(place), source_(source) {}

  Value read() {
    while (true) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      step(opcode);
    }
    budget_ = nodes_.size() * 4 + 1000000;
    return convert(pop(), 0);
  }

 private:
  std::string_view bytes_;
  const std::string& place_;
  const StorageSource& source_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Id> memo_;
  std::size_t budget_ = 0;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(place_ + ": byte " + std::to_string(opcode_at_), 0, what);
  }

  // ---- bytes and stack --------------------------------------------------------------------------------------------
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) fail("the pickle ends too early");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("the pickle ends too early");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  void push(Id id) { stack_.push_back(id); }
  void push_new(Node node) {
    if (nodes_.size() >= std::numeric_limits<Id>::max()) fail("too many values");
    nodes_.push_back(std::move(node));
    push(static_cast<Id>(nodes_.size() - 1));
  }
  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("malformed pickle: nothing on the stack");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }
  Id top() {
    const Id id = pop();
    push(id);
    return id;
  }
  std::vector<Id> pop_mark() {
    if (marks_.empty()) fail("malformed pickle: no mark on the stack");
    std::vector<Id> ids(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return ids;
  }
  std::vector<Id> pop_ids(std::size_t count) {
    std::vector<Id> ids(count);
    while (count > 0) ids[--count] = pop();
    return ids;
  }

  // ---- typed access to nodes: these throw where the type is another -----------------------------------------------
  template <class T>
  T& as(Id id, const char* what) {
    T* const held = std::get_if<T>(&nodes_[id]);
    if (!held) fail(std::string("malformed pickle: expected ") + what);
    return *held;
  }
  const std::string& text(Id id) {
    const std::string* const held = as<Value>(id, "text").get<std::string>();
    if (!held) fail("malformed pickle: expected text");
    return *held;
  }
  std::int64_t integer(Id id) {
    const std::int64_t* const held = as<Value>(id, "an integer").get<std::int64_t>();
    if (!held) fail("malformed pickle: expected an integer");
    return *held;
  }
  bool is_none(Id id) const {
    const Value* const held = std::get_if<Value>(&nodes_[id]);
    return held && held->is_none();
  }
  Tensor tensor(Id id) {
    const Tensor* const held = as<Value>(id, "a tensor").get<Tensor>();
    if (!held) fail("malformed pickle: expected a tensor");
    return *held;
  }
  Shape shape(Id id) {
    Shape shape;
    for (const Id element : as<Sequence>(id, "a tuple").ids) shape.push_back(integer(element));
    return shape;
  }

  // ---- one opcode -------------------------------------------------------------------------------------------------
  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const auto protocol = number<std::uint8_t>();
        if (protocol < 2 || protocol > 5) fail("pickle protocol " + std::to_string(protocol) + ", expected 2 to 5");
        return;
      }
      case 0x95:
        take(8);
        return;  // FRAME
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':  // POP
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return;
      case '1':
        pop_mark();
        return;
      case '2':
        push(top());
        return;
      // values
      case 'N':
        return push_new(Value());
      case 0x88:
        return push_new(Value(true));
      case 0x89:
        return push_new(Value(false));
      case 'J':
        return push_new(Value(number<std::int32_t>()));
      case 'K':
        return push_new(Value(number<std::uint8_t>()));
      case 'M':
        return push_new(Value(number<std::uint16_t>()));
      case 0x8A:
        return push_long(take(number<std::uint8_t>()));
      case 0x8B:
        return push_long(take(number<std::uint32_t>()));
      case 'G':
        return push_real(take(8));
      case 'X':
      case 'T':
        return push_text(take(number<std::uint32_t>()));
      case 'U':
      case 0x8C:
        return push_text(take(number<std::uint8_t>()));
      case 0x8D:
        return push_text(take(number<std::uint64_t>()));
      // containers
      case ']':
        return push_new(Sequence{});
      case '}':
        return push_new(Pairs{});
      case ')':
        return push_new(Sequence{{}, true});
      case 't':
        return push_new(Sequence{pop_mark(), true});
      case 0x85:
        return push_new(Sequence{pop_ids(1), true});
      case 0x86:
        return push_new(Sequence{pop_ids(2), true});
      case 0x87:
        return push_new(Sequence{pop_ids(3), true});
      case 'a':
        return append(pop_ids(1));
      case 'e':
        return append(pop_mark());
      case 's':
        return set_items(pop_ids(2));
      case 'u':
        return set_items(pop_mark());
      // memo
      case 'q':
        memo_[number<std::uint8_t>()] = top();
        return;
      case 'r':
        memo_[number<std::uint32_t>()] = top();
        return;
      case 0x94:
        memo_.emplace(memo_.size(), top());
        return;
      case 'h':
        return recall(number<std::uint8_t>());
      case 'j':
        return recall(number<std::uint32_t>());
      // names, calls, storages
      case 'c': {
        const std::string module(line());
        return push_global(module, std::string(line()));
      }
      case 0x93: {
        const std::vector<Id> ids = pop_ids(2);
        return push_global(text(ids[0]), text(ids[1]));
      }
      case 'R':
      case 0x81: {
        const std::vector<Id> ids = pop_ids(2);
        const std::vector<Id> arguments = as<Sequence>(ids[1], "a tuple of arguments").ids;
        return call(as<Global>(ids[0], "a name to call").name, arguments);
      }
      case 'b': {  // BUILD: attributes of an OrderedDict
        pop();
        as<Pairs>(top(), "a dict to set attributes of");
        return;
      }
      case 'Q':
        return push_storage(pop());
      default:
        break;
    }
    constexpr const char* kHex = "0123456789abcdef";
    fail(std::string("opcode 0x") + kHex[opcode >> 4] + kHex[opcode & 15] + " is not allowed");
  }

  void push_text(std::string_view text) { push_new(Value(text)); }

  void push_long(std::string_view bytes) {  // two's complement of any length
    if (bytes.size() > 8) fail("an integer of " + std::to_string(bytes.size()) + " bytes does not fit 64 bits");
    std::uint64_t value = !bytes.empty() && (bytes.back() & 0x80) ? ~std::uint64_t{0} : 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    push_new(Value(static_cast<std::int64_t>(value)));
  }

  void push_real(std::string_view bytes) {  // big-endian
    std::uint64_t bits = 0;
    for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    push_new(Value(value));
  }

  void push_global(const std::string& module, const std::string& name) {
    std::string full = module + "." + name;
    if (!allowed(full)) fail("global " + full + " is not allowed: only tensors and plain values are read");
    push_new(Global{std::move(full)});
  }

  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("malformed pickle: nothing under memo " + std::to_string(key));
    push(found->second);
  }

  void append(const std::vector<Id>& ids) {
    Sequence& list = as<Sequence>(top(), "a list to append to");
    if (list.tuple) fail("malformed pickle: expected a list to append to");
    list.ids.insert(list.ids.end(), ids.begin(), ids.end());
  }

  void set_items(const std::vector<Id>& ids) {
    if (ids.size() % 2 != 0) fail("malformed pickle: a key without a value");
    std::vector<Id>& pairs = as<Pairs>(top(), "a dict to set items of").ids;
    pairs.insert(pairs.end(), ids.begin(), ids.end());
  }

  // ---- tensors ----------------------------------------------------------------------------------------------------
  // ("storage", class, key, device, elements)
  void push_storage(Id id) {
    const std::vector<Id> parts = as<Sequence>(id, "a tuple that names a storage").ids;
    if (parts.size() != 5 || text(parts[0]) != "storage") fail("malformed pickle: expected the name of a storage");
    const std::string type = as<Global>(parts[1], "a class of storage").name;
    const std::string key = text(parts[2]);
    const std::int64_t count = integer(parts[4]);
    Kept kept{source_(key), in_torch(type, from_storage_class)};
    if (!kept.dtype && type != "torch.UntypedStorage" && type != "torch.storage.UntypedStorage") {
      fail(type + " is no class of storage");
    }
    const std::uint64_t size = kept.dtype ? size_of(*kept.dtype) : 1;
    if (count < 0 || kept.storage->size() % size != 0 ||
        kept.storage->size() / size != static_cast<std::uint64_t>(count)) {
      fail("storage " + key + " has " + std::to_string(kept.storage->size()) + " bytes, expected " +
           std::to_string(count) + " elements of " + std::to_string(size));
    }
    push_new(std::move(kept));
  }

  // storage, offset, shape, strides, then what does not matter here: gradient, hooks, [dtype]; last, from PyTorch 2.0
  // on, the bits at `metadata` that say how to look at the elements: {"conj": True}, {"neg": True}.
  void push_tensor(const std::vector<Id>& arguments, std::optional<Dtype> dtype, std::size_t metadata) {
    if (arguments.size() > metadata && !is_none(arguments[metadata]) &&
        !as<Pairs>(arguments[metadata], "a dict of a tensor's metadata").ids.empty()) {
      fail("a tensor whose conjugation or negation was left for later: save it after resolve_conj().resolve_neg()");
    }
    const Kept& kept = as<Kept>(arguments[0], "a storage");
    if (!dtype) dtype = kept.dtype;
    if (!dtype) fail("a tensor of an untyped storage without a dtype");
    Tensor tensor{*dtype, shape(arguments[2]), shape(arguments[3]), integer(arguments[1]), kept.storage};
    try {
      tensor.check();
    } catch (const Error& error) {
      fail(error.what());
    }
    push_new(Value(std::move(tensor)));
  }

  void call(const std::string name, const std::vector<Id>& arguments) {  // a copy: nodes move
    const auto expect = [&](std::size_t least, std::size_t most) {
      if (arguments.size() < least || arguments.size() > most) {
        fail(name + " with " + std::to_string(arguments.size()) + " arguments");
      }
    };
    if (name == "collections.OrderedDict") {
      expect(0, 1);
      Pairs pairs;
      if (!arguments.empty()) {
        for (const Id pair : as<Sequence>(arguments[0], "a list of pairs").ids) {
          const Sequence& ids = as<Sequence>(pair, "a pair");
          if (ids.ids.size() != 2) fail("malformed pickle: expected a pair");
          pairs.ids.insert(pairs.ids.end(), ids.ids.begin(), ids.ids.end());
        }
      }
      push_new(std::move(pairs));
    } else if (name == "torch.Size") {
      expect(1, 1);
      push_new(Sequence{as<Sequence>(arguments[0], "a tuple").ids, true});
    } else if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2") {
      expect(4, 7);
      push_tensor(arguments, std::nullopt, 6);
    } else if (name == "torch._utils._rebuild_tensor_v3") {
      expect(7, 8);
      const std::string type = as<Global>(arguments[6], "a dtype").name;
      const std::optional<Dtype> dtype = in_torch(type, from_torch_name);
      if (!dtype) fail(type + " is no dtype");
      push_tensor(arguments, dtype, 7);
    } else if (name == "torch._tensor._rebuild_from_type_v2") {  // a function, a class, its arguments, attributes
      expect(4, 4);
      const std::string function = as<Global>(arguments[0], "a name to call").name;
      if (function == name) fail(name + " of itself");
      const std::vector<Id> inner = as<Sequence>(arguments[2], "a tuple of arguments").ids;
      call(function, inner);
    } else if (name.starts_with("torch._utils._rebuild_parameter") || name == "torch.nn.parameter.Parameter") {
      expect(1, 4);
      push_new(Value(tensor(arguments[0])));
    } else if (name.starts_with("torch.jit._pickle.")) {  // a value and its type in words: the value
      expect(1, 2);
      push(arguments[0]);
    } else {
      fail("global " + name + " is not allowed to be called");
    }
  }

  // ---- the result -------------------------------------------------------------------------------------------------
  Value convert(Id id, int depth) {
    if (depth > kDepth) fail("values nested deeper than " + std::to_string(kDepth) + " levels");
    if (budget_-- == 0) fail("too many values: containers that hold each other");
    const Node& node = nodes_[id];
    if (const Value* value = std::get_if<Value>(&node)) return *value;
    if (const Sequence* sequence = std::get_if<Sequence>(&node)) {
      std::vector<Value> values;
      for (const Id element : sequence->ids) values.push_back(convert(element, depth + 1));
      if (sequence->tuple) return Tuple{std::move(values)};
      return List{std::move(values)};
    }
    if (const Pairs* pairs = std::get_if<Pairs>(&node)) return convert_dict(*pairs, depth);
    if (const Global* global = std::get_if<Global>(&node)) {
      if (in_torch(global->name, from_torch_name)) return Value(global->name);
      fail("a " + global->name + " as a value");
    }
    fail("a storage without a tensor");
  }

  // Of equal keys the last value counts, at the place of the first: as in Python.
  Dict convert_dict(const Pairs& pairs, int depth) {
    Dict dict;
    std::unordered_map<std::string, std::size_t> texts;
    std::unordered_map<std::int64_t, std::size_t> integers;
    for (std::size_t i = 0; i < pairs.ids.size(); i += 2) {
      Item item{convert(pairs.ids[i], depth + 1), convert(pairs.ids[i + 1], depth + 1)};
      std::size_t place = dict.items.size();
      if (const std::string* text = item.key.get<std::string>()) {
        place = texts.emplace(*text, place).first->second;
      } else if (const std::int64_t* number = item.key.get<std::int64_t>()) {
        place = integers.emplace(*number, place).first->second;
      }
      if (place == dict.items.size()) {
        dict.items.push_back(std::move(item));
      } else {
        dict.items[place] = std::move(item);
      }
    }
    return dict;
  }
};

}  // namespace

Value unpickle(std::string_view bytes, const std::string& place, const StorageSource& source) {
  return Unpickler(bytes, place, source).read();
}

}  // namespace zs::tensorfile
