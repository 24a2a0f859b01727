#include "nn/init.h"

#include "base/error.h"

namespace sherd {

void fill_initial(const Tensor& rows, const Init& init, RandomKey key, int64_t begin) {
  const int64_t columns = rows.dims() == 0 ? 1 : rows.shape().columns(1);
  const int64_t first = begin * columns;
  switch (init.kind) {
    case Init::Kind::constant:
      return rows.fill(init.scale);
    case Init::Kind::uniform:
      return fill_uniform(rows, key, -init.scale, init.scale, first);
    case Init::Kind::normal:
      return fill_normal(rows, key, 0, init.scale, first);
  }
}

RandomKey initial_key(uint64_t seed, std::string_view name) {
  return RandomKey{.seed = seed}.derive("init").derive(name);
}

void init_parameters(Module& module, uint64_t seed) {
  name_parameters(module);
  for (const auto& p : parameters(module))
    fill_initial(p.parameter.value(), p.parameter.init(), initial_key(seed, p.name));
}

}  // namespace sherd
