#include "base/toml.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "third_party/catch2/test.h"

namespace sherd {
namespace {

struct Link {
  double gbps = 1;
  double latency_us = 0;
  void fields(auto& v) {
    v("gbps", gbps, "bandwidth");
    v("latency_us", latency_us, "delay of a message");
  }
  void validate() const { check_field(gbps > 0, "gbps", "expected > 0, got", gbps); }
  bool operator==(const Link&) const = default;
};

struct Placement {
  std::string match;
  std::int64_t dim = 0;
  void fields(auto& v) {
    v("match", match, "names of parameters");
    v("dim", dim, "the dim to cut");
  }
  void validate() const { check_field(dim >= 0, "dim", "expected >= 0, got", dim); }
  bool operator==(const Placement&) const = default;
};

struct Optim {
  double lr = 3e-4;
  float eps = 1e-8f;
  std::string name = "adamw";
  std::vector<double> betas = {0.9, 0.95};
  void fields(auto& v) {
    v("lr", lr, "peak learning rate, > 0");
    v("eps", eps, "added to the root");
    v("name", name, "the optimizer", one_of{"adamw", "sgd"});
    v("betas", betas, "decay of the moments");
  }
  void validate() const { check_field(lr > 0, "lr", "expected > 0, got", lr); }
  bool operator==(const Optim&) const = default;
};

struct Dist {
  std::int64_t ranks = 1;
  std::optional<Link> link;
  std::variant<std::int64_t, Link> prefetch = std::int64_t{1};
  std::variant<bool, std::int64_t> reshard = true;
  std::vector<Placement> placement;
  void fields(auto& v) {
    v("ranks", ranks, "how many");
    v("link", link, "imitate a slower link");
    v("prefetch", prefetch, "how far ahead");
    v("reshard", reshard, "after forward");
    v("placement", placement, "exceptions");
  }
  bool operator==(const Dist&) const = default;
};

struct Config {
  bool quick = false;
  std::int64_t steps = 10;
  std::string title;
  Bytes limit{1024};
  std::vector<std::string> files;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> recompute = {"none"};
  std::optional<std::int64_t> warmup;
  std::optional<std::string> note;
  Optim optim;
  Dist dist;
  void fields(auto& v) {
    v("quick", quick, "a flag");
    v("steps", steps, "optimizer steps");
    v("title", title, "any text");
    v("limit", limit, "bytes");
    v("files", files, "inputs");
    v("sizes", sizes, "numbers");
    v("recompute", recompute, "what to compute twice", one_of{"none", "block", "norm"});
    v("warmup", warmup, "steps of warm-up");
    v("note", note, "a remark");
    v("optim", optim, "the optimizer");
    v("dist", dist, "ranks");
  }
  void validate() const {
    check_field(!warmup || *warmup <= steps, "warmup", "expected <= steps =", steps, "got",
                warmup.value_or(0));
    check_field(optim.name != "sgd" || optim.lr < 1, "optim.lr", "expected < 1 for sgd, got",
                optim.lr);
  }
  bool operator==(const Config&) const = default;
};

Config read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_toml<Config>(text, "run.toml", overrides);
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::usage);
    return e.what();
  }
  return "no error";
}

TEST_CASE("an empty text gives the defaults") { CHECK(read("") == Config{}); }

TEST_CASE("every type is read") {
  const Config c = read(R"(
quick = true
steps = 1_000
title = "a \"b\" é"
limit = "512MiB"
files = ["a.txt", "b/*.txt"]
sizes = [1, -2, 3]
recompute = "block"
warmup = 7
[optim]
lr = 1
eps = 1e-6
name = "sgd"
betas = [0.5, 1]
[dist]
link = {gbps = 2.5, latency_us = 30}
prefetch = {gbps = 1.5}
reshard = 4
[[dist.placement]]
match = "*.weight"
dim = 1
[[dist.placement]]
match = "head"
)",
                        {"optim.lr=0.5"});
  CHECK(c.quick);
  CHECK(c.steps == 1000);
  CHECK(c.title == "a \"b\" é");
  CHECK(c.limit.count == 512 << 20);
  CHECK(c.files == std::vector<std::string>{"a.txt", "b/*.txt"});
  CHECK(c.sizes == std::vector<std::int64_t>{1, -2, 3});
  CHECK(c.recompute == std::vector<std::string>{"block"});
  CHECK(c.warmup == 7);
  CHECK(!c.note);
  CHECK(c.optim == Optim{0.5, 1e-6f, "sgd", {0.5, 1}});
  CHECK(c.dist.link == Link{2.5, 30});
  CHECK(std::get<Link>(c.dist.prefetch) == Link{1.5, 0});
  CHECK(std::get<std::int64_t>(c.dist.reshard) == 4);
  CHECK(c.dist.placement == std::vector<Placement>{{"*.weight", 1}, {"head", 0}});
}

TEST_CASE("errors name source, line, column, key, what was expected and what came") {
  CHECK(error_of("steps = 1\n[optim]\nlr = \"fast\"") ==
        "run.toml:3:6: optim.lr: expected a number, got \"fast\"");
  CHECK(error_of("steps = 1.5") == "run.toml:1:9: steps: expected an integer, got 1.5");
  CHECK(error_of("steps = 9e3") == "run.toml:1:9: steps: expected an integer, got 9000.0");
  CHECK(error_of("quick = 1") == "run.toml:1:9: quick: expected true or false, got 1");
  CHECK(error_of("title = 1979-05-27") ==
        "run.toml:1:9: title: expected a string, got a date or time");
  CHECK(error_of("optim = 3") == "run.toml:1:9: optim: expected a table, got 3");
  CHECK(error_of("optim.lr = {}") == "run.toml:1:12: optim.lr: expected a number, got a table");
  CHECK(error_of("optim.lr = nan") == "run.toml:1:12: optim.lr: expected a number, got nan");
  CHECK(error_of("optim.eps = 1e300") ==
        "run.toml:1:13: optim.eps: expected a 32-bit number, got 1e+300");
  CHECK(error_of("[optim]\n  name = \"adam\"") ==
        "run.toml:2:10: optim.name: expected one of \"adamw\", \"sgd\", got \"adam\"");
  CHECK(error_of("sizes = [1, 2.5]") == "run.toml:1:13: sizes[1]: expected an integer, got 2.5");
  CHECK(error_of("sizes = 1") == "run.toml:1:9: sizes: expected a list of integers, got 1");
  CHECK(error_of("recompute = [\"norm\", \"mlp\"]") ==
        "run.toml:1:22: recompute[1]: expected one of \"none\", \"block\", \"norm\", got \"mlp\"");
  CHECK(error_of("files = [\"a\", 2]") == "run.toml:1:15: files[1]: expected a string, got 2");
  for (const char* bad : {"\"5 apples\"", "-1", "\"-1B\"", "\"\"", "\"9999999999TiB\""}) {
    CHECK_THAT(
        error_of(std::string("limit = ") + bad),
        Catch::StartsWith("run.toml:1:9: limit: expected a size such as 4096 or \"512MiB\", got"));
  }
  CHECK(error_of("dist.reshard = \"yes\"") ==
        "run.toml:1:16: dist.reshard: expected true or false or an integer, got \"yes\"");
  CHECK(error_of("dist.placement = [{}, 1]") ==
        "run.toml:1:23: dist.placement[1]: expected a list of tables, got 1");
  CHECK(error_of("[[dist.placement]]\n[[dist.placement]]\ndim = \"a\"") ==
        "run.toml:3:7: dist.placement[1].dim: expected an integer, got \"a\"");
}

TEST_CASE("a text that is no TOML") {
  CHECK_THAT(error_of("steps = 1\nlr = = 3"), Catch::StartsWith("run.toml:2:6: not valid TOML: "));
  CHECK_THAT(error_of("steps = 1\nsteps = 2"), Catch::StartsWith("run.toml:2:"));
  // The library asserts these away; the line is ours.
  CHECK(error_of("[*") == "run.toml:1: not valid TOML");
  CHECK(error_of("quick = true\ntitle = \"\"\"\n[*\n\"\"\"\n\n[ *x]\n[dist]\n") ==
        "run.toml:6: not valid TOML");
  CHECK_THAT(error_of("title = \"\xff\""), Catch::StartsWith("run.toml:1:"));
  CHECK_THAT(error_of("steps = 99999999999999999999"), Catch::StartsWith("run.toml:1:"));
  CHECK_THAT(error_of("sizes = " + std::string(100000, '[')), Catch::StartsWith("run.toml:1:"));
}

TEST_CASE("an unknown key names the nearest known one") {
  CHECK(error_of("[optim]\nname = \"sgd\"\nbeta = 1") ==
        "run.toml:3:1: optim.beta: unknown key; the nearest known key is optim.betas");
  CHECK(error_of("setps = 3") ==
        "run.toml:1:1: setps: unknown key; the nearest known key is steps");
  // The right key in the wrong section.
  CHECK(error_of("lr = 3") == "run.toml:1:1: lr: unknown key; the nearest known key is optim.lr");
  CHECK(error_of("[dist]\nlr = 3") ==
        "run.toml:2:1: dist.lr: unknown key; the nearest known key is optim.lr");
  CHECK(error_of("[opitm]\nlr = 3") ==
        "run.toml:1:2: opitm: unknown key; the nearest known key is optim");
  CHECK(error_of("\"a\\nb\" = 3") ==
        "run.toml:1:1: \"a\\nb\": unknown key; the nearest known key is note");
}

TEST_CASE("a failed validate() names the key and where it was set") {
  CHECK(error_of("[optim]\nlr = -1") == "run.toml:2:6: optim.lr: expected > 0, got -1");
  CHECK(error_of("steps = 5\nwarmup = 6") == "run.toml:2:10: warmup: expected <= steps = 5 got 6");
  CHECK(error_of("[optim]\nname = \"sgd\"\nlr = 2") ==
        "run.toml:3:6: optim.lr: expected < 1 for sgd, got 2");
  CHECK(error_of("[[dist.placement]]\n[[dist.placement]]\ndim = -1") ==
        "run.toml:3:7: dist.placement[1].dim: expected >= 0, got -1");
  CHECK(error_of("[dist]\nlink = {gbps = 0.0}") ==
        "run.toml:2:16: dist.link.gbps: expected > 0, got 0");
  CHECK(error_of("[dist]\nprefetch = {gbps = -2}") ==
        "run.toml:2:20: dist.prefetch.gbps: expected > 0, got -2");
  // The fault lies in an override, or in a default.
  CHECK(error_of("warmup = 6", {"steps=5"}) ==
        "run.toml:1:10: warmup: expected <= steps = 5 got 6");
  CHECK(error_of("", {"warmup=11"}) == "--set warmup=11: warmup: expected <= steps = 10 got 11");
  Config c;
  c.optim.lr = 0;
  CHECK_THROWS_WITH(override_toml(c, std::vector<std::string>{"steps=3"}),
                    "configuration: optim.lr: expected > 0, got 0");
  CHECK_THROWS_WITH(c.optim.validate(), "lr: expected > 0, got 0");
}

TEST_CASE("overrides") {
  const Config c = read("title = \"old\"\nsteps = 1\n[optim]\nlr = 0.5",
                        {"title=bare words", "steps = 20", "optim.lr=1e-3", "optim.name=sgd",
                         "limit=2KiB", "quick=true", "files=[\"a\", \"b\"]", "recompute=norm",
                         "dist.link.gbps=4", "dist.prefetch=3", "dist.reshard=false",
                         "dist.placement=[{match=\"x\", dim=2}]", "note=12", "warmup=2"});
  CHECK(c.title == "bare words");
  CHECK(c.steps == 20);
  CHECK(c.optim.lr == 1e-3);
  CHECK(c.optim.name == "sgd");
  CHECK(c.limit.count == 2048);
  CHECK(c.quick);
  CHECK(c.files == std::vector<std::string>{"a", "b"});
  CHECK(c.recompute == std::vector<std::string>{"norm"});
  CHECK(c.dist.link == Link{4, 0});
  CHECK(std::get<std::int64_t>(c.dist.prefetch) == 3);
  CHECK(std::get<bool>(c.dist.reshard) == false);
  CHECK(c.dist.placement == std::vector<Placement>{{"x", 2}});
  CHECK(c.note == "12");
  // The last one wins; a value may hold '=' and dots; an empty value is an empty string.
  CHECK(read("", {"title=a", "title=b=c.d"}).title == "b=c.d");
  CHECK(read("title = \"x\"", {"title="}).title.empty());
  CHECK(read("", {"title=\"quoted # text\""}).title == "quoted # text");
  CHECK(read("", {"title=x\nsteps = 3"}) == [] {
    Config want;
    want.title = "x\nsteps = 3";
    return want;
  }());
}

TEST_CASE("errors in overrides") {
  CHECK(error_of("", {"optim.lr=fast"}) ==
        "--set optim.lr=fast: optim.lr: expected a number, got \"fast\"");
  CHECK(error_of("", {"steps=[1]"}) == "--set steps=[1]: steps: expected an integer, got a list");
  CHECK(error_of("", {"optim.ler=1"}) ==
        "--set optim.ler=1: optim.ler: unknown key; the nearest known key is optim.lr");
  CHECK(error_of("", {"opt.lr=1"}) ==
        "--set opt.lr=1: opt: unknown key; the nearest known key is optim");
  CHECK(error_of("", {"steps.x=1"}) ==
        "--set steps.x=1: steps: expected an integer, not a key inside it");
  CHECK(error_of("", {"optim=1"}) == "--set optim=1: optim: expected a table, got 1");
  CHECK(error_of("", {"steps"}) == "--set steps: expected KEY=VALUE");
  CHECK_THAT(error_of("", {"=1"}), Catch::Contains("unknown key"));
  CHECK_THAT(error_of("", {"."}), Catch::Contains("expected KEY=VALUE"));
  CHECK_THAT(error_of("", {"title=\xff"}), Catch::Contains("expected UTF-8"));
  CHECK_THAT(error_of("", {"quick=1\nsteps=2"}), Catch::Contains("expected true or false"));
}

TEST_CASE("what is written reads back exactly") {
  Config c;
  CHECK(read(write_toml(c)) == c);
  c.quick = true;
  c.title = "a\"b\\c\n\t\x01\x7f é 猫";
  c.limit.count = 12345;
  c.files = {"", "x,y", "#"};
  c.sizes = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  c.recompute = {"norm", "block"};
  c.warmup = 0;
  c.note = "";
  c.optim.betas = {-0.0, 1e300, 5e-324, 0.1,  3,
                   1e15, 1e16,  1e17,   1e-5, std::numeric_limits<double>::infinity()};
  c.dist.link = Link{0.1, 1.0 / 3};
  c.dist.prefetch = Link{2, 3};
  c.dist.reshard = std::int64_t{2};
  c.dist.placement = {{"a.*", 1}, {"b", 0}};
  const std::string text = write_toml(c);
  INFO(text);
  CHECK(read(text) == c);
  CHECK(std::signbit(read(text).optim.betas[0]));
  CHECK(write_toml(read(text)) == text);
}

TEST_CASE("floats make the round trip bit for bit") {
  std::mt19937_64 random(1);
  Config c;
  c.optim.betas.clear();
  for (int i = 0; i < 2000; ++i) {
    const double d = std::bit_cast<double>(random());
    if (std::isfinite(d)) c.optim.betas.push_back(d);
  }
  CHECK(read(write_toml(c)) == c);
  for (int i = 0; i < 500; ++i) {
    c.optim.betas.clear();
    c.optim.eps = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(c.optim.eps)) continue;
    const Config back = read(write_toml(c));
    REQUIRE(std::bit_cast<std::uint32_t>(back.optim.eps) ==
            std::bit_cast<std::uint32_t>(c.optim.eps));
  }
}

TEST_CASE("help lists every key with default, type and doc") {
  const std::string help = toml_help<Config>();
  INFO(help);
  CHECK_THAT(help, Catch::Contains("steps = 10\n    optimizer steps (an integer)\n"));
  CHECK_THAT(help, Catch::Contains("limit = \"1KiB\"\n"));
  CHECK_THAT(help, Catch::Contains("warmup = none\n    steps of warm-up (an integer)\n"));
  CHECK_THAT(help, Catch::Contains("[optim]  the optimizer\n"));
  CHECK_THAT(help, Catch::Contains("optim.lr = 0.0003\n    peak learning rate, > 0 (a number)\n"));
  CHECK_THAT(help, Catch::Contains(
                       "optim.name = \"adamw\"\n    the optimizer (one of \"adamw\", \"sgd\")\n"));
  CHECK_THAT(help,
             Catch::Contains("dist.prefetch = 1\n    how far ahead (an integer or a table)\n"));
  CHECK_THAT(help,
             Catch::Contains("[[dist.placement]]  exceptions\ndist.placement.match = \"\"\n"));
}

TEST_CASE("sizes in bytes") {
  CHECK(parse_bytes("0").count == 0);
  CHECK(parse_bytes("3 GiB").count == std::int64_t{3} << 30);
  CHECK(parse_bytes("2kB").count == 2000);
  CHECK(parse_bytes("7B").count == 7);
  CHECK(parse_bytes("8388607TiB").count == std::int64_t{8388607} << 40);
  for (const char* bad :
       {"", "MiB", "1.5MiB", "1 MIB", "0x10", "8388608TiB", "9223372036854775808"}) {
    CHECK_THROWS_AS(parse_bytes(bad), Error);
  }
  for (const std::int64_t n : {0L, 1L, 1000L, 1024L, 1536L, 1L << 30, 1L << 62}) {
    CHECK(parse_bytes(format_bytes({n})).count == n);
  }
  CHECK(format_bytes({512 << 20}) == "512MiB");
  CHECK(format_bytes({1536}) == "1536B");
}

TEST_CASE("a missing configuration file") {
  CHECK_THROWS_WITH(load_toml<Config>("no/such.toml"),
                    Catch::Contains("no/such.toml: cannot open: No such file"));
}

}  // namespace
}  // namespace sherd
