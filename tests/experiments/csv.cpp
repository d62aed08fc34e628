#include "experiments/folder/csv.hpp"

#include "tests/test.hpp"

TEST_SUITE("csv") {
  using namespace heed;

  TEST_CASE("CSV with quotes, commas and line ends inside") {
    using Lines = std::vector<std::vector<std::string>>;
    CHECK(parse_csv("a,\"b,\"\"c\"\"\nd\",\r\n,e\n") == Lines{{"a", "b,\"c\"\nd", ""}, {"", "e"}});
    CHECK(parse_csv("") == Lines{});
  }
}
