// Module: parameters and children under names, and a forward of its own. fields() lists them once;
// names, counts, freezing, initial values and saving all come from that list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/parameter.h"

namespace sherd {

class Module;

/// What a module's fields() calls for each of its parameters and children.
class ModuleVisitor {
 public:
  virtual ~ModuleVisitor() = default;
  virtual void operator()(const std::string& name, Parameter& parameter) = 0;
  virtual void operator()(const std::string& name, Module& child) = 0;
  /// Children "name.0", "name.1", …
  template <class M>
  void operator()(const std::string& name, std::vector<M>& children) {
    for (size_t i = 0; i < children.size(); ++i)
      (*this)(name + '.' + std::to_string(i), static_cast<Module&>(children[i]));
  }
};

/// A base for structs of parameters and layers, inherited from once:
///   struct Mlp : Module {
///     Linear up, down;
///     void fields(ModuleVisitor& visit) override { visit("up", up); visit("down", down); }
///     Variable forward(const Variable& x) { … }
///   };
/// Moved, never copied: two modules share a parameter by holding copies of the Parameter.
class Module {
 public:
  virtual ~Module() = default;
  virtual void fields(ModuleVisitor& visit) = 0;

 protected:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
};

struct NamedParameter {
  std::string name;
  Parameter parameter;
  /// Further names of the same parameter (a tied weight).
  std::vector<std::string> aliases;
};

/// Every parameter of `module` and its children once, under its first dotted name, in the order of
/// fields(). Throws usage when two parameters have one name.
std::vector<NamedParameter> parameters(Module& module);

/// Writes those names into the parameters, where errors, memory reports, gradients and optimizers
/// read them. A model's constructor ends with it; init_parameters does it too.
void name_parameters(Module& module);

struct ParameterCounts {
  int64_t total = 0;
  int64_t trainable = 0;
};

/// Elements, each parameter once.
ParameterCounts count_parameters(Module& module);

/// Freezes the parameters of which any name matches the glob `pattern` ("wte.*", "*.bias"; * spans
/// dots): no gradient, and so no optimizer state. Returns how many; throws usage if none.
int64_t freeze(Module& module, std::string_view pattern);
/// The way back.
int64_t unfreeze(Module& module, std::string_view pattern);

}  // namespace sherd
