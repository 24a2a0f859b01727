#include "base/json.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "third_party/catch2/test.h"

namespace sherd {
namespace {

using Catch::Contains;

TEST_CASE("values of every kind come back, with the order of members") {
  const Json json(Json::Object{
      {"z", Json()},
      {"a", true},
      {"whole", -7},
      {"seed", std::numeric_limits<uint64_t>::max()},
      {"lr", 0.1},
      {"tiny", 5e-324},
      {"text", "quote \" é \n"},
      {"list", Json::Array{1, "two", Json::Array{}, Json::Object{}}},
  });
  for (const int indent : {0, 2}) CHECK(Json::parse(json.text(indent)) == json);
  CHECK(Json(Json::Object{{"b", 1}, {"a", Json::Array{1, 2}}}).text(0) == R"({"b":1,"a":[1,2]})");
  CHECK(json.at("seed").unsigned_integer() == std::numeric_limits<uint64_t>::max());
  CHECK(json.at("whole").number() == -7);
  CHECK(json.find("absent") == nullptr);
}

TEST_CASE("doubles stay doubles") {
  CHECK(Json::parse(Json(3.0).text()) == Json(3.0));
  CHECK_THROWS_WITH(Json::parse("1e400"), Contains("not valid JSON"));  // no double holds it
}

TEST_CASE("the wrong kind is an error that says what came") {
  const Json json = Json::parse(R"({"a":1.5,"b":"x","c":-1})");
  CHECK_THROWS_WITH(json.at("a").integer(), Contains("a number"));
  CHECK_THROWS_WITH(json.at("b").number(), Contains("a string"));
  CHECK_THROWS_WITH(json.at("c").unsigned_integer(), Contains("-1"));
  CHECK_THROWS_WITH(json.at("d"), Contains("d"));
  CHECK_THROWS_WITH(json.at("a").at("b"), Contains("an object"));
  CHECK_THROWS_WITH(json.array(), Contains("an array"));
  CHECK_THROWS_WITH(json.at("b").boolean(), Contains("a bool"));
}

TEST_CASE("hostile text is refused") {
  for (const char* bad : {"", "{", "{\"a\":1,}", "[1 2]", "nul", "\"\xff\"", "{} {}", "01", "NaN"})
    CHECK_THROWS_WITH(Json::parse(bad), Contains("not valid JSON"));
  CHECK_THROWS_WITH(Json::parse(R"({"a":1,"b":2,"a":3})"), Contains("twice") && Contains("a"));
  CHECK_THROWS_WITH(Json::parse("99999999999999999999"), Contains("64 bits"));
  CHECK(Json::parse("[[[]]]", 3).array().size() == 1);
  CHECK_THROWS_WITH(Json::parse("[[[]]]", 2), Contains("2 levels"));
  CHECK_THROWS_WITH(Json::parse(std::string(1'000'000, '[')), Contains("levels"));
  CHECK_THROWS_WITH(Json(NAN).text(), Contains("finite"));
  CHECK_THROWS_WITH(Json("\xff").text(), Contains("UTF-8"));
}

}  // namespace
}  // namespace sherd
