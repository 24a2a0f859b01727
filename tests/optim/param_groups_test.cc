#include "optim/param_groups.h"

#include "base/error.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;

const std::vector<ParamInfo> kModel{{"wte.weight", {50, 8}},
                                    {"blocks.0.ln1.weight", {8}},
                                    {"blocks.0.ln1.bias", {8}},
                                    {"blocks.0.mlp.up.weight", {32, 8}},
                                    {"scale", {}},
                                    {"heads.bias", {2, 4}},
                                    {"lm_head.weight", {50, 8}}};

TEST_CASE("biases, norms and scalars do not decay") {
  const auto groups = param_groups(kModel, {.weight_decay = 0.1});
  for (const char* name : {"wte.weight", "blocks.0.mlp.up.weight", "lm_head.weight"})
    CHECK(group_of(groups, name).weight_decay == 0.1);
  for (const char* name : {"blocks.0.ln1.weight", "blocks.0.ln1.bias", "scale", "heads.bias"})
    CHECK(group_of(groups, name).weight_decay == 0);
  CHECK(groups.size() == 3);
  CHECK_THROWS_WITH(group_of(groups, "absent"), Contains("absent"));
}

TEST_CASE("the first rule that matches holds") {
  const auto groups = param_groups(
      kModel, {.weight_decay = 0.1, .rules = {{"wte.*", 0.01, 0.5}, {"*.weight", 0.2}}});
  CHECK(group_of(groups, "wte.weight").weight_decay == 0.01);
  CHECK(group_of(groups, "wte.weight").lr_scale == 0.5);
  CHECK(group_of(groups, "blocks.0.ln1.weight").weight_decay == 0.2);
  CHECK(group_of(groups, "scale").lr_scale == 1);
}

TEST_CASE("a rule that matches nothing is an error that names it") {
  CHECK_THROWS_WITH(param_groups(kModel, {.rules = {{"wet.*", 0}}}), Contains("wet.*"));
  CHECK_THROWS_WITH(param_groups(kModel, {.rules = {{"wte.*", -1}}}), Contains("-1"));
  CHECK_THROWS_WITH(param_groups(kModel, {.weight_decay = -1}), Contains("weight_decay"));
}

TEST_CASE("the table shows every parameter with its shape") {
  CHECK(param_group_table(param_groups({kModel[0], kModel[1], kModel[3]}, {.weight_decay = 0.1})) ==
        "weight_decay 0.1, lr_scale 1 (the rest): 2 parameters, 656 elements\n"
        "  wte.weight [50, 8]\n"
        "  blocks.0.mlp.up.weight [32, 8]\n"
        "weight_decay 0, lr_scale 1 (fewer than 2 dims): 1 parameters, 8 elements\n"
        "  blocks.0.ln1.weight [8]\n");
}

}  // namespace
}  // namespace sherd
