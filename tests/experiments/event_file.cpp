#include "experiments/run/exchange/event_file.hpp"

#include <bit>
#include <cmath>
#include <csignal>
#include <limits>

#include <doctest/doctest.h>

#include "autograd/error.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/run/record.hpp"
#include "tests/experiments/ablation_file.hpp"
#include "tests/program.hpp"

// TensorBoard's event files: against the published test vectors of CRC-32C, bytes that were written by hand from protobuf's specification,
// and the rows of metrics.jsonl. (Debian has no package of TensorBoard to hold them against.)

using namespace heed;
namespace fs = std::filesystem;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// The bytes of a text of hexadecimal digits; blanks do not count.
std::string from_hex(std::string_view digits) {
  std::string bytes, pair;
  for (char const c : digits) {
    if (c == ' ') continue;
    pair += c;
    if (pair.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(pair, nullptr, 16));
    pair.clear();
  }
  return bytes;
}

std::vector<Row> rows_in(std::string const& bytes) {
  EventReader reader(bytes, "events");
  std::vector<Row> rows;
  while (auto const timed = reader.next()) rows.push_back(timed->row);
  CHECK(reader.end() == bytes.size());
  return rows;
}

/// Steps, names and the bits of the values.
void check_equal(std::vector<Row> const& found, std::vector<Row> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].step == expected[i].step);
    REQUIRE(found[i].values.size() == expected[i].values.size());
    for (std::size_t k = 0; k < found[i].values.size(); ++k) {
      auto const& [name, value] = found[i].values[k];
      auto const& [other, wanted] = expected[i].values[k];
      CHECK(name == other);
      CHECK(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(wanted));
    }
  }
}

std::vector<Row> const rows{{0, {{"loss", 1.5}, {"validation.loss", 0.1}}},
                            {1, {{"loss", nan}, {"validation.accuracy.long/short", infinity}}},
                            {300, {{"loss", -infinity}, {"a/b.c", -0.0}}},
                            {std::int64_t{1} << 40, {{"loss", 5e-324}, {"time.seconds", 1.7976931348623157e308}}}};

void write_jsonl(fs::path const& path, std::vector<Row> const& all) {
  std::string text;
  for (Row const& row : all) text += to_json(row) + "\n";
  test::put(path, text);
}

fs::path event_file(fs::path const& folder) {
  fs::path found;
  for (auto const& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      CHECK(found.empty());
      found = entry.path();
    }
  REQUIRE(!found.empty());
  return found;
}

constexpr char const* config = R"(
name: short
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 8}
train: {steps: 40, batch: 4, evaluate: {every: 10}, checkpoint: {every: 5}}
)";

/// A configuration in a folder, and the run that it makes there.
struct ShortRun {
  test::Folder folder;
  fs::path run = folder / "short";

  ShortRun() { test::put(folder / "short.yaml", config); }
  std::vector<std::string> command(std::vector<std::string> const& more) const {
    std::vector<std::string> all{"run", (folder / "short.yaml").string(), "--output", folder.path().string(), "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void check_events() const { check_equal(rows_in(test::get(event_file(run))), read_rows(run)); }
};

}  // namespace

TEST_SUITE("event_file") {
  TEST_CASE("CRC-32C: the test vectors of RFC 3720, B.4, and TFRecord's mask") {
    std::string up, down;
    for (int i = 0; i < 32; ++i) up += static_cast<char>(i), down += static_cast<char>(31 - i);
    CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
    CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
    CHECK(crc32c(up) == 0x46dd794e);
    CHECK(crc32c(down) == 0x113fdb5c);
    CHECK(crc32c(from_hex("01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000")) ==
          0xd9963a56);
    CHECK(crc32c("123456789") == 0xe3069283);
    CHECK(crc32c("") == 0);
    CHECK(masked_crc32c("") == 0xa282ead8);
    // Of the length 24, by which TensorFlow's own event files begin: 18 00 00 00 00 00 00 00 a3 7f 4b 22.
    CHECK(masked_crc32c(from_hex("18000000 00000000")) == 0x224b7fa3);
  }

  TEST_CASE("records are those that protobuf's specification asks for, byte for byte") {
    auto const version = version_record(1.5);
    CHECK(version.substr(0, 12) == from_hex("18000000 00000000 a37f4b22"));
    CHECK(version.substr(12, 24) == from_hex("09 000000000000f83f 1a 0d") + "brain.Event:2");
    auto const data = from_hex("09 000000000000f83f 10 03 2a 38 0a 36 0a 0f") + "validation/loss" +
                      from_hex("42 14 08 01 12 00 2a 04 cdcccc3d 32 08 9a9999999999b93f 4a 0d 0a 09 0a 07") + "scalars" + from_hex("20 01");
    auto const record = scalars_record({1.5, {3, {{"validation.loss", 0.1}}}});
    REQUIRE(record.size() == 8 + 4 + data.size() + 4);
    CHECK(record.substr(0, 8) == from_hex("45000000 00000000"));
    CHECK(record.substr(12, data.size()) == data);
    auto const crc = masked_crc32c(data);
    for (std::size_t i = 0; i < 4; ++i) CHECK(static_cast<unsigned char>(record[12 + data.size() + i]) == (crc >> (8 * i) & 0xff));
  }

  TEST_CASE("tags group by the first part of a name, and lead back to it") {
    CHECK(event_tag("validation.loss.length64") == "validation/loss.length64");
    CHECK(event_tag("loss") == "loss");
    CHECK(event_tag("") == "");
    for (char const* name : {"validation.accuracy.a/b", "a/b.c", "probe.attention.entropy.layer0.head1", "./", "a/"})
      CHECK(event_tag(event_tag(name)) == name);
  }

  TEST_CASE("what was written is read back with its bits and times") {
    std::string bytes = version_record(7);
    for (Row const& row : rows) bytes += scalars_record({static_cast<double>(row.step) + 0.25, row});
    check_equal(rows_in(bytes), rows);
    EventReader reader(bytes, "events");
    while (auto const timed = reader.next()) CHECK(timed->wall_time == static_cast<double>(timed->row.step) + 0.25);
    CHECK(rows_in("").empty());
    CHECK(rows_in(version_record(0)).empty());
    CHECK_THROWS_WITH_AS(EventReader(scalars_record({1, rows[0]}), "events"),
                         "events: the record at byte 0 is no event with the version brain.Event:2", FileError);
  }

  TEST_CASE("torn at every byte of its last record a file goes on as if it had not been") {
    test::Folder const folder;
    auto const jsonl = folder / "metrics.jsonl";
    write_jsonl(jsonl, {});
    {
      EventFile file(jsonl);
      for (Row const& row : rows) file.write(row);
      file.sync();
    }
    auto const path = event_file(folder.path());
    auto const whole = test::get(path);
    check_equal(rows_in(whole), rows);
    auto const before = std::vector<Row>(rows.begin(), rows.end() - 1);
    write_jsonl(jsonl, before);  // as a checkpoint before the last row leaves it
    auto const last = whole.size() - scalars_record({1, rows.back()}).size();
    for (auto cut = last; cut <= whole.size(); ++cut) {
      test::put(path, whole.substr(0, cut));
      EventFile(jsonl).write(rows.back());
      auto const again = test::get(path);
      CHECK(again.substr(0, last) == whole.substr(0, last));
      CHECK(again.size() == whole.size());
      check_equal(rows_in(again), rows);
    }
    // Whatever else it lacks is added: all of it, its end, or a row that was another.
    for (std::size_t const cut : {std::size_t{0}, std::size_t{5}, version_record(0).size() + 3}) {
      test::put(path, whole.substr(0, cut));
      EventFile(jsonl).write(rows.back());
      check_equal(rows_in(test::get(path)), rows);
    }
    write_jsonl(jsonl, {rows[0], rows[2]});
    { EventFile const file(jsonl); }
    check_equal(rows_in(test::get(path)), {rows[0], rows[2]});
    fs::remove(path);
    { EventFile const file(jsonl); }
    check_equal(rows_in(test::get(event_file(folder.path()))), {rows[0], rows[2]});
  }

  TEST_CASE("a damaged record in the middle is refused, with its place, and the file stays") {
    test::Folder const folder;
    auto const jsonl = folder / "metrics.jsonl";
    write_jsonl(jsonl, rows);
    { EventFile const file(jsonl); }
    auto const path = event_file(folder.path());
    auto const whole = test::get(path);
    auto const at = version_record(0).size(), next = at + scalars_record({1, rows[0]}).size();
    for (std::size_t i = at; i < next; ++i) {
      CAPTURE(i);
      auto damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
      test::put(path, damaged);
      std::string message;
      try {
        EventFile const file(jsonl);
      } catch (FileError const& error) {
        message = error.what();
      }
      CHECK(message.starts_with(path.string() + ": the record at byte " + std::to_string(at) + " is damaged"));
      CHECK(test::get(path) == damaged);
    }
  }

  TEST_CASE("a run's event file has every scalar of its metrics.jsonl, also after it was killed") {
    ShortRun const plain;
    REQUIRE(test::run_heed(plain.command({"train.log={every: 3, tensorboard: true}"})).code == 0);
    plain.check_events();

    ShortRun const killed;
    for (int const step : {6, 17}) {
      test::Program const program(killed.command({"train.log.tensorboard=true"}));
      program.wait_until([&] { return last_step(killed.run).value_or(-1) >= step; });
      program.send(SIGKILL);
    }
    REQUIRE(test::run_heed(killed.command({"train.log.tensorboard=true"})).code == 0);
    killed.check_events();
  }

  TEST_CASE("events may begin in the middle of a run, and do not make another trial of it") {
    ShortRun const run;
    REQUIRE(test::run_heed(run.command({"train.steps=20"})).code == 0);
    REQUIRE(test::run_heed(run.command({"train.log.tensorboard=true"})).code == 0);
    CHECK(read_rows(run.run).back().step == 40);
    run.check_events();

    test::AblationFile const file;
    auto const name = [&](std::string const& key) {
      auto const ablation = file.load("vary: {model.attention: [scaled, dot]}\nset: {" + key + "}\n");
      return trial_of(ablation, "scaled", ablation.arms[0].changes, 1).settings.name;
    };
    CHECK(name("train.log.tensorboard: true") == name("train.log.tensorboard: false"));
    CHECK(name("train.log.every: 2") != name("train.log.every: 1"));
  }
}
