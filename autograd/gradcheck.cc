#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace sherd {

namespace {

/// In [-1, 1], by index alone (splitmix64).
double noise(uint64_t stream, uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u + stream * 0xd1b54a32d192ed03u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

std::vector<double> noises(uint64_t stream, int64_t n) {
  std::vector<double> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = noise(stream, i);
  return x;
}

class Check {
 public:
  Check(Tape& tape, const std::function<Variable(const std::vector<Variable>&)>& f,
        const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : tape_(tape), f_(f), options_(options) {
    for (const auto& x : inputs) {
      check(x.dtype() == DType::f64, "gradcheck wants f64 inputs, got", x.dtype());
      inputs_.push_back(x.clone());
    }
  }

  GradcheckReport run() {
    std::vector<Variable> leaves;
    for (const auto& x : inputs_) leaves.push_back(tape_.leaf(x));
    const Variable y = f_(leaves);
    check(y.dtype() == DType::f64, "gradcheck wants an f64 output, got", y.dtype());
    weights_ = noises(0, y.value().numel());
    if (y.requires_grad())
      tape_.backward(y, Tensor::from<double>(tape_.runtime(), y.shape(), weights_));
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const int64_t n = inputs_[k].numel();
      std::vector<double> dx(static_cast<size_t>(n), 0.0);
      if (leaves[k].grad()) dx = leaves[k].grad().to_vector<double>();
      n <= options_.max_elements ? per_element(k, dx) : per_direction(k, dx);
    }
    report_.ok = report_.worst <= 1;
    return report_;
  }

 private:
  double loss() {
    const NoGrad no_grad(tape_);
    std::vector<Variable> constants;
    for (const auto& x : inputs_) constants.push_back(tape_.constant(x));
    const auto y = f_(constants).value().to_vector<double>();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += weights_[i] * y[i];
    return sum;
  }

  void per_element(size_t k, const std::vector<double>& dx) {
    double* const x = inputs_[k].data<double>();
    double largest = 0;
    for (const double d : dx) largest = std::max(largest, std::abs(d));
    for (size_t i = 0; i < dx.size(); ++i) {
      const double before = x[i];
      const double h = options_.step * std::max(1.0, std::abs(before));
      x[i] = before + h;
      const double above = loss();
      x[i] = before - h;
      const double below = loss();
      x[i] = before;
      compare(k, dx[i], (above - below) / (2 * h), largest, "element", i);
    }
  }

  void per_direction(size_t k, const std::vector<double>& dx) {
    double* const x = inputs_[k].data<double>();
    const auto before = inputs_[k].to_vector<double>();
    for (int d = 0; d < options_.directions; ++d) {
      const auto v = noises(static_cast<uint64_t>(d) + 1, static_cast<int64_t>(dx.size()));
      double slope = 0;
      double scale = 0;
      for (size_t i = 0; i < dx.size(); ++i) {
        slope += dx[i] * v[i];
        scale = std::max(scale, std::abs(dx[i] * v[i]));
      }
      const auto at = [&](double h) {
        for (size_t i = 0; i < before.size(); ++i) x[i] = before[i] + h * v[i];
        return loss();
      };
      const double quotient = (at(options_.step) - at(-options_.step)) / (2 * options_.step);
      std::copy(before.begin(), before.end(), x);
      compare(k, slope, quotient, std::max(scale, std::abs(slope)), "direction",
              static_cast<size_t>(d));
    }
  }

  void compare(size_t input, double backward, double quotient, double largest, const char* what,
               size_t index) {
    const double allowed = options_.absolute + options_.relative * largest;
    double ratio = std::abs(backward - quotient) / allowed;
    if (!std::isfinite(ratio)) ratio = HUGE_VAL;
    if (ratio <= report_.worst && !report_.text.empty()) return;
    report_.worst = std::max(report_.worst, ratio);
    std::ostringstream text;
    text.precision(17);
    text << "input " << input << " " << describe(inputs_[input]) << ", " << what << ' ' << index
         << ": backward gives " << backward << ", the difference quotient " << quotient
         << ", allowed error " << allowed;
    report_.text = text.str();
  }

  Tape& tape_;
  const std::function<Variable(const std::vector<Variable>&)>& f_;
  const GradcheckOptions options_;
  std::vector<Tensor> inputs_;
  std::vector<double> weights_;
  GradcheckReport report_;
};

}  // namespace

GradcheckReport gradcheck(Tape& tape,
                          const std::function<Variable(const std::vector<Variable>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  return Check(tape, f, inputs, options).run();
}

}  // namespace sherd
