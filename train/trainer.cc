#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/toml.h"
#include "nn/init.h"
#include "optim/grad_clip.h"
#include "train/batch.h"
#include "train/gemm_rate.h"
#include "train/model_flops.h"

namespace sherd {

namespace {

FoundCheckpoint checkpoint_of(const RunConfig& config, const std::string& resume) {
  if (resume.empty()) return {};
  return find_checkpoint(resume == "latest" ? config.run.out : resume);
}

/// A run goes on in its own folder, or begins in a fresh one, perhaps from another run's
/// checkpoint.
FolderUse use_of(const RunConfig& config, const std::string& checkpoint) {
  namespace fs = std::filesystem;
  if (checkpoint.empty() || !fs::is_directory(config.run.out)) return FolderUse::fresh;
  const fs::path inside =
      fs::canonical(checkpoint).lexically_relative(fs::canonical(config.run.out));
  return *inside.begin() == ".." ? FolderUse::fresh : FolderUse::resumed;
}

Dataset open_data(const RunConfig& config, const std::string& cache, const std::string& tokenizer) {
  DatasetOptions options{
      .context = config.model.context, .vocab = config.model.vocab, .cache = cache, .saved = {}};
  if (!tokenizer.empty()) options.saved = parse_tokenizer(tokenizer);
  return open_dataset(config.data, options);
}

}  // namespace

Trainer::Trainer(const RunConfig& config, const TrainerOptions& options)
    : config_(config),
      options_(options),
      checkpoint_(checkpoint_of(config, options.resume)),
      folder_(config.run.out, use_of(config, checkpoint_.path)),
      state_(resumed() ? load_run_state(checkpoint_.path) : RunState{}),
      runtime_(make_runtime(config.run, config.dist.ranks)),
      tape_(runtime_),
      data_(open_data(config, options.cache, state_.tokenizer)),
      sampler_(data_.train.size(), config.model.context, config.data.order(), seed()),
      model_(tape_, gpt2_config(config, data_.vocab)),
      parameters_(parameters(model_)),
      groups_(group_parameters(parameters_, config.optim)),
      optimizer_(make_optimizer(config.optim)),
      schedule_(make_schedule(config)) {
  if (!resumed()) init_parameters(model_, seed());
  slots_ = make_slots(parameters_, groups_, *optimizer_);
  for (const auto& p : parameters_)
    if (!p.parameter.frozen()) trainable_.push_back(p.parameter);
  const RunState saved = state_;
  state_.seed = seed();
  state_.config = write_toml(config_);
  state_.tokenizer = data_.tokenizer ? data_.tokenizer->json() : "";
  state_.isa = name_of(runtime_->isa());
  if (resumed()) resume(saved);
  gemm_rate_ = measure_gemm_rate(runtime_, model_.config.dtype);
  write_file(folder_.config_path(), state_.config);
}

void Trainer::resume(const RunState& saved) {
  const Context in("resuming");
  warnings_ = checkpoint_.skipped;
  const std::string other_isa = check_resume(checkpoint_.path, saved, state_);
  if (!other_isa.empty()) warnings_.push_back(other_isa);
  for (const auto& change : changed_keys(saved.config, state_.config))
    warnings_.push_back("changed since the checkpoint: " + change);
  check(saved.step <= config_.run.steps, "the checkpoint has made", saved.step,
        "steps, more than run.steps =", config_.run.steps);
  load_model(checkpoint_.path, model_tensors());
  load_optimizer(checkpoint_.path, *optimizer_, slots_);
  optimizer_->set_steps(saved.optimizer_steps);
}

void Trainer::save() {
  const Context in("saving");
  PosixFileSystem files;
  state_.optimizer_steps = optimizer_->steps();
  save_run_state(files, folder_.checkpoints(config_.checkpoint.dir), state_, model_tensors(),
                 slots_, static_cast<int>(config_.checkpoint.keep));
}

std::vector<NamedTensor> Trainer::model_tensors() const {
  std::vector<NamedTensor> tensors;
  for (const auto& p : parameters_) tensors.push_back({p.name, p.parameter.value()});
  return tensors;
}

void Trainer::run(std::ostream& out) {
  MetricsFile metrics(folder_.metrics_path(), state_.step);
  Progress progress(out, options_.progress);
  const std::int64_t eval_every = data_.validation.empty() ? 0 : config_.train.eval_every;
  const std::int64_t save_every = config_.checkpoint.every;
  for (bool stop = false; !finished() && !stop;) {
    StepMetrics m = step();
    if (eval_every > 0 && (finished() || state_.step % eval_every == 0)) m.val_loss = evaluate();
    take_peak(m);
    metrics.append(m);
    show(m, progress);
    stop = options_.should_stop && options_.should_stop();
    if (finished() || stop || (save_every > 0 && state_.step % save_every == 0)) save();
  }
}

StepMetrics Trainer::step() {
  const Context in("step ", state_.step + 1);
  const double begin_s = steady_seconds();
  runtime_->allocator().reset_peak();
  Loss loss;
  for (std::int64_t g = 0; g < num_micro_batches(); ++g) {
    const Loss more = forward_backward(g);
    if (!std::isfinite(more.sum)) explain_not_finite(g, g + 1, "the loss is not finite");
    loss.sum += more.sum;
    loss.tokens += more.tokens;
  }
  // Backward gave gradients of the sum of losses; this is the one division by the tokens.
  const double scale = loss.tokens > 0 ? 1 / static_cast<double>(loss.tokens) : 0;
  take_gradients();
  const GradNorm norm = grad_norm(slots_, scale, NormKind::two);
  if (!norm.not_finite.empty())
    explain_not_finite(0, num_micro_batches(), "a gradient is not finite: " + norm.not_finite);
  const double lr = schedule_.at(state_.step);
  optimizer_->step(slots_, lr, scale * clip_factor(norm.norm, config_.train.clip_norm));
  drop_gradients();

  StepMetrics m;
  m.step = ++state_.step;
  m.tokens = state_.tokens += loss.tokens;
  m.epoch = sampler_.epoch_of(state_.samples);
  state_.samples += config_.samples_per_step();
  m.loss = loss.sum * scale;
  m.grad_norm = norm.norm;
  m.lr = lr;
  const double seconds = steady_seconds() - begin_s;
  m.step_ms = seconds * 1e3;
  m.tokens_per_s = static_cast<double>(loss.tokens) / seconds;
  if (gemm_rate_ > 0) m.sol = model_flops(model_.config, loss.tokens) / seconds / gemm_rate_;
  return m;
}

Trainer::Loss Trainer::forward_backward(std::int64_t g) {
  const Context in("micro-batch ", g);
  const RandomKey key = RandomKey{seed(), 0}
                            .derive("dropout")
                            .derive(static_cast<std::uint64_t>(state_.step))
                            .derive(static_cast<std::uint64_t>(g));
  const CategoryScope scope(*runtime_, Category::activations);
  const LossResult loss = loss_of(micro_batch(g), {.training = true, .key = key});
  const Loss out{loss.loss.value().item(), loss.tokens};
  if (std::isfinite(out.sum)) tape_.backward(loss.loss);
  return out;
}

double Trainer::evaluate() {
  const Context in("evaluation");
  const CategoryScope scope(*runtime_, Category::activations);
  const NoGrad no_grad(tape_);
  const Sampler sampler(data_.validation.size(), config_.model.context, SampleOrder::shuffled,
                        seed());
  const std::int64_t B = config_.train.micro_batch;
  const std::int64_t all = sampler.samples_per_epoch();
  const std::int64_t samples = std::min(std::min(config_.train.eval_batches, all / B + 1) * B, all);
  Loss total;
  for (std::int64_t first = 0; first < samples; first += B) {
    const LossResult loss =
        loss_of(read_batch(data_.validation, sampler, first, std::min(B, samples - first)), {});
    total.sum += loss.loss.value().item();
    total.tokens += loss.tokens;
  }
  const double mean = total.sum / static_cast<double>(total.tokens);
  if (!std::isfinite(mean)) fail_as(ErrorKind::numeric, "the validation loss is not finite");
  return mean;
}

LossResult Trainer::loss_of(const std::vector<std::int32_t>& rows, const ForwardOptions& options) {
  const std::int64_t T = config_.model.context;
  const Tensor all =
      Tensor::from(runtime_, {static_cast<std::int64_t>(rows.size()) / (T + 1), T + 1}, rows);
  return model_.loss(all.slice(1, 0, T).contiguous(), all.slice(1, 1, T + 1).contiguous(), options);
}

void Trainer::explain_not_finite(std::int64_t begin, std::int64_t end, const std::string& what) {
  tape_.clear();
  tape_.check_finite(true);
  const Context in(what);
  for (std::int64_t g = begin; g < end; ++g) forward_backward(g);  // throws at the first such value
  fail_as(ErrorKind::numeric, "every op gave finite values; their sum did not");
}

void Trainer::take_gradients() {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].grad = trainable_[i].grad();
}

void Trainer::drop_gradients() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].grad = {};
    trainable_[i].set_grad({});
  }
}

void Trainer::take_peak(StepMetrics& m) {
  MemoryPeak peak = runtime_->allocator().peak();
  m.peak_bytes = peak.bytes;
  if (peak.bytes > peak_.bytes) peak_ = std::move(peak);
}

std::vector<std::int32_t> Trainer::micro_batch(std::int64_t g) const {
  const std::int64_t B = config_.train.micro_batch;
  return read_batch(data_.train, sampler_, first_sample(state_.samples, g, B), B);
}

std::int64_t Trainer::num_micro_batches() const {
  return config_.train.num_accumulate(config_.dist.ranks);
}

void Trainer::show(const StepMetrics& m, Progress& progress) const {
  if (m.val_loss) {
    char text[80];
    std::snprintf(text, sizeof text, "step %lld: validation loss %.4f",
                  static_cast<long long>(m.step), *m.val_loss);
    progress.line(text);
  }
  if (m.step % config_.train.log_every != 0 && !finished()) return;
  char text[80];
  std::snprintf(text, sizeof text, "loss %.4f  %.0f tokens/s", m.loss, m.tokens_per_s);
  progress.update(m.step, config_.run.steps, text);
}

}  // namespace sherd
