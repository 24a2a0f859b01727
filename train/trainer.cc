#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/toml.h"
#include "dist/tree_fold.h"
#include "nn/init.h"
#include "optim/grad_clip.h"
#include "train/batch.h"
#include "train/event_file.h"
#include "train/gemm_rate.h"
#include "train/make_model.h"
#include "train/mask_tokens.h"
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
    : Trainer(config, options, [&] {
        check(config.dist.ranks == 1, "a Trainer of one rank was given a configuration of",
              config.dist.ranks);
        const RuntimePtr runtime = make_runtime(config.run);
        auto solo = solo_communicator(runtime);
        Communicator* const comm = solo.get();
        return Place{std::move(solo), runtime, comm};
      }()) {}

Trainer::Trainer(const RunConfig& config, const TrainerOptions& options, Rank& rank)
    : Trainer(config, options, Place{nullptr, rank.runtime, &rank.comm}) {}

Trainer::Trainer(const RunConfig& config, const TrainerOptions& options, Place place)
    : config_(config),
      options_(options),
      checkpoint_(checkpoint_of(config, options.resume)),
      solo_(std::move(place.solo)),
      runtime_(std::move(place.runtime)),
      comm_(*place.comm),
      state_(resumed() ? load_run_state(checkpoint_.path) : RunState{}),
      tape_(runtime_),
      data_(open_data(config, options.cache, state_.tokenizer)),
      sampler_(data_.train.size(), config.model.context, config.data.order(), seed()),
      model_([&] {
        const DeferParameters defer(*runtime_);
        // An encoder has a row more, for the token that hides others.
        return make_model(tape_, config, data_.vocab + (config.model.arch == "encoder" ? 1 : 0));
      }()),
      parameters_(parameters(*model_)),
      groups_(group_parameters(parameters_, config.optim)),
      optimizer_(make_optimizer(config)),
      schedule_(make_schedule(config)),
      plan_(make_plan(config, parameters_)),
      mesh_(comm_, plan_.replicas),
      loss_scale_(make_loss_scale(config.precision)) {
  if (first_rank()) folder_.emplace(config.run.out, use_of(config, checkpoint_.path));
  sharded_ = fully_shard(*model_, tape_, mesh_, plan_);
  if (!resumed()) sharded_->init(seed());
  slots_.emplace(make_slots(*sharded_, groups_, *optimizer_));
  const RunState saved = state_;
  state_.seed = seed();
  state_.config = write_toml(config_);
  state_.tokenizer = data_.tokenizer ? data_.tokenizer->json() : "";
  state_.isa = name_of(runtime_->isa());
  if (resumed()) resume(saved);
  for (auto& line : without_effect(config_)) warnings_.push_back(std::move(line));
  if (first_rank()) {
    gemm_rate_ = measure_gemm_rate(runtime_, model_->sizes().dtype) * comm_.size();
    write_file(folder_->config_path(), state_.config);
  }
  comm_.barrier({"start"});
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
  load(checkpoint_.path);
  optimizer_->set_steps(saved.optimizer_steps);
  if (loss_scale_.dynamic() && saved.loss_scale) loss_scale_.set_state(*saved.loss_scale);
}

void Trainer::load(const std::string& path) {
  const CategoryScope scope(*runtime_, Category::staging);
  std::vector<NamedTensor> model;
  for (const auto& p : parameters_)
    model.push_back({p.name, Tensor::empty(runtime_, p.parameter.shape(), p.parameter.dtype())});
  load_model(path, model);
  for (const auto& t : model) sharded_->set_value(t.name, t.tensor);
  std::vector<Slot> slots;
  for (const auto& p : sharded_->trainable())
    slots.push_back({.name = p.name, .value = Tensor::empty(runtime_, p.shape, p.value.dtype())});
  load_optimizer(path, *optimizer_, slots);
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const auto& s : slots[i].state)
      sharded_->state(slots[i].name, slots_->slots()[i].find_state(s.name)).assign(s.tensor);
  comm_.barrier({"loaded"});
}

void Trainer::save() {
  const Context in("saving");
  tell("gives its part to the checkpoint");
  const std::vector<NamedTensor> model = whole_model();
  const std::vector<Slot> slots = whole_slots();
  state_.optimizer_steps = optimizer_->steps();
  if (loss_scale_.dynamic()) state_.loss_scale = loss_scale_.state();
  if (first_rank()) {
    PosixFileSystem files;
    save_run_state(files, folder_->checkpoints(config_.checkpoint.dir), state_, model, slots,
                   static_cast<int>(config_.checkpoint.keep));
  }
  comm_.barrier({"saved"});
}

std::vector<NamedTensor> Trainer::whole_model() {
  std::vector<NamedTensor> tensors;
  for (const auto& p : parameters_)
    tensors.push_back({p.name, sharded_->value(p.name).full(p.name)});
  return tensors;
}

std::vector<Slot> Trainer::whole_slots() {
  std::vector<Slot> whole;
  for (const auto& slot : slots_->slots()) {
    Slot& w = whole.emplace_back();
    w.name = slot.name;
    for (const auto& s : slot.state)
      w.state.push_back({s.name, sharded_->state(slot.name, s.tensor).full(slot.name)});
  }
  return whole;
}

void Trainer::run(std::ostream& out) {
  std::optional<MetricsFile> metrics;
  std::optional<EventFile> events;
  if (first_rank()) {
    metrics.emplace(folder_->metrics_path(), state_.step);
    if (config_.log.tensorboard) events.emplace(folder_->path(), state_.step, state_.config);
  }
  const bool plain = !first_rank() && options_.progress != ProgressMode::quiet;
  Progress progress(out, plain ? ProgressMode::plain : options_.progress);
  if (options_.narrate > 0) narrate_to([&out](const std::string& line) { out << line << '\n'; });
  const std::int64_t eval_every = data_.validation.empty() ? 0 : config_.train.eval_every;
  const std::int64_t save_every = config_.checkpoint.every;
  const std::int64_t narrated = state_.step + options_.narrate;
  for (bool stop = false; !finished() && !stop;) {
    if (state_.step == narrated) narrate_to({});
    StepMetrics m = step();
    if (eval_every > 0 && (finished() || state_.step % eval_every == 0)) m.val_loss = evaluate();
    take_peak(m);
    stop = share_counters(m);
    if (metrics) metrics->append(m);
    if (events) events->append(m);
    show(m, progress);
    if (finished() || stop || (save_every > 0 && state_.step % save_every == 0)) save();
  }
}

StepMetrics Trainer::step() {
  const Context in("step ", state_.step + 1);
  const double begin_s = steady_seconds();
  runtime_->allocator().reset_peak();
  const bool every = plan_.sync == Sync::every;
  std::vector<Loss> losses;
  for (std::int64_t k = 0; k < num_micro_batches(); ++k) {
    sharded_->set_sync(every || k + 1 == num_micro_batches());
    losses.push_back(forward_backward(k));
    if (!std::isfinite(losses.back().sum)) explain_not_finite(k, k + 1, "the loss is not finite");
  }
  slots_->finish_gradients();
  const Loss loss = sum_losses(losses);
  tell("has the step's loss: ", loss.tokens, " tokens of ", comm_.size(), " ranks");
  // Backward gave gradients of the scaled sum of losses; this is the one division by the tokens.
  const double per_token = loss.tokens > 0 ? 1 / static_cast<double>(loss.tokens) : 0;
  const double scale = per_token / backward_scale_now();
  const GradNorm norm = slots_->norm(scale);
  // The norm is the same on every rank, and so all ranks skip.
  const bool overflowed = !std::isfinite(norm.norm);
  const bool skip = overflowed && loss_scale_.can_back_off();
  if (!skip && !norm.not_finite.empty())
    explain_not_finite(0, num_micro_batches(), "a gradient is not finite: " + norm.not_finite);
  // Another rank has it, and ends this one when it has found out more.
  if (!skip && overflowed) comm_.barrier({"a gradient is not finite"});
  const double lr = schedule_.at(optimizer_->steps());
  const double loss_scale = loss_scale_.value();
  if (skip) {
    tell("skips the update: gradients overflowed at loss scale ", loss_scale);
    slots_->skip();
    loss_scale_.step_skipped();
  } else {
    tell("updates its part of the parameters: gradient norm ", norm.norm, ", lr ", lr);
    slots_->step(*optimizer_, lr, scale * clip_factor(norm.norm, config_.train.clip_norm));
    loss_scale_.step_taken();
  }
  tell("ends step ", state_.step + 1);

  StepMetrics m;
  m.step = ++state_.step;
  m.tokens = state_.tokens += loss.tokens;
  m.epoch = sampler_.epoch_of(state_.samples);
  state_.samples += config_.samples_per_step();
  m.loss = loss.sum * per_token;
  m.grad_norm = norm.norm;
  m.skipped = skip;
  if (loss_scale_.dynamic()) m.loss_scale = loss_scale;
  m.lr = lr;
  const double seconds = steady_seconds() - begin_s;
  m.step_ms = seconds * 1e3;
  m.tokens_per_s = static_cast<double>(loss.tokens) / seconds;
  if (gemm_rate_ > 0) m.sol = model_flops(model_->sizes(), loss.tokens) / seconds / gemm_rate_;
  return m;
}

Trainer::Loss Trainer::sum_losses(std::span<const Loss> mine) {
  const auto all = exchange_all(comm_, mine, {"loss"});
  std::vector<double> by_g;
  Loss total;
  for (std::size_t k = 0; k < mine.size(); ++k)
    for (std::size_t r = 0; r < all.size() / mine.size(); ++r) {
      by_g.push_back(all[r * mine.size() + k].sum);
      total.tokens += all[r * mine.size() + k].tokens;
    }
  total.sum = tree_fold(by_g);
  return total;
}

bool Trainer::share_counters(StepMetrics& m) {
  struct Words {
    std::int64_t peak_bytes;
    std::int64_t stop;
    TrafficBytes received;
  };
  const TrafficBytes now = sharded_->received();
  Words mine{m.peak_bytes, options_.should_stop && options_.should_stop() ? 1 : 0, now};
  for (std::size_t i = 0; i < now.size(); ++i) mine.received[i] -= received_[i];
  received_ = now;
  // Of all ranks: the largest peak, the mean of bytes received.
  TrafficBytes bytes{};
  bool stop = false;
  for (const Words& words : exchange_one(comm_, mine, {"metrics"})) {
    m.peak_bytes = std::max(m.peak_bytes, words.peak_bytes);
    stop = stop || words.stop != 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += words.received[i];
  }
  const auto mean = [&](Traffic t) { return bytes[static_cast<std::size_t>(t)] / comm_.size(); };
  m.comm_bytes = {.all_gather = mean(Traffic::all_gather),
                  .reduce_scatter = mean(Traffic::reduce_scatter),
                  .all_reduce = mean(Traffic::all_reduce),
                  .control = mean(Traffic::control),
                  .eval = mean(Traffic::eval),
                  .checkpoint = mean(Traffic::checkpoint),
                  .padding = mean(Traffic::padding)};
  const double exposed_s = sharded_->take_counters().exposed_s;
  m.exposed_comm_ms = comm_.size() > 1 ? exposed_s * 1e3 : 0;
  return stop;
}

Trainer::Loss Trainer::forward_backward(std::int64_t k) {
  const Context in("micro-batch ", k);
  const std::int64_t g = k * comm_.size() + comm_.rank();
  const RandomKey key = RandomKey{seed(), 0}
                            .derive("dropout")
                            .derive(static_cast<std::uint64_t>(state_.step))
                            .derive(static_cast<std::uint64_t>(g));
  const CategoryScope scope(*runtime_, Category::activations);
  tell("begins step ", state_.step + 1, ", micro-batch ", k);
  const LossResult loss =
      loss_of(micro_batch(k),
              {.training = true, .key = key, .label_smoothing = config_.train.label_smoothing});
  const Loss out{loss.loss.value().item(), loss.tokens};
  if (!std::isfinite(out.sum)) return out;
  const Tensor& value = loss.loss.value();
  tape_.backward(loss.loss,
                 Tensor::full(runtime_, value.shape(), backward_scale_now(), value.dtype()));
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
  // Batches are dealt to the ranks in turn, and each has as many turns: one without a batch of its
  // own runs the first, uncounted, since its parameters may be needed by the others.
  const std::int64_t batches = (samples + B - 1) / B;
  sharded_->set_traffic(Traffic::eval);
  std::vector<Loss> losses;
  for (std::int64_t first = 0; first < batches; first += comm_.size()) {
    const std::int64_t mine = first + comm_.rank();
    const std::int64_t sample = mine < batches ? mine * B : 0;
    const LossResult loss = loss_of(
        read_batch(data_.validation, sampler, sample, std::min(B, samples - sample)),
        {.key =
             RandomKey{seed(), 0}.derive("evaluation").derive(static_cast<std::uint64_t>(sample))});
    losses.push_back(mine < batches ? Loss{loss.loss.value().item(), loss.tokens} : Loss{});
  }
  sharded_->reshard();
  sharded_->set_traffic(Traffic::all_gather);
  const Loss total = sum_losses(losses);
  const double mean = total.sum / static_cast<double>(total.tokens);
  if (!std::isfinite(mean)) fail_as(ErrorKind::numeric, "the validation loss is not finite");
  return mean;
}

LossResult Trainer::loss_of(const std::vector<std::int32_t>& rows, const ForwardOptions& options) {
  const std::int64_t T = config_.model.context;
  const Tensor all =
      Tensor::from(runtime_, {static_cast<std::int64_t>(rows.size()) / (T + 1), T + 1}, rows);
  const Tensor tokens = all.slice(1, 0, T).contiguous();
  if (model_->sizes().causal)
    return model_->loss(tokens, all.slice(1, 1, T + 1).contiguous(), options);
  const auto hidden = static_cast<std::int32_t>(data_.vocab);
  const MaskedTokens masked =
      mask_tokens(tokens.to_vector<std::int32_t>(), hidden, hidden, options.key.derive("mask"));
  return model_->loss(Tensor::from(runtime_, tokens.shape(), masked.inputs),
                      Tensor::from(runtime_, tokens.shape(), masked.targets), options);
}

void Trainer::explain_not_finite(std::int64_t begin, std::int64_t end, const std::string& what) {
  tape_.clear();
  tape_.check_finite(true);
  sharded_->set_sync(false);  // the other ranks do not take part
  const Context in(what);
  for (std::int64_t k = begin; k < end; ++k) forward_backward(k);  // throws at the first such value
  fail_as(ErrorKind::numeric, "every op gave finite values on this rank; their sum did not");
}

void Trainer::narrate_to(std::function<void(const std::string&)> lines) {
  narrate_ = lines;
  sharded_->set_narrator(std::move(lines));
}

void Trainer::take_peak(StepMetrics& m) {
  MemoryPeak peak = runtime_->allocator().peak();
  m.peak_bytes = peak.bytes;
  if (peak.bytes > peak_.bytes) peak_ = std::move(peak);
}

std::vector<std::int32_t> Trainer::micro_batch(std::int64_t k) const {
  const std::int64_t B = config_.train.micro_batch;
  const std::int64_t g = k * comm_.size() + comm_.rank();
  return read_batch(data_.train, sampler_, first_sample(state_.samples, g, B), B);
}

std::int64_t Trainer::num_micro_batches() const {
  return config_.train.num_accumulate(config_.dist.ranks);
}

void Trainer::show(const StepMetrics& m, Progress& progress) {
  if (const auto remark = health_.remark(m))
    progress.line(detail::concat("step ", m.step, ": ", *remark));
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
