#include "autograd/regenerate.h"

#include <memory>
#include <utility>

namespace sherd {

namespace {

/// Owned by the storage that it fills.
class Regenerator final : public StorageGuard {
 public:
  Regenerator(const Variable& y, std::function<Variable()> make)
      : storage_(*y.value().storage()),
        tape_(y.tape()),
        shape_(y.shape()),
        dtype_(y.dtype()),
        make_(std::move(make)) {}

  void before_access(const Storage& /*storage*/) override {
    if (!make_) return;
    const NoGrad no_grad(tape_);
    const Variable again = std::exchange(make_, nullptr)();
    check(again.shape() == shape_ && again.dtype() == dtype_, "made again, a value is",
          describe(again.value()), "and was", shape_, dtype_);
    storage_.take_bytes(*again.value().storage());
  }

 private:
  Storage& storage_;
  Tape& tape_;
  const Shape shape_;
  const DType dtype_;
  std::function<Variable()> make_;
};

}  // namespace

void regenerate(const Variable& y, std::function<Variable()> make) {
  if (!y.requires_grad()) return;
  const Tensor& value = y.value();
  check(value.is_contiguous() &&
            value.storage()->bytes() == static_cast<size_t>(value.numel()) * size_of(value.dtype()),
        "only a value that is the whole of its storage can be made again, not", describe(value));
  value.storage()->own_guard(std::make_unique<Regenerator>(y, std::move(make)));
  value.storage()->release();
}

}  // namespace sherd
