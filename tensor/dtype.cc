#include "tensor/dtype.h"

namespace sherd {

DType parse_dtype(std::string_view name) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64,
                        DType::u8, DType::boolean})
    if (name == name_of(t)) return t;
  fail("unknown dtype", name, "; known are f32, f64, bf16, f16, i32, i64, u8, bool");
}

}  // namespace sherd
