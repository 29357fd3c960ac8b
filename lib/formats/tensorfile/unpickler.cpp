// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <unordered_map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "tensorfile/graph.hpp"
#include "tensorfile/meaning.hpp"
#include "tensorfile/pickle.hpp"

namespace zs::tensorfile {
namespace {

// The machine that runs a pickle as a program: a stack with marks, and a memo. Opcodes are the ones in CPython's
// Lib/pickletools.py.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const StorageSource& source, Names names)
      : bytes_(bytes), source_(source), objects_(names == Names::any), graph_(objects_) {}

  // Throws Malformed; at() then is the byte of the opcode.
  Value read() {
    while (true) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') return graph_.tree(pop());
      step(opcode);
    }
  }
  std::size_t at() const { return opcode_at_; }

 private:
  std::string_view bytes_;
  const StorageSource& source_;
  bool objects_;
  std::size_t at_ = 0, opcode_at_ = 0;
  Graph graph_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Id> memo_;

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) throw Malformed{"the pickle ends too early"};
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
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) throw Malformed{"the pickle ends too early"};
    std::string text(take(end - at_));
    take(1);
    return text;
  }

  void push(Id id) { stack_.push_back(id); }
  void push_new(Node node) { push(graph_.add(std::move(node))); }
  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      throw Malformed{"malformed pickle: nothing on the stack"};
    }
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
    if (marks_.empty()) throw Malformed{"malformed pickle: no mark on the stack"};
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

  void step(unsigned char opcode) {
    if (step_frame(opcode) || step_value(opcode) || step_container(opcode) || step_call(opcode)) return;
    if (objects_ && step_objects(opcode)) return;
    constexpr const char* kHex = "0123456789abcdef";
    throw Malformed{std::string("opcode 0x") + kHex[opcode >> 4] + kHex[opcode & 15] + " is not allowed"};
  }

  // Each takes the opcodes of one kind, and returns false at others.

  /// The stream itself, the stack and the memo.
  bool step_frame(unsigned char opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const auto protocol = number<std::uint8_t>();
        if (protocol >= 2 && protocol <= 5) return true;
        throw Malformed{"pickle protocol " + std::to_string(protocol) + ", expected 2 to 5"};
      }
      case 0x95:  // FRAME
        return take(8), true;
      case '(':
        return marks_.push_back(stack_.size()), true;
      case '0':  // POP
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return true;
      case '1':
        return pop_mark(), true;
      case '2':
        return push(top()), true;
      case 'q':
        memo_[number<std::uint8_t>()] = top();
        return true;
      case 'r':
        memo_[number<std::uint32_t>()] = top();
        return true;
      case 0x94:
        return memo_.emplace(memo_.size(), top()), true;
      case 'h':
        return recall(number<std::uint8_t>()), true;
      case 'j':
        return recall(number<std::uint32_t>()), true;
      default:
        return false;
    }
  }

  bool step_value(unsigned char opcode) {
    switch (opcode) {
      case 'N':
        return push_new(Value()), true;
      case 0x88:
        return push_new(Value(true)), true;
      case 0x89:
        return push_new(Value(false)), true;
      case 'J':
        return push_new(Value(number<std::int32_t>())), true;
      case 'K':
        return push_new(Value(number<std::uint8_t>())), true;
      case 'M':
        return push_new(Value(number<std::uint16_t>())), true;
      case 0x8A:
        return push_long(take(number<std::uint8_t>())), true;
      case 0x8B:
        return push_long(take(number<std::uint32_t>())), true;
      case 'G':
        return push_real(take(8)), true;
      case 'X':
      case 'T':
        return push_new(Value(take(number<std::uint32_t>()))), true;
      case 'U':
      case 0x8C:
        return push_new(Value(take(number<std::uint8_t>()))), true;
      case 0x8D:
        return push_new(Value(take(number<std::uint64_t>()))), true;
      default:
        return false;
    }
  }

  bool step_container(unsigned char opcode) {
    switch (opcode) {
      case ']':
        return push_new(Sequence{}), true;
      case '}':
        return push_new(Pairs{}), true;
      case ')':
        return push_new(Sequence{{}, true}), true;
      case 't':
        return push_new(Sequence{pop_mark(), true}), true;
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return push_new(Sequence{pop_ids(opcode - 0x84U), true}), true;
      case 'a':
        return append(pop_ids(1)), true;
      case 'e':
        return append(pop_mark()), true;
      case 's':
        return set_items(pop_ids(2)), true;
      case 'u':
        return set_items(pop_mark()), true;
      default:
        return false;
    }
  }

  /// Names, calls, storages.
  bool step_call(unsigned char opcode) {
    switch (opcode) {
      case 'c': {
        const std::string module = line();
        return push_global(module + "." + line()), true;
      }
      case 0x93: {
        const std::vector<Id> ids = pop_ids(2);
        return push_global(graph_.text(ids[0]) + "." + graph_.text(ids[1])), true;
      }
      case 'R':
      case 0x81: {
        const std::vector<Id> ids = pop_ids(2);
        const std::vector<Id> arguments = graph_.as<Sequence>(ids[1], "a tuple of arguments").ids;
        return push(called(ids[0], arguments)), true;
      }
      case 'b':
        return build(pop()), true;
      case 'Q':
        return push(keep(graph_, pop(), source_)), true;
      default:
        return false;
    }
  }

  /// The opcodes that only objects need.
  bool step_objects(unsigned char opcode) {
    switch (opcode) {
      case 'B':
        push_new(Value(take(number<std::uint32_t>())));
        return true;
      case 'C':
        push_new(Value(take(number<std::uint8_t>())));
        return true;
      case 0x8E:
      case 0x96:  // bytes, a bytearray
        push_new(Value(take(number<std::uint64_t>())));
        return true;
      case 0x8F:
        push_new(Made{"builtins.set"});
        return true;
      case 0x90: {  // ADDITEMS
        const std::vector<Id> ids = pop_mark();
        std::vector<Id>& elements = graph_.as<Made>(top(), "a set to add to").elements;
        elements.insert(elements.end(), ids.begin(), ids.end());
        return true;
      }
      case 0x91: {
        Made made{"builtins.frozenset"};
        made.elements = pop_mark();
        push_new(std::move(made));
        return true;
      }
      case 0x92: {  // NEWOBJ_EX: class, arguments, named ones
        const std::vector<Id> ids = pop_ids(3);
        std::vector<Id> arguments = graph_.as<Sequence>(ids[1], "a tuple of arguments").ids;
        arguments.push_back(ids[2]);
        push(called(ids[0], arguments));
        return true;
      }
      default:
        return false;
    }
  }

  Id called(Id callee, const std::vector<Id>& arguments) {
    if (objects_) {
      // A value requested from an object would be called: functools.partial, a bound method.
      const Global* const global = graph_.find<Global>(callee);
      if (!global) return graph_.add(Made{"(a call of an object)", arguments});
      if (!is_allowed(global->name)) return call_inert(graph_, std::string(global->name), arguments);
    }
    const std::string name = graph_.as<Global>(callee, "a name to call").name;
    return call(graph_, name, arguments);
  }

  /// Attributes of an OrderedDict, which are left out, or of an object.
  void build(Id state) {
    const Id id = top();
    if (Made* const made = graph_.find<Made>(id)) {
      made->state = {state};
    } else if (!objects_) {
      graph_.as<Pairs>(id, "a dict to set attributes of");
    }
  }

  void push_long(std::string_view bytes) {  // two's complement of any length
    if (bytes.size() > 8 && objects_) return push_new(Value("0x" + to_hex(std::string(bytes.rbegin(), bytes.rend()))));
    if (bytes.size() > 8) {
      throw Malformed{"an integer of " + std::to_string(bytes.size()) + " bytes does not fit 64 bits"};
    }
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

  void push_global(std::string name) {
    if (objects_ && !is_allowed(name) && is_hostile(name))
      throw Malformed{"the pickle names " + name +
                      ", which no checkpoint needs: it would run something in Python; nothing was run here"};
    if (!objects_ && !is_allowed(name))
      throw Malformed{"global " + name + " is not allowed: only tensors and plain values are read"};
    push_new(Global{std::move(name)});
  }

  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) throw Malformed{"malformed pickle: nothing under memo " + std::to_string(key)};
    push(found->second);
  }

  void append(const std::vector<Id>& ids) {
    if (Made* const made = graph_.find<Made>(top())) {
      made->elements.insert(made->elements.end(), ids.begin(), ids.end());
      return;
    }
    Sequence& list = graph_.as<Sequence>(top(), "a list to append to");
    if (list.tuple) throw Malformed{"malformed pickle: expected a list to append to"};
    list.ids.insert(list.ids.end(), ids.begin(), ids.end());
  }

  void set_items(const std::vector<Id>& ids) {
    if (ids.size() % 2 != 0) throw Malformed{"malformed pickle: a key without a value"};
    Made* const made = graph_.find<Made>(top());
    std::vector<Id>& pairs = made ? made->pairs : graph_.as<Pairs>(top(), "a dict to set items of").ids;
    pairs.insert(pairs.end(), ids.begin(), ids.end());
  }
};

}  // namespace

Value unpickle(std::string_view bytes, const std::string& place, const StorageSource& source, Names names) {
  Unpickler unpickler(bytes, source, names);
  try {
    return unpickler.read();
  } catch (const Malformed& malformed) {
    throw Error(place + ": byte " + std::to_string(unpickler.at()), 0, malformed.what);
  }
}

}  // namespace zs::tensorfile
