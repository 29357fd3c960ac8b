// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/meaning.hpp"

#include <set>
#include <string_view>

#include "base/error.hpp"

namespace zs::tensorfile {
namespace {

const std::set<std::string, std::less<>> kCallable = {
    "collections.OrderedDict", "torch.Size", "torch.nn.parameter.Parameter", "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state", "torch._tensor._rebuild_from_type_v2",
    // written by LibTorch's pickle_save
    "torch.jit._pickle.restore_type_tag", "torch.jit._pickle.build_intlist", "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.build_doublelist", "torch.jit._pickle.build_boollist"};
const std::set<std::string, std::less<>> kUntyped = {"torch.UntypedStorage", "torch.storage.UntypedStorage"};

constexpr std::size_t kDimensions = 64;  // PyTorch's own bound

// "torch.FloatStorage" -> f32.
std::optional<Dtype> dtype_of_class(const std::string& name) {
  constexpr std::string_view kModule = "torch.";
  if (!name.starts_with(kModule)) return std::nullopt;
  return from_storage_class(std::string_view(name).substr(kModule.size()));
}

// storage, offset, shape, strides, then parts that are ignored: gradient, hooks, [dtype]; last, from PyTorch 2.0 on,
// the bits at `metadata` that modify the elements: {"conj": True}, {"neg": True}.
Id rebuild(Graph& graph, const std::vector<Id>& arguments, std::optional<Dtype> dtype, std::size_t metadata) {
  if (arguments.size() > metadata && !graph.is_none(arguments[metadata]) &&
      !graph.as<Pairs>(arguments[metadata], "a dict of a tensor's metadata").ids.empty()) {
    throw Malformed{
        "a tensor whose conjugation or negation was left for later: save it after resolve_conj().resolve_neg()"};
  }
  const Kept& kept = graph.as<Kept>(arguments[0], "a storage");
  if (!dtype) dtype = kept.dtype;
  if (!dtype) throw Malformed{"a tensor of an untyped storage without a dtype"};
  Tensor tensor{*dtype, graph.shape(arguments[2]), graph.shape(arguments[3]), graph.integer(arguments[1]),
                kept.storage};
  if (tensor.shape.size() > kDimensions) throw Malformed{"a tensor of more than 64 dimensions"};
  try {
    tensor.check();
  } catch (const Error& error) {
    throw Malformed{error.what()};
  }
  return graph.add(Value(std::move(tensor)));
}

Id ordered_dict(Graph& graph, const std::vector<Id>& arguments) {
  Pairs pairs;
  if (!arguments.empty()) {
    for (const Id pair : graph.as<Sequence>(arguments[0], "a list of pairs").ids) {
      const Sequence& ids = graph.as<Sequence>(pair, "a pair");
      if (ids.ids.size() != 2) throw Malformed{"malformed pickle: expected a pair"};
      pairs.ids.insert(pairs.ids.end(), ids.ids.begin(), ids.ids.end());
    }
  }
  return graph.add(std::move(pairs));
}

}  // namespace

bool is_allowed(const std::string& name) {
  return kCallable.contains(name) || kUntyped.contains(name) || name == "torch.Tensor" || as_dtype(name) ||
         dtype_of_class(name);
}

bool is_hostile(std::string_view name) {
  static const std::set<std::string_view> modules = {"os",         "posix",       "nt",
                                                     "subprocess", "sys",         "importlib",
                                                     "runpy",      "pty",         "socket",
                                                     "shutil",     "ctypes",      "marshal",
                                                     "code",       "codeop",      "types",
                                                     "operator",   "timeit",      "pdb",
                                                     "bdb",        "cProfile",    "profile",
                                                     "trace",      "inspect",     "webbrowser",
                                                     "urllib",     "http",        "ftplib",
                                                     "ssl",        "platform",    "signal",
                                                     "threading",  "asyncio",     "multiprocessing",
                                                     "concurrent", "tempfile",    "requests",
                                                     "pip",        "ensurepip",   "venv",
                                                     "unittest",   "doctest",     "pickle",
                                                     "_pickle",    "cloudpickle", "dill",
                                                     "joblib",     "linecache",   "pydoc",
                                                     "site",       "zipimport",   "pkgutil",
                                                     "imp",        "idlelib",     "distutils",
                                                     "setuptools", "smtplib",     "telnetlib",
                                                     "xmlrpc",     "commands",    "io",
                                                     "_io"};
  // Calls that only make a value of their arguments.
  static const std::set<std::string_view> harmless = {
      "set",   "frozenset", "dict",  "list", "tuple", "complex", "bytearray",      "bytes",   "slice",
      "range", "int",       "float", "bool", "str",   "object",  "NotImplemented", "Ellipsis"};
  const std::string_view module = name.substr(0, name.find('.')), last = name.substr(name.rfind('.') + 1);
  if (module == "builtins" || module == "__builtin__" || module == "__builtins__")
    return !harmless.contains(last) || name.find('.') != name.rfind('.');
  if (name == "types.SimpleNamespace" || name == "operator.itemgetter") return false;
  if (name.starts_with("torch.hub.") || name.starts_with("torch.utils.cpp_extension") || name == "torch.load" ||
      name == "torch.serialization.load" || name == "codecs.open" || name.starts_with("torch.jit.") ||
      name.starts_with("numpy.testing") || name.starts_with("numpy.f2py") || name.starts_with("numpy.distutils"))
    return true;
  // A name of several points within one module reaches what the module imported: "torch.serialization.os.system".
  for (std::size_t at = name.find('.'); at != std::string_view::npos; at = name.find('.', at + 1)) {
    const std::string_view word = name.substr(at + 1, name.find('.', at + 1) - at - 1);
    if (word == "os" || word == "subprocess" || word == "__builtins__" || word == "sys" || word == "__globals__")
      return true;
  }
  return modules.contains(module);
}

Id call_inert(Graph& graph, const std::string& name, const std::vector<Id>& arguments) {
  // Bytes in the protocols before 3: text and the name of its code.
  if (name == "_codecs.encode" && arguments.size() == 2) return arguments[0];
  Made made{name, arguments};
  // Python's own way to make an object without its constructor: class, base, and the base's state.
  if ((name == "copyreg._reconstructor" || name == "copy_reg._reconstructor") && !arguments.empty()) {
    if (const Global* const type = graph.find<Global>(arguments[0])) made = {type->name};
  }
  return graph.add(std::move(made));
}

Id call(Graph& graph, const std::string& name, const std::vector<Id>& arguments) {
  const auto expect = [&](std::size_t least, std::size_t most) {
    if (arguments.size() < least || arguments.size() > most) {
      throw Malformed{name + " with " + std::to_string(arguments.size()) + " arguments"};
    }
  };
  if (!kCallable.contains(name)) throw Malformed{"global " + name + " is not allowed to be called"};
  if (name == "collections.OrderedDict") {
    expect(0, 1);
    return ordered_dict(graph, arguments);
  }
  if (name == "torch.Size") {
    expect(1, 1);
    return graph.add(Sequence{graph.as<Sequence>(arguments[0], "a tuple").ids, true});
  }
  if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2") {
    expect(4, 7);
    return rebuild(graph, arguments, std::nullopt, 6);
  }
  if (name == "torch._utils._rebuild_tensor_v3") {
    expect(7, 8);
    const std::string type = graph.as<Global>(arguments[6], "a dtype").name;
    if (!as_dtype(type)) throw Malformed{type + " is not a dtype"};
    return rebuild(graph, arguments, as_dtype(type), 7);
  }
  if (name == "torch._tensor._rebuild_from_type_v2") {  // a function, a class, its arguments, attributes
    expect(4, 4);
    const std::string function = graph.as<Global>(arguments[0], "a name to call").name;
    if (function == name) throw Malformed{name + " of itself"};
    const std::vector<Id> inner = graph.as<Sequence>(arguments[2], "a tuple of arguments").ids;
    return call(graph, function, inner);
  }
  if (name.starts_with("torch.jit._pickle.")) {  // a value and its type in words: the value
    expect(1, 2);
    return arguments[0];
  }
  expect(1, 4);  // Parameter and _rebuild_parameter*: a tensor and how it is trained
  return graph.add(Value(Tensor(graph.tensor(arguments[0]))));
}

Id keep(Graph& graph, Id persistent, const std::function<StoragePtr(const std::string& key)>& source) {
  const std::vector<Id> parts = graph.as<Sequence>(persistent, "a tuple that names a storage").ids;
  if (parts.size() != 5 || graph.text(parts[0]) != "storage") {
    throw Malformed{"malformed pickle: expected the name of a storage"};
  }
  const std::string type = graph.as<Global>(parts[1], "a class of storage").name;
  const std::string key = graph.text(parts[2]);
  const std::int64_t count = graph.integer(parts[4]);
  Kept kept{source(key), dtype_of_class(type)};
  if (!kept.dtype && !kUntyped.contains(type)) throw Malformed{type + " is not a class of storage"};
  const std::uint64_t size = kept.dtype ? size_of(*kept.dtype) : 1, bytes = kept.storage->size();
  if (count < 0 || bytes % size != 0 || bytes / size != static_cast<std::uint64_t>(count)) {
    throw Malformed{"storage " + key + " has " + std::to_string(bytes) + " bytes, expected " + std::to_string(count) +
                    " elements of " + std::to_string(size)};
  }
  return graph.add(std::move(kept));
}

}  // namespace zs::tensorfile
