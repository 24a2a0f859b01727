// A model trained by ranks under a plan, and the same by a plain loop without //dist: what
// the tests of equality compare. Without a model of their own they train a small GPT.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "dist/comm/thread_ranks.h"
#include "dist/fully_shard.h"
#include "dist/tree_fold.h"
#include "nn/init.h"
#include "nn/models/gpt2.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"

namespace sherd::test {

struct SmallTraining {
  int ranks = 2;
  int accumulate = 1;
  int steps = 3;
  int batch = 2;  ///< of a micro-batch
  int64_t layers = 3;
  int64_t channels = 16;
  double dropout = 0;
  bool tied = true;
  double clip = 0.5;
  NormKind norm = NormKind::two;
  Recompute recompute = kRecomputeNone;
  DType dtype = DType::f32;
  bool deferred = true;
  std::string freeze = {};
  int eval_every = 0;  ///< forward passes without backward between steps
  std::optional<Link> link = std::nullopt;
  bool poison = false;  ///< memory that is not written yet, or not held any more, is NaN
  /// Micro-batches of each step; empty: `accumulate` of them. Only the loop knows.
  std::function<int(int step)> micro_batches = {};

  /// With Sync::last: whether the loop knows which micro-batch is the last.
  bool knows_last = true;

  int micro_batches_of(int step) const { return micro_batches ? micro_batches(step) : accumulate; }
};

/// Which micro-batch a loss is of: number g of a step, the k-th of its rank.
struct MicroBatch {
  int step = 0;
  int64_t g = 0;
  int k = 0;
  int rank = 0;
};

/// What is trained.
template <class Model>
struct Job {
  std::function<Model(Tape&)> make;
  std::function<LossResult(const Model&, const MicroBatch&)> loss;
  /// Before each step, on each rank; may be empty.
  std::function<void(Model&, ShardedModule&, int step)> before_step = {};
};

/// What a run leaves, equal bit for bit for equal runs.
struct Trace {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<float>> values;  ///< "name", "name/m", "name/v"
  // --- not compared
  TrafficBytes bytes{};                    ///< sum over ranks
  int64_t resident = 0;                    ///< bytes of this rank between steps
  CategoryBytes live{};                    ///< the same by category
  CategoryBytes before_update{};           ///< the same with the last step's gradients
  MemoryPeak peak;                         ///< of this rank in the last step
  std::vector<ScheduleCounters> counters;  ///< of this rank, of each step
  double exposed_s = 0;                    ///< their sum, without the first step's

  bool same_results(const Trace& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    if (!same(losses, other.losses) || !same(norms, other.norms) ||
        values.size() != other.values.size())
      return false;
    for (const auto& [name, value] : values)
      if (!other.values.contains(name) || !same(value, other.values.at(name))) return false;
    return true;
  }
};

inline Gpt2Config small_gpt(const SmallTraining& t) {
  return {.layers = t.layers,
          .heads = 2,
          .channels = t.channels,
          .vocab = 50,
          .context = 8,
          .dropout = t.dropout,
          .tied = t.tied,
          .recompute = t.recompute,
          .dtype = t.dtype};
}

/// Tokens of micro-batch g of a step: T + 1 a row.
inline Tensor small_tokens(const RuntimePtr& runtime, const SmallTraining& t, int step, int64_t g) {
  std::vector<int32_t> rows;
  uint64_t x = static_cast<uint64_t>(step * 1000 + g + 1);
  for (int64_t i = 0; i < t.batch * 9; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    rows.push_back(static_cast<int32_t>((x >> 33) % 50));
  }
  return Tensor::from<int32_t>(runtime, {t.batch, 9}, rows);
}

inline LossResult small_loss(const LanguageModel& model, const SmallTraining& t, int step,
                             int64_t g) {
  const Tensor all = small_tokens(model.tape().runtime(), t, step, g);
  const RandomKey key =
      RandomKey{7, 0}.derive(static_cast<uint64_t>(step)).derive(static_cast<uint64_t>(g));
  return model.loss(all.slice(1, 0, 8).contiguous(), all.slice(1, 1, 9).contiguous(),
                    {.training = true, .key = key});
}

/// The small GPT as a job.
inline Job<Gpt2> small_job(const SmallTraining& t) {
  return {.make = [t](Tape& tape) { return Gpt2(tape, small_gpt(t)); },
          .loss = [t](const Gpt2& model,
                      const MicroBatch& b) { return small_loss(model, t, b.step, b.g); }};
}

inline Slot small_slot(const std::string& name, const Tensor& value, const Shape& whole) {
  return {.name = name, .value = value, .weight_decay = whole.size() > 1 ? 0.1 : 0};
}

/// 1 / tokens; where there are none, gradients are zeros and stay so.
inline double per_token(int64_t tokens) {
  return tokens > 0 ? 1.0 / static_cast<double>(tokens) : 1.0;
}

/// One rank's part in it, whatever carries the ranks; all of them call it. Each returns the same
/// results.
template <class Model>
Trace train_on(Rank& rank, const SmallTraining& t, const ShardPlan& plan, const Job<Model>& job) {
  check(rank.size == t.ranks, "a training of", t.ranks, "ranks runs on", rank.size);
  Trace trace;
  const TrafficBytes bytes_before = rank.comm.received();
  Tape tape(rank.runtime);
  Model model = [&] {
    if (!t.deferred) return job.make(tape);
    const DeferParameters defer(*rank.runtime);
    return job.make(tape);
  }();
  if (!t.freeze.empty()) freeze(model, t.freeze);
  if (!t.deferred) init_parameters(model, 1);
  DeviceMesh mesh(rank.comm, plan.replicas);
  const auto sharded = fully_shard(model, tape, mesh, plan);
  if (t.deferred) sharded->init(1);
  AdamW optimizer;
  std::vector<Slot> slots;
  for (const auto& p : sharded->trainable()) slots.push_back(small_slot(p.name, p.value, p.shape));
  for (auto& slot : slots) optimizer.prepare(slot);
  for (int step = 0; step < t.steps; ++step) {
    const CategoryScope scope(*rank.runtime, Category::activations);
    rank.runtime->allocator().reset_peak();
    if (job.before_step) job.before_step(model, *sharded, step);
    if (t.eval_every > 0 && step % t.eval_every == 0) {
      const NoGrad no_grad(tape);
      sharded->set_traffic(Traffic::eval);
      for (int i = 0; i < 3; ++i) job.loss(model, {100 + step, i, i, rank.rank});
      sharded->reshard();
      sharded->set_traffic(Traffic::all_gather);
    }
    const int A = t.micro_batches_of(step);
    std::vector<double> mine;
    int64_t tokens = 0;
    for (int k = 0; k < A; ++k) {
      sharded->set_sync(plan.sync == Sync::every || (k + 1 == A && t.knows_last));
      const LossResult loss = job.loss(model, {step, k * t.ranks + rank.rank, k, rank.rank});
      mine.push_back(loss.loss.value().item());
      tokens += loss.tokens;
      tape.backward(loss.loss);
    }
    sharded->finish_gradients();
    const auto all = exchange_all<double>(rank.comm, mine, {"loss"});
    std::vector<double> by_g;
    for (int k = 0; k < A; ++k)
      for (int r = 0; r < rank.size; ++r) by_g.push_back(all[static_cast<size_t>(r * A + k)]);
    sum_words(rank.comm, std::span(&tokens, 1), {"tokens"});
    const double scale = per_token(tokens);
    std::vector<Slot> norm_slots = slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].grad = sharded->trainable()[i].grad;
      norm_slots[i].grad = sharded->trainable()[i].norm_grad;
    }
    const GradNorm norm =
        grad_norm(norm_slots, scale, t.norm, {sharded->norm_sum(), sharded->norm_max()});
    norm_slots.clear();
    for (const double other : exchange_one(rank.comm, norm.norm, {"norm"}))
      check(other == norm.norm, "ranks have different norms:", other, norm.norm);
    trace.before_update = rank.runtime->allocator().live_by_category();
    optimizer.step(slots, 1e-2, scale * clip_factor(norm.norm, t.clip));
    for (auto& slot : slots) slot.grad = {};
    sharded->finish_step();
    trace.losses.push_back(tree_fold(by_g) * scale);
    trace.norms.push_back(norm.norm);
    trace.counters.push_back(sharded->take_counters());
  }
  trace.resident = rank.runtime->allocator().live_bytes();
  trace.live = rank.runtime->allocator().live_by_category();
  trace.peak = rank.runtime->allocator().peak();
  trace.bytes = sharded->received();
  for (size_t i = 0; i < bytes_before.size(); ++i) trace.bytes[i] -= bytes_before[i];
  sum_words(rank.comm, trace.bytes, {"bytes"});
  for (const auto& slot : slots) {
    trace.values[slot.name] =
        sharded->state(slot.name, slot.value).full().template to_vector<float>();
    for (const auto& s : slot.state)
      trace.values[slot.name + '/' + s.name] =
          sharded->state(slot.name, s.tensor).full().template to_vector<float>();
  }
  for (size_t i = 1; i < trace.counters.size(); ++i) trace.exposed_s += trace.counters[i].exposed_s;
  return trace;
}

/// Rank 0's of what `body` returns on each of t's thread ranks.
template <class Body>
Trace on_thread_ranks(const SmallTraining& t, const Body& body) {
  Trace trace;
  run_thread_ranks(
      {.ranks = t.ranks, .runtime = {.poison = t.poison}, .timeout_s = 60, .link = t.link},
      [&](Rank& rank) {
        Trace mine = body(rank);
        if (rank.rank == 0) trace = std::move(mine);
      });
  return trace;
}

template <class Model>
Trace train_sharded(const SmallTraining& t, const ShardPlan& plan, const Job<Model>& job) {
  return on_thread_ranks(t, [&](Rank& rank) { return train_on(rank, t, plan, job); });
}

inline Trace train_sharded(const SmallTraining& t, const ShardPlan& plan) {
  return train_sharded(t, plan, small_job(t));
}

/// One rank, no sharding: a plain loop over the micro-batches of all ranks.
template <class Model>
Trace train_plain(const SmallTraining& t, const Job<Model>& job) {
  Trace trace;
  const RuntimePtr runtime = Runtime::create({});
  Tape tape(runtime);
  Model model = job.make(tape);
  name_parameters(model);
  if (!t.freeze.empty()) freeze(model, t.freeze);
  init_parameters(model, 1);
  AdamW optimizer;
  std::vector<Slot> slots;
  std::vector<Parameter> trained;
  for (const auto& p : parameters(model)) {
    if (p.parameter.frozen()) continue;
    trained.push_back(p.parameter);
    slots.push_back(small_slot(p.name, p.parameter.value(), p.parameter.shape()));
    optimizer.prepare(slots.back());
  }
  for (int step = 0; step < t.steps; ++step) {
    double sum = 0;
    int64_t tokens = 0;
    for (int64_t g = 0; g < t.micro_batches_of(step) * t.ranks; ++g) {
      const auto rank = static_cast<int>(g % t.ranks);
      const LossResult loss = job.loss(model, {step, g, static_cast<int>(g / t.ranks), rank});
      sum += loss.loss.value().item();
      tokens += loss.tokens;
      tape.backward(loss.loss);
    }
    const double scale = per_token(tokens);
    for (size_t i = 0; i < slots.size(); ++i) slots[i].grad = trained[i].grad();
    const GradNorm norm = grad_norm(slots, scale, t.norm);
    optimizer.step(slots, 1e-2, scale * clip_factor(norm.norm, t.clip));
    for (size_t i = 0; i < slots.size(); ++i) trained[i].set_grad(slots[i].grad = {});
    trace.losses.push_back(sum * scale);
    trace.norms.push_back(norm.norm);
  }
  for (const auto& slot : slots) {
    trace.values[slot.name] = slot.value.template to_vector<float>();
    for (const auto& s : slot.state)
      trace.values[slot.name + '/' + s.name] = s.tensor.template to_vector<float>();
  }
  return trace;
}

}  // namespace sherd::test
