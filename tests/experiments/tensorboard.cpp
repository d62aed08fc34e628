#include "experiments/exchange/tensorboard.hpp"

#include "tests/experiments/ablation_file.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/small_ablation.hpp"

// TensorBoard's event files, against CRC-32C's published vectors, bytes written by hand, and the rows of metrics.jsonl.

using namespace heed;
namespace fs = std::filesystem;

namespace {

/// The bytes of a text of hexadecimal digits; blanks do not count.
std::string from_hex(std::string digits) {
  std::erase(digits, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

/// Takes bytes off the front.
struct Bytes {
  std::string_view rest;

  std::string_view take(std::uint64_t count) {
    REQUIRE(count <= rest.size());
    auto const taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);  // this processor is little-endian
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      auto const byte = number<unsigned char>();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view text() { return take(varint()); }
};

/// The data of a file's records, whose checksums must be right.
std::vector<std::string> records_in(fs::path const& path) {
  std::string const content = test::get(path);
  std::vector<std::string> records;
  auto const check = [](std::string_view bytes, std::uint32_t masked) {
    CHECK(masked == ((crc32c(bytes) >> 15 | crc32c(bytes) << 17) + 0xa282ead8U));
  };
  for (Bytes file{content}; !file.rest.empty();) {
    auto const head = file.rest.substr(0, 8);
    auto const length = file.number<std::uint64_t>();
    check(head, file.number<std::uint32_t>());
    records.emplace_back(file.take(length));
    check(records.back(), file.number<std::uint32_t>());
  }
  return records;
}

std::set<fs::path> event_files(fs::path const& folder) {
  std::set<fs::path> files;
  for (auto const& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.insert(entry.path());
  return files;
}

struct ShownRow {
  double wall_time = 0;
  Row row;
};

Row summary_of(Index step, std::string_view message) {
  Row row{step, {}};
  for (Bytes summary{message}; !summary.rest.empty();) {
    REQUIRE(summary.varint() == 0x0a);
    Bytes value{summary.text()};
    REQUIRE(value.varint() == 0x0a);
    auto const tag = value.text();
    REQUIRE(value.varint() == 0x15);
    row.set(std::string(tag), static_cast<double>(value.number<float>()));
    CHECK(value.rest.empty());
  }
  return row;
}

/// The rows that TensorBoard shows of a folder: it reads the event files by their names, and a session's start drops the rows of its step
/// and later.
std::vector<ShownRow> shown(fs::path const& folder) {
  std::vector<ShownRow> rows;
  for (auto const& file : event_files(folder))
    for (auto const& record : records_in(file)) {
      ShownRow shown;
      for (Bytes event{record}; !event.rest.empty();) {
        auto const key = event.varint();
        if (key == 0x09) shown.wall_time = event.number<double>();
        if (key == 0x10) shown.row.step = static_cast<Index>(event.varint());
        if (key == 0x1a) CHECK(event.text() == "brain.Event:2");
        if (key == 0x2a) rows.push_back({shown.wall_time, summary_of(shown.row.step, event.text())});
        if (key != 0x3a) continue;
        CHECK(event.text() == from_hex("08 01"));
        while (!rows.empty() && rows.back().row.step >= shown.row.step) rows.pop_back();
      }
    }
  return rows;
}

/// The rows that are shown of a folder are those of a run's metrics.jsonl, with tags instead of names, in float32.
void check_rows(fs::path const& folder, fs::path const& run) {
  std::vector<std::string> found, expected;
  for (auto const& each : shown(folder)) found.push_back(to_json(each.row));
  for (Row row : read_rows(run)) {
    for (auto& [name, value] : row.values) {
      if (auto const dot = name.find('.'); dot != std::string::npos) name[dot] = '/';
      value = static_cast<double>(static_cast<float>(value));
    }
    expected.push_back(to_json(row));
  }
  CHECK(found == expected);
}

constexpr char const* events_config = R"(
name: tiny
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 8}
train: {steps: 40, batch: 4, evaluate: {every: 10}, checkpoint: {every: 5}, log: {tensorboard: true}}
)";

}  // namespace

TEST_SUITE("tensorboard") {
  TEST_CASE("CRC-32C: the test vectors of RFC 3720, B.4") {
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
  }

  TEST_CASE_FIXTURE(test::InFolder, "a file has the bytes that protobuf's specification asks for") {
    EventFile(folder.path(), 300, 1.5).write({300, {{"validation.loss.length8", 0.1}, {"loss", -INFINITY}}}, 2);
    auto const files = event_files(folder.path());
    REQUIRE(files.size() == 1);
    CHECK(files.begin()->filename() == "events.out.tfevents.0000000001.500000.heed");
    // By this length and its masked checksum TensorFlow's own event files begin.
    CHECK(test::get(*files.begin()).substr(0, 12) == from_hex("18000000 00000000 a37f4b22"));
    auto const records = records_in(*files.begin());
    REQUIRE(records.size() == 3);
    CHECK(records[0] == from_hex("09 000000000000f83f 1a 0d") + "brain.Event:2");
    CHECK(records[1] == from_hex("09 000000000000f83f 10 ac02 3a 02 08 01"));
    CHECK(records[2] == from_hex("09 0000000000000040 10 ac02 2a 2d 0a 1e 0a 17") + "validation/loss.length8" + from_hex("15 cdcccc3d") +
                            from_hex("0a 0b 0a 04") + "loss" + from_hex("15 000080ff"));
  }

  TEST_CASE("TensorBoard shows the rows of a run's metrics.jsonl, each step once, also of a run that went on or was killed") {
    test::ProgramRun const longer(events_config, {"--quiet"});
    for (std::size_t files = 1; files <= 2; ++files) {
      longer.train({"train.log.every=3", fmt::format("train.steps={}", 20 * files)});
      CHECK(event_files(longer.run).size() == files);
      check_rows(longer.run, longer.run);
    }

    test::ProgramRun const killed(events_config, {"--quiet"});
    for (int const step : {2, 17}) {
      test::Program const program(killed.command());
      program.wait_until([&] { return last_step(killed.run).value_or(-1) >= step; });
      program.send(SIGKILL);
    }
    killed.train();
    check_rows(killed.run, killed.run);
  }

  TEST_CASE("event files do not make another trial of one") {
    test::AblationFile const file;
    auto const name = [&](std::string const& key) {
      auto const ablation = file.load("vary: {model.attention: [scaled, dot]}\nset: {" + key + "}\n");
      return trial_of(ablation, "scaled", ablation.arms[0].changes, 1).settings.name;
    };
    CHECK(name("train.log.tensorboard: true") == name("train.log.tensorboard: false"));
    CHECK(name("train.log.every: 2") != name("train.log.every: 1"));
  }

  TEST_CASE_FIXTURE(test::SmallAblation, "heed export: runs and an ablation's trials, each in a folder of its own") {
    REQUIRE(run({"vary={model.attention: [scaled, hard]}", "train.steps=20", "train.log.every=5", "--quiet"}).code == 0);
    auto const trials = summary()["trials"];
    auto const first = (small / trials[0].get<std::string>()).string(), target = (folder / "events").string();
    REQUIRE(test::run_heed({"export", small.string(), first, "--format", "tensorboard", target}).code == 0);
    std::vector<fs::path> folders{fs::path(target) / trials[0].get<std::string>()};
    for (auto const& trial : trials) folders.push_back(fs::path(target) / "small" / trial.get<std::string>());
    for (auto const& events : folders) {
      CAPTURE(events);
      check_rows(events, small / events.filename());
      double last = 1.7e9;
      for (auto const& row : shown(events)) {
        CHECK(row.wall_time >= last);
        last = row.wall_time;
      }
    }
    auto const twice = (folder / "twice").string();
    test::refuses({"export", first, first, "--format", "tensorboard", twice}, 2, {first, "two runs"});
    CHECK(!fs::exists(twice));
    test::refuses({"export", first, "--format", "tensorboard", target}, 2, {"events", "holds"});
  }
}
