#include "nn/files/safetensors.hpp"

#include <thread>

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/random.hpp"
#include "nn/files/sha256.hpp"
#include "tests/difference.hpp"
#include "tests/folder.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using test::check_refusal, test::get, test::InFolder, test::put, test::same_bits;
namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

template <class T>
std::string raw(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

std::string length_prefix(std::uint64_t length) { return raw(std::vector{length}); }

// A safetensors file of any header and data.
std::string file_of(std::string const& header, std::string const& data = "") { return length_prefix(header.size()) + header + data; }

// A file of one tensor "x".
std::string one(std::string const& dtype, std::string const& shape, std::string const& offsets, std::size_t data_bytes) {
  return file_of(fmt::format(R"({{"x":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets),
                 std::string(data_bytes, '\1'));
}

std::string refusal(std::function<void()> const& action) { return test::refusal<FileError>(action); }

template <class T>
Tensor tensor_of(std::vector<T> const& values, Shape const& shape) {
  Tensor result(shape, dtype_of<T>());
  std::copy(values.begin(), values.end(), result.mutable_data<T>().begin());
  return result;
}

std::vector<std::pair<std::string, Tensor>> samples() {
  constexpr auto inf = std::numeric_limits<double>::infinity();
  auto const signalling = std::bit_cast<double>(std::uint64_t{0x7ff4000000000123});
  return {
      {"weight", tensor_of<float>({1.5f, -0.0f, std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::infinity(),
                                   std::bit_cast<float>(0xffc01234u), 7},
                                  {2, 3})},
      {"odd", tensor_of<float>({1, 2, 3}, {3})},
      {"double", tensor_of<double>({0.1, inf, -inf, signalling, -0.0}, {5, 1})},
      {"tokens", tensor_of<Index>({0, -1, INT64_MAX, INT64_MIN}, {2, 2})},
      {"scalar", tensor_of<double>({-3.25}, {})},
      {"step", tensor_of<Index>({12}, {})},
      {"empty", Tensor({0, 4}, DType::float32)},
      {"also empty", Tensor({3, 0, 2}, DType::int64)},
      {"eight axes", tensor_of<float>({4, 5}, {1, 1, 1, 2, 1, 1, 1, 1})},
      {"naïve \"name\"\n/\\", tensor_of<float>({9}, {1})},
  };
}

}  // namespace

TEST_SUITE("safetensors") {
  TEST_CASE_FIXTURE(InFolder, "what is saved is read back bit for bit") {
    auto const path = folder / "all.safetensors";
    std::map<std::string, std::string> const metadata{{"step", "12"}, {"note", "line\nline, \"quoted\", ü"}, {"", ""}};
    save_safetensors(path, samples(), metadata);
    SafetensorsFile const file(path);
    CHECK(file.metadata() == metadata);
    CHECK(file.names().size() == samples().size());
    for (auto const& sample : samples()) {
      CAPTURE(sample.first);
      REQUIRE(file.contains(sample.first));
      CHECK(file.shape(sample.first) == sample.second.shape());
      CHECK(file.dtype(sample.first) == sample.second.dtype());
      CHECK(same_bits(file.tensor(sample.first), sample.second));
    }
    CHECK_FALSE(file.contains("weigh"));
    check_refusal(refusal([&] { file.tensor("weigh"); }), path, R"(no tensor "weigh")");
    CHECK(folder.names() == std::vector<std::string>{"all.safetensors"});
  }

  TEST_CASE_FIXTURE(InFolder, "equal arguments give equal bytes, aligned, and an order that a second writing keeps") {
    auto const a = folder / "a", b = folder / "b", c = folder / "c";
    save_safetensors(a, samples());
    save_safetensors(b, samples());
    CHECK(get(a) == get(b));

    std::uint64_t header;
    std::memcpy(&header, get(a).data(), 8);
    CHECK(header % 8 == 0);

    SafetensorsFile file(a);
    SafetensorsFile const moved(std::move(file));
    std::vector<std::pair<std::string, Tensor>> again;
    std::size_t offset = 0;
    for (auto const& name : moved.names()) {
      again.emplace_back(name, moved.tensor(name));
      auto const size = bytes_of(moved.dtype(name));
      CHECK(offset % size == 0);
      offset += size * static_cast<std::size_t>(moved.shape(name).elements());
    }
    save_safetensors(c, again);
    CHECK(SafetensorsFile(c).names() == moved.names());
  }

  TEST_CASE_FIXTURE(InFolder, "a file without tensors") {
    save_safetensors(folder / "none", {}, {{"a", "b"}});
    SafetensorsFile const file(folder / "none");
    CHECK(file.names().empty());
    CHECK(file.metadata().at("a") == "b");
    save_safetensors(folder / "nothing", {});
    CHECK(get(folder / "nothing") == file_of("{}      "));
  }

  TEST_CASE_FIXTURE(InFolder, "every type of the format is read, aligned or not") {
    struct Sample {
      std::string dtype, bytes;
      Tensor expected;
    };
    auto const f32 = [](std::vector<float> const& v) { return tensor_of(v, {std::ssize(v)}); };
    auto const i64 = [](std::vector<Index> const& v) { return tensor_of(v, {std::ssize(v)}); };
    constexpr auto inf = std::numeric_limits<float>::infinity();
    std::vector<Sample> const all{
        {"F64", raw<double>({0.1, -2}), tensor_of<double>({0.1, -2}, {2})},
        {"F32", raw<float>({0.1f, -2}), f32({0.1f, -2})},
        {"F16", raw<std::uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0400, 0x03ff, 0x8001, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x3555}),
         f32({1, -2, 65504, 0x1p-14f, 1023 * 0x1p-24f, -0x1p-24f, -0.0f, inf, -inf, std::bit_cast<float>(0x7fc02000u), 0.333251953125f})},
        {"BF16", raw<std::uint16_t>({0x3f80, 0xc000, 0x7f80, 0x7fc1, 0x0001}),
         f32({1, -2, inf, std::bit_cast<float>(0x7fc10000u), std::bit_cast<float>(0x00010000u)})},
        {"I64", raw<Index>({INT64_MIN, 5}), i64({INT64_MIN, 5})},
        {"I32", raw<std::int32_t>({INT32_MIN, 5}), i64({INT32_MIN, 5})},
        {"I16", raw<std::int16_t>({INT16_MIN, 5}), i64({INT16_MIN, 5})},
        {"I8", raw<std::int8_t>({INT8_MIN, 5}), i64({INT8_MIN, 5})},
        {"U64", raw<std::uint64_t>({INT64_MAX, 5}), i64({INT64_MAX, 5})},
        {"U32", raw<std::uint32_t>({UINT32_MAX, 5}), i64({UINT32_MAX, 5})},
        {"U16", raw<std::uint16_t>({UINT16_MAX, 5}), i64({UINT16_MAX, 5})},
        {"U8", raw<std::uint8_t>({UINT8_MAX, 5}), i64({UINT8_MAX, 5})},
        {"BOOL", raw<std::uint8_t>({0, 1, 1}), i64({0, 1, 1})},
    };
    auto const path = folder / "types";
    for (auto const& sample : all)
      for (std::size_t shift = 0; shift < 9; ++shift) {
        INFO("sample.dtype ", sample.dtype, ", shift ", shift);
        put(path, file_of(fmt::format(R"({{"before":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}},)"
                                      R"("x":{{"dtype":"{1}","shape":{2},"data_offsets":[{0},{3}]}}}})",
                                      shift, sample.dtype, to_string(sample.expected.shape()), shift + sample.bytes.size()),
                          std::string(shift, 'b') + sample.bytes));
        SafetensorsFile const file(path);
        CHECK(file.names() == std::vector<std::string>{"before", "x"});
        CHECK(file.dtype("x") == sample.expected.dtype());
        CHECK(same_bits(file.tensor("x"), sample.expected));
      }
    put(path, file_of(R"({"x":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}})", length_prefix(UINT64_MAX)));
    check_refusal(refusal([&] { SafetensorsFile(path).tensor("x"); }), path, "18446744073709551615 does not fit in int64");
  }

  TEST_CASE_FIXTURE(InFolder, "what other writers may do: names in any order, white space, keys unknown to us") {
    put(folder / "x",
        file_of("{ \"b\" : {\"data_offsets\":[4,8], \"dtype\":\"F32\", \"shape\":[ 1 ], \"more\": null},\n"
                "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},\"\\u0063\":{\"dtype\":\"F32\",\"shape\":[1,1],"
                "\"data_offsets\":[0,4]}, \"__metadata__\": {}}   ",
                raw<float>({1, 2, 3})));
    SafetensorsFile const file(folder / "x");
    CHECK(file.names() == std::vector<std::string>{"c", "b", "a"});
    CHECK(file.tensor("a").item() == 3);
    CHECK(file.tensor("b").item() == 2);
    CHECK(file.tensor("c").item() == 1);
  }

  TEST_CASE_FIXTURE(InFolder, "every malformed file is refused with its path and the reason") {
    auto const x = [](std::string const& shape, std::string const& offsets = "[0,4]", std::size_t data = 4) {
      return one(R"("F32")", shape, offsets, data);
    };
    auto const typed = [](std::string const& dtype) { return one(dtype, "[1]", "[0,4]", 4); };
    auto const two = [](std::string const& a, std::string const& b, std::size_t data) {
      return file_of(R"({"a":{"dtype":"U8","shape":)" + a + R"(},"b":{"dtype":"U8","shape":)" + b + "}}", std::string(data, '\0'));
    };
    std::string const first = R"([4],"data_offsets":[0,4])", u8 = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
    struct Malformed {
      std::string reason;
      std::vector<std::string> files;
    };
    std::vector<Malformed> all{
        // the file and its header
        {"empty", {""}},
        {"7 bytes", {"1234567"}},
        {"cut short: a header of 2 bytes, 0 present", {length_prefix(2)}},
        {"cut short: a header of 3 bytes, 2 present", {length_prefix(3) + "{}"}},
        {"100000001 bytes", {length_prefix(100'000'001) + "{}"}},
        {"18446744073709551615 bytes", {length_prefix(UINT64_MAX) + "{}"}},
        {"18446744073709551608 bytes", {length_prefix(UINT64_MAX - 7) + "{}"}},
        {"not a safetensors file",
         {"\x80\x04\x95 a pickle that is long enough to look at", "First Citizen:\nBefore we proceed any further, hear me speak."}},
        {"does not begin with {", {file_of(""), file_of("   {}")}},
        {"not a JSON object", {file_of("[]"), file_of("null")}},
        {"not JSON", {file_of("{"), file_of("{}}"), file_of("{} x"), file_of("{'x':1}"), x("[01]"), x("[NaN]")}},
        {"a zero at byte 2", {file_of("{}\0\0"s)}},
        {"a zero at byte 3", {file_of("{\"a\0\":{}}"s)}},
        {"out of range", {x("[1e999]")}},
        {"not valid UTF-8", {file_of("{\"\xff\":{}}"), file_of("{\"\xc0\xaf\":{}}"), file_of("{\"\xed\xa0\x80\":{}}")}},
        {"nested",
         {file_of("{\"x\":" + std::string(1'000'000, '[')),
          file_of("{\"x\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}"),
          file_of(fmt::format("{}", fmt::join(std::vector<std::string>(200'000, R"({"x":)"), "")))}},
        {R"("x" twice)",
         {file_of("{\"x\":" + u8 + R"(,"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"),
          file_of("{\"x\":" + u8 + R"(,"\u0078":{}})", "1")}},
        {R"("dtype" twice)", {file_of(R"({"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")}},
        // metadata
        {"__metadata__ is [], not an object", {file_of(R"({"__metadata__":[]})")}},
        {"__metadata__ is null", {file_of(R"({"__metadata__":null})")}},
        {R"(__metadata__: "step" is 12, not a string)", {file_of(R"({"__metadata__":{"step":12}})")}},
        {"not a string", {file_of(R"({"__metadata__":{"a":{"b":"c"}}})")}},
        {R"("a" twice)", {file_of(R"({"__metadata__":{"a":"1","a":"2"}})")}},
        {"twice", {file_of(R"({"__metadata__":{},"__metadata__":{}})")}},
        // descriptions
        {R"(tensor "x": its description is [1], not an object)", {file_of(R"({"x":[1]})")}},
        {"not an object", {file_of(R"({"x":"y"})")}},
        {"yyy..., not an object", {file_of("{\"x\":\"" + std::string(5000, 'y') + "\"}")}},
        {R"(tensor "line\nbreak")", {file_of(R"({"line\nbreak":0})")}},
        {"has no dtype", {file_of(R"({"x":{}})")}},
        {"has no shape", {file_of(R"({"x":{"dtype":"F32","data_offsets":[0,0]}})")}},
        {"has no data_offsets", {file_of(R"({"x":{"dtype":"F32","shape":[0]}})")}},
        {"dtype is 32, not a string", {typed("32")}},
        {R"(dtype "f32" is none of F64, F32)", {typed(R"("f32")")}},
        {R"(dtype "C64" is none of)", {typed(R"("C64")")}},
        {R"(dtype "" is none of)", {typed(R"("")")}},
        // shapes
        {"shape is 1, not an array", {x("1")}},
        {"shape is {}, not an array", {x("{}")}},
        {"is not a whole number", {x("[-0]"), x("[18446744073709551616]")}},
        {"too large",
         {x("[9223372036854775807]"), x("[4294967296,4294967296]", "[0,0]", 0),  // 2^64 elements: 0 if it wrapped
          x("[2305843009213693952]", "[0,0]", 0), x("[4294967296,4294967296,0]", "[0,0]", 0), x("[0,4294967296,4294967296]", "[0,0]", 0)}},
        {"9 axes, more than 8", {x("[1,1,1,1,1,1,1,1,1]")}},
        // offsets
        {"data_offsets is 4, not [begin, end]", {x("[1]", "4")}},
        {"not [begin, end]", {x("[1]", "[4]"), x("[1]", "[0,4,8]", 8), x("[1]", R"({"0":0,"1":4})")}},
        {"not two whole numbers",
         {x("[1]", "[-4,0]"), x("[1]", "[0.0,4.0]"), x("[1]", R"(["0","4"])"), x("[1]", "[18446744073709551612,18446744073709551616]")}},
        {"reversed", {x("[1]", "[4,0]")}},
        {"span 4 bytes, but F32 of shape [2] takes 8", {x("[2]")}},
        {"span 8 bytes, but F32 of shape [] takes 4", {x("[]", "[0,8]", 8)}},
        {"takes 0", {x("[0]")}},
        {"cut short: tensor \"x\" ends at data byte 8, 7 present", {x("[2]", "[0,8]", 7)}},
        {"cut short", {x("[1152921504606846976]", "[0,4611686018427387904]", 8)}},
        {"belong to no tensor", {x("[1]", "[9223372036854775803,9223372036854775807]"), two(first, R"([0],"data_offsets":[9,9])", 4)}},
        {"data bytes 0 to 4 before it belong to no tensor", {x("[1]", "[4,8]", 8)}},
        {"data bytes 4 to 5 before it", {two(first, R"([4],"data_offsets":[5,9])", 9)}},
        {"7 bytes after the last tensor", {file_of("{}", "garbage")}},
        {"1 bytes after the last tensor", {x("[1]", "[0,4]", 5), two(first, R"([4],"data_offsets":[4,8])", 9)}},
        {R"("a" and "b" overlap)", {two(first, R"([4],"data_offsets":[3,7])", 7)}},
        {"overlap", {two(first, first, 4), two(first, R"([0],"data_offsets":[2,2])", 4)}},
    };
    for (std::string const extent : {"-1", "1.0", "0.5", "\"1\"", "null", "true", "[1]", "9223372036854775808"})
      all.push_back({extent + " is not a whole number", {x("[" + extent + "]")}});
    for (Malformed const& each : all)
      for (std::size_t i = 0; i < each.files.size(); ++i) {
        CAPTURE(i);
        auto const path = folder / "x.safetensors";
        put(path, each.files[i]);
        check_refusal(refusal([&] { SafetensorsFile file(path); }), path, each.reason);
      }
  }

  TEST_CASE_FIXTURE(InFolder, "a file cut at any byte is refused") {
    auto const path = folder / "cut";
    save_safetensors(path, samples(), {{"a", "b"}});
    auto const whole = get(path);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      put(path, whole.substr(0, length));
      check_refusal(refusal([&] { SafetensorsFile file(path); }), path, "");
    }
  }

  TEST_CASE_FIXTURE(InFolder, "a header with any byte changed is read or refused, never anything else") {
    auto const path = folder / "changed";
    save_safetensors(path, samples(), {{"a", "b"}});
    auto const whole = get(path);
    std::uint64_t header;
    std::memcpy(&header, whole.data(), 8);
    Stream const random(1, "mutation");
    int refused = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      auto bytes = whole;
      auto const at = static_cast<std::size_t>(random.below(2 * i, 8 + header));
      bytes[at] = static_cast<char>(random.below(2 * i + 1, 256));
      put(path, bytes);
      auto const message = refusal([&] {
        SafetensorsFile const file(path);
        for (auto const& name : file.names()) CHECK(file.tensor(name).elements() == file.shape(name).elements());
      });
      if (message.empty()) continue;
      ++refused;
      check_refusal(message, path, "");
    }
    CHECK(refused > 1000);
  }

  TEST_CASE_FIXTURE(InFolder, "paths that lead to no readable file") {
    auto const open = [](fs::path const& path) { return refusal([&] { SafetensorsFile file(path); }); };
    check_refusal(open(folder / "missing"), folder / "missing", "No such file");
    check_refusal(open(folder.path()), folder.path(), "Is a directory");
    check_refusal(open("/dev/zero"), "/dev/zero", "not a regular file");
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    check_refusal(open(folder / "pipe"), folder / "pipe", "not a regular file");
    fs::create_symlink("loop", folder / "loop");
    check_refusal(open(folder / "loop"), folder / "loop", "symbolic links");

    put(folder / "secret", file_of("{}"));
    fs::permissions(folder / "secret", fs::perms::none);
    fs::permissions(folder.path(), fs::perms::all);
    bool const root = ::geteuid() == 0;
    if (root) REQUIRE(::seteuid(65534) == 0);  // nobody: root may read everything
    auto const message = open(folder / "secret");
    if (root) REQUIRE(::seteuid(0) == 0);
    check_refusal(message, folder / "secret", "Permission denied");
  }

  TEST_CASE_FIXTURE(InFolder, "a file that shrinks or changes after it was opened is refused; one that is replaced stays readable") {
    auto const path = folder / "f";
    auto const x = Tensor::arange(5000, DType::float64);
    auto const refuses_after = [&](std::function<void()> const& change) {
      save_safetensors(path, {{"x", x}});
      SafetensorsFile const file(path);
      change();
      check_refusal(refusal([&] { file.tensor("x"); }), path, "has been changed since it was opened");
    };
    refuses_after([&] { fs::resize_file(path, 100); });
    refuses_after([&] {
      ::usleep(20'000);  // the granularity of a file's time
      put(path, get(path));
    });
    SafetensorsFile const file(path);
    save_safetensors(path, {{"y", Tensor::arange(3, DType::float32)}});
    CHECK(same_bits(file.tensor("x"), x));
  }

  TEST_CASE_FIXTURE(InFolder, "a file that shrinks while it is read is refused, and ends no process") {
    auto const path = folder / "f";
    put(path, std::string(1 << 20, 'x'));
    auto const whole = sha256_of_file(path);
    std::atomic<bool> done = false;
    std::thread other([&] {
      while (!done) {
        fs::resize_file(path, 0);
        fs::resize_file(path, 64 << 20);
      }
    });
    std::string message;
    for (int i = 0; i < 100'000 && message.empty(); ++i) message = refusal([&] { sha256_of_file(path); });
    done = true;
    other.join();
    check_refusal(message, path, "");
    put(path, std::string(1 << 20, 'x'));
    CHECK(sha256_of_file(path) == whole);
  }

  TEST_CASE_FIXTURE(InFolder, "what cannot be saved is said before anything is written") {
    auto const path = folder / "f";
    auto const x = Tensor::arange(2, DType::float32);
    CHECK_THROWS_WITH_AS(save_safetensors(path, {{"a", x}, {"a", x}}), R"(save_safetensors: the name "a" is given twice)", Error);
    CHECK_THROWS_WITH_AS(save_safetensors(path, {{"__metadata__", x}}), R"(save_safetensors: the name "__metadata__" is reserved)", Error);
    CHECK_THROWS_WITH_AS(save_safetensors(path, {{"a", Tensor()}}), R"(save_safetensors: tensor "a" is undefined)", Error);
    CHECK_THROWS_AS(save_safetensors(path, {{"\xff", x}}), Error);
    CHECK_THROWS_AS(save_safetensors(path, {{"a", x}}, {{"note", "\xff"}}), Error);
    CHECK(folder.names().empty());
  }
}
