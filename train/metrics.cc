#include "train/metrics.h"

#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace sherd {
namespace {

Json comm_json(const CommBytes& c) {
  return Json::Object{{"all_gather", c.all_gather},
                      {"reduce_scatter", c.reduce_scatter},
                      {"all_reduce", c.all_reduce},
                      {"control", c.control},
                      {"eval", c.eval},
                      {"checkpoint", c.checkpoint},
                      {"padding", c.padding}};
}

/// The lines whose step is at most `steps_kept`; a last line that was cut off is not one.
std::string lines_up_to(const std::string& text, std::int64_t steps_kept) {
  std::string kept;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const Json json = Json::parse(line);
    if (json.at("step").integer() <= steps_kept) kept += line + '\n';
  }
  return kept;
}

}  // namespace

std::string metrics_line(const StepMetrics& m) {
  Json::Object o{{"step", m.step}, {"tokens", m.tokens}, {"epoch", m.epoch}, {"loss", m.loss}};
  if (m.val_loss) o.emplace_back("val_loss", *m.val_loss);
  o.emplace_back("grad_norm", std::isfinite(m.grad_norm) ? Json(m.grad_norm) : Json());
  o.emplace_back("lr", m.lr);
  o.emplace_back("step_ms", m.step_ms);
  o.emplace_back("tokens_per_s", m.tokens_per_s);
  if (m.sol) o.emplace_back("sol", *m.sol);
  o.emplace_back("peak_bytes", m.peak_bytes);
  o.emplace_back("comm_bytes", comm_json(m.comm_bytes));
  o.emplace_back("exposed_comm_ms", m.exposed_comm_ms);
  if (m.loss_scale) o.emplace_back("loss_scale", *m.loss_scale);
  o.emplace_back("skipped", m.skipped);
  return Json(std::move(o)).text(0);
}

MetricsFile::MetricsFile(const std::string& path, std::int64_t steps_kept) : path_(path) {
  if (std::filesystem::is_regular_file(path)) {
    const Context in("reading ", path);
    write_file(path, lines_up_to(read_file(path), steps_kept));
  }
  out_.open(path, std::ios::app);
  if (!out_) fail_as(ErrorKind::io, "cannot write", path);
}

void MetricsFile::append(const StepMetrics& metrics) {
  out_ << metrics_line(metrics) << '\n' << std::flush;
  if (!out_) fail_as(ErrorKind::io, "cannot write to", path_, "- is the disk full?");
}

}  // namespace sherd
