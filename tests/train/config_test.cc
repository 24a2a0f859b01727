#include "train/config.h"

#include "base/file.h"
#include "base/toml.h"
#include "tests/support/temp_folder.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

RunConfig read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_run_config(text, "kjv.toml", overrides);
}

/// The error of a valid configuration with one override.
std::string error_with(const std::string& override, const std::string& text = "") {
  const std::string base = text.empty() ? "[data]\ndataset = \"kjv\"\n" : text;
  try {
    read(base, {override});
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::usage);
    const std::string what = e.what();
    const std::string head = "--set " + override + ": ";
    return what.starts_with(head) ? what.substr(head.size()) : what;
  }
  return "no error";
}

TEST_CASE("every key of the format is known") {
  const RunConfig c = read(R"(
[run]
name = "n"
seed = 3
steps = 10
out = "o"
device = "cpu"
memory_limit = "1GiB"
threads_per_rank = 2
isa = "avx2"
[model]
arch = "gpt2"
preset = "nano"
layers = 2
heads = 2
kv_heads = 2
d_model = 32
d_ff = 96
vocab = 300
context = 16
dropout = 0.1
tied = false
[data]
files = ["a.txt", "b*.txt"]
tokenizer = "char"
val_files = ["c.txt"]
shuffle = "random"
[train]
micro_batch = 2
global_batch = 8
accumulate_order = "sequential"
eval_every = 5
eval_batches = 2
log_every = 1
clip_norm = 0.5
recompute = "block"
[optim]
name = "sgd"
lr = 0.1
betas = [0.9, 0.99]
momentum = 0.9
eps = 1e-6
weight_decay = 0
schedule = "linear"
warmup = 10
min_lr = 0.01
[precision]
compute = "bf16"
master = "f32"
reduce = "f32"
moments = "f32"
loss_scale = "none"
[dist]
ranks = 1
engine = "threads"
strategy = "fsdp"
replicate = 1
reshard_after_forward = false
group = "block"
prefetch = {forward = 2, backward = ["blocks.1", "blocks.0"]}
sync = "last"
timeout_s = 10
[offload]
params = "none"
gradients = "none"
optimizer = "none"
activations = "none"
path = "/tmp"
buffers = 2
buffer_bytes = "1MiB"
queue_depth = 4
[checkpoint]
every = 5
keep = 1
async = false
dir = "d"
[log]
tensorboard = false
trace_steps = ""
memory = true
)");
  CHECK(c.model.d_ff == 96);
  CHECK(c.data.order() == SampleOrder::random);
  CHECK(c.data.held_out() == 0);
  CHECK(c.train.num_accumulate(1) == 4);
  CHECK(c.samples_per_step() == 8);
  CHECK(read(write_toml(c)) == c);
}

TEST_CASE("defaults run as they are, once there is data") {
  const RunConfig c = read("data.dataset = \"kjv\"");
  CHECK(c.run.name == "kjv");
  CHECK(c.run.out == "runs/kjv");
  CHECK(c.data.held_out() == 0.1);
  CHECK(c.data.order() == SampleOrder::shuffled);
  CHECK(c.model.num_kv_heads() == c.model.heads);
  CHECK(c.samples_per_step() == c.train.micro_batch);
  CHECK(read(write_toml(c)) == c);
  CHECK_THROWS_WITH(read(""),
                    "kjv.toml: data.files: expected at least one file, or data.dataset = \"kjv\"");
}

TEST_CASE("a preset stands under the other keys") {
  const RunConfig c = read("[model]\nheads = 6\npreset = \"gpt2\"\n[data]\ndataset = \"kjv\"",
                           {"model.context=256"});
  CHECK(c.model.layers == 12);
  CHECK(c.model.heads == 6);
  CHECK(c.model.d_model == 768);
  CHECK(c.model.vocab == 50257);
  CHECK(c.model.context == 256);
  CHECK(read(write_toml(c)) == c);
  CHECK(read("[model]\npreset=\"gpt2-xl\"\n[data]\ndataset=\"kjv\"").model.d_model == 1600);
  CHECK_FALSE(read("[model]\npreset=\"nano\"\n[data]\ndataset=\"kjv\"").model.vocab);
}

TEST_CASE("what this version cannot do is refused by name") {
  CHECK(error_with("run.device=cuda") ==
        "run.device: cuda is not available in this version; available: cpu");
  CHECK(error_with("model.arch=vit") ==
        "model.arch: vit is not available in this version; available: gpt2, llama, encoder");
  CHECK(error_with("model.kv_heads=2") ==
        "model.kv_heads: 2 is for llama and encoder; gpt2 has as many as heads = 4");
  CHECK(error_with("data.tokenizer=bpe:x.json") ==
        "data.tokenizer: bpe is not available in this version; available: byte, char");
  for (const char* override :
       {"precision.master=f64", "dist.engine=nccl", "offload.params=cpu", "offload.gradients=nvme",
        "offload.optimizer=cpu", "offload.activations=cpu", "checkpoint.async=true",
        "log.trace_steps=1-3"}) {
    INFO(override);
    CHECK_THAT(error_with(override), Catch::Contains("not available in this version"));
  }
}

TEST_CASE("values and combinations that make no sense are refused") {
  CHECK(error_with("model.heads=3") == "model.heads: 3 does not divide d_model = 128");
  CHECK(error_with("model.kv_heads=3") == "model.kv_heads: 3 does not divide heads = 4");
  CHECK(error_with("optim.lr=0") == "optim.lr: expected > 0, got 0");
  CHECK(error_with("optim.warmup=1001") == "optim.warmup: 1001 is more than run.steps = 1000");
  CHECK(error_with("optim.min_lr=1") ==
        "optim.min_lr: expected 0 <= min_lr <= lr, got 1 with lr = 0.001");
  CHECK(error_with("optim.nesterov=true") ==
        "optim.nesterov: is for sgd with optim.momentum > 0; optim.name is adamw");
  CHECK(error_with("optim.decay=10") ==
        "optim.decay: is a number of steps of optim.schedule = \"wsd\", not of cosine");
  CHECK(error_with("optim.decay=1001", "[data]\ndataset=\"kjv\"\n[optim]\nschedule=\"wsd\"") ==
        "optim.decay: 1001 and optim.warmup = 0 are together more than run.steps = 1000");
  CHECK(error_with("precision.moments=bf16", "[data]\ndataset=\"kjv\"\n[optim]\nname=\"lion\"") ==
        "precision.moments: bf16 is for optim.name = adamw, not for lion");
  CHECK(error_with("optim.betas=[0.9]") == "optim.betas: expected two numbers, got 1");
  CHECK(error_with("data.files=x.txt") ==
        "kjv.toml:2:11: data.dataset: is instead of files; leave one out, or set it to none");
  CHECK(error_with("train.global_batch=12") ==
        "train.global_batch: 12 is not a multiple of train.micro_batch x dist.ranks = 8");
  CHECK(error_with("train.global_batch=8", "data.dataset=\"kjv\"\ntrain.accumulate=2") ==
        "train.global_batch: is instead of accumulate; leave one out");
  CHECK(error_with("data.val_fraction=0.5", "[data]\ndataset=\"kjv\"\nval_files=\"x\"") ==
        "data.val_fraction: is instead of val_files; leave one out");
  CHECK(error_with("train.recompute=[\"none\", \"block\"]") ==
        "train.recompute: none stands alone");
  CHECK(error_with("data.tokenizer=words") ==
        "data.tokenizer: expected byte, char or bpe:FILE, got words");
  CHECK(error_with("dist.strategy=zero4") ==
        "dist.strategy: expected ddp, zero1, zero2, zero3, fsdp, fsdp-keep or hsdp, got zero4");
  CHECK(error_with("dist.strategy=fsdp[pre=1]") ==
        "dist.strategy: unknown override of a strategy; expected reshard_after_forward, replicate, "
        "prefetch, prefetch_bytes, resident_below or sync, got pre in fsdp[pre=1]");
  CHECK(error_with("dist.strategy=fsdp[reshard_after_forward=1]") ==
        "dist.strategy: expected a number >= 2 in fsdp[reshard_after_forward=1], got 1");
  CHECK(error_with("dist.group=blocks") ==
        "dist.group: expected block, parameter, model or bytes(MIN,MAX) as the grouping, got "
        "blocks");
  const std::string ranks = "[data]\ndataset = \"kjv\"\n[dist]\nranks = 6\n";
  CHECK(error_with("dist.strategy=hsdp[replicate=4]", ranks) ==
        "dist.strategy: replicate = 4 does not divide ranks = 6");
  CHECK(error_with("dist.replicate=4", ranks + "strategy = \"hsdp\"\n") ==
        "dist.replicate: replicate = 4 does not divide ranks = 6");
  CHECK(error_with("dist.reshard_after_forward=4", ranks + "strategy = \"fsdp\"\n") ==
        "dist.reshard_after_forward: reshard_after_forward = 4 does not divide the shards = 6");
  // mpirun says how many ranks there are.
  CHECK(error_with("dist.strategy=hsdp[replicate=4]",
                   "[data]\ndataset = \"kjv\"\n[dist]\nengine = \"mpi\"\n") == "no error");
  CHECK(error_with("dist.prefetch={forward=[]}") ==
        "dist.prefetch.forward: expected units, got an empty list; 0 gathers none ahead");
  CHECK(error_with("precision.loss_scale=100") ==
        "precision.loss_scale: expected a power of two of 2^-32 to 2^32, which is undone exactly, "
        "or none; got 100");
  for (const char* override : {"run.steps=0",
                               "precision.loss_scale=0",
                               "precision.loss_scale=-2",
                               "precision.loss_scale_start=3",
                               "precision.loss_scale_floor=0",
                               "precision.loss_scale_floor=131072",
                               "precision.loss_scale_window=0",
                               "precision.loss_scale=inf",
                               "run.steps=-5",
                               "run.memory_limit=0",
                               "run.threads_per_rank=0",
                               "model.layers=0",
                               "model.heads=0",
                               "model.heads=-4",
                               "model.kv_heads=0",
                               "model.d_model=0",
                               "model.d_ff=0",
                               "model.vocab=0",
                               "model.vocab=99999999999",
                               "model.context=0",
                               "model.dropout=1",
                               "model.dropout=-0.1",
                               "data.val_fraction=1",
                               "data.val_fraction=-0.1",
                               "train.micro_batch=0",
                               "train.accumulate=0",
                               "train.global_batch=0",
                               "train.eval_every=-1",
                               "train.eval_batches=0",
                               "train.log_every=0",
                               "train.clip_norm=-1",
                               "train.recompute=[]",
                               "optim.lr=-1",
                               "optim.lr=inf",
                               "optim.eps=0",
                               "optim.weight_decay=-1",
                               "optim.momentum=1",
                               "optim.betas=[0.9, 1]",
                               "optim.warmup=-1",
                               "dist.ranks=0",
                               "dist.replicate=0",
                               "dist.link.gbps=0",
                               "dist.link.gbps=nan",
                               "dist.link.latency_us=inf",
                               "dist.timeout_s=0",
                               "dist.timeout_s=inf",
                               "dist.prefetch=-1",
                               "dist.prefetch={backward=-1}",
                               "dist.prefetch_bytes=-1",
                               "dist.resident_below=-1",
                               "dist.reshard_after_forward=-2",
                               "dist.reshard_after_forward=1",
                               "dist.group=bytes(5,2)",
                               "dist.placement=[{match=\"\"}]",
                               "dist.placement=[{match=\"w\", dim=-1}]",
                               "offload.buffers=0",
                               "offload.buffer_bytes=1",
                               "offload.queue_depth=0",
                               "checkpoint.every=-1",
                               "checkpoint.keep=0"}) {
    INFO(override);
    CHECK_THAT(error_with(override), Catch::Contains("expected"));
  }
}

TEST_CASE("every key has a doc") {
  const std::string help = toml_help<RunConfig>();
  CHECK_THAT(
      help, Catch::Contains(
                "train.micro_batch = 8\n    samples a rank computes at once, >= 1 (an integer)\n"));
  CHECK_THAT(help, !Catch::Contains("\n     ("));
}

TEST_CASE("a configuration file is named after itself") {
  const test::TempFolder folder;
  write_file(folder / "my run.toml", "[data]\nfiles = \"x.txt\"\n");
  CHECK(load_run_config(folder / "my run.toml").run.out == "runs/my run");
  CHECK_THROWS_WITH(load_run_config(folder / "none.toml"),
                    Catch::Contains("none.toml: cannot open: No such file"));
}

}  // namespace
}  // namespace sherd
