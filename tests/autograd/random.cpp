#include "autograd/random.hpp"

#include <numbers>

#include <Random123/philox.h>

#include "tests/autograd/tensors.hpp"

using namespace heed;
using doctest::Approx;

namespace {

constexpr std::uint64_t count = 100'000;

/// Mean of f(i) over the first draws; its standard error is deviation/√count.
double mean_of(std::function<double(std::uint64_t)> const& f) {
  double total = 0;
  for (std::uint64_t i = 0; i < count; ++i) total += f(i);
  return total / static_cast<double>(count);
}
double const five_errors = 5 / std::sqrt(static_cast<double>(count));

/// Draw i's √(−2 ln(1 − u)) cos(2πv) by the C library in extended precision, the cosine's argument brought into [−π/4, π/4] exactly.
double box_muller(Stream const& stream, std::uint64_t i) {
  std::array<std::uint32_t, 4> words{};
  stream.words(i, words);
  auto const unit = [](std::uint64_t low, std::uint64_t high) { return static_cast<long double>((high << 32 | low) >> 11) * 0x1p-53L; };
  long double const u = unit(words[0], words[1]), v = unit(words[2], words[3]);
  long double const quarters = std::nearbyint(4 * v), angle = (v - quarters / 4) * 2 * std::numbers::pi_v<long double>;
  long double const cosine = quarters == 1   ? -std::sin(angle)
                             : quarters == 2 ? -std::cos(angle)
                             : quarters == 3 ? std::sin(angle)
                                             : std::cos(angle);
  return static_cast<double>(std::sqrt(-2 * std::log(1 - u)) * cosine);
}

}  // namespace

TEST_SUITE("random") {
  TEST_CASE("Philox4x32-10 gives the answers that Random123 publishes (kat_vectors)") {
    using Words = std::array<std::uint32_t, 4>;
    auto const philox = [](Words counter, std::array<std::uint32_t, 2> key) {
      auto const block = r123::Philox4x32_R<10>()({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
      return Words{block[0], block[1], block[2], block[3]};
    };
    CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  }

  TEST_CASE("the numbers never change: old runs can be resumed and repeated") {
    Stream const data(1, "data");
    CHECK(data.bits(0) == 0x794509bd6b5c49d0);
    CHECK(data.bits(1) == 0xc3b4ce38e1d3eee8);
    CHECK(data.child(7).bits(0) == 0x7db8e0c38d2d2ad1);
    CHECK(data.child("epoch").bits(0) == 0xf5a21b2eb6ac1525);
    CHECK(data.uniform(0) == Approx(0.47370968698975091).epsilon(1e-15));
    CHECK(data.normal(0) == Approx(-1.0926252725693819).epsilon(1e-14));
    CHECK(data.below(0, 1000) == 473);
  }

  TEST_CASE("a draw depends on its position alone") {
    Stream const stream(1, "position"), again(1, "position");
    std::vector<std::uint64_t> forward;
    for (std::uint64_t i = 0; i < 100; ++i) forward.push_back(stream.bits(i));
    for (std::uint64_t i = 100; i-- > 0;) CHECK(again.bits(i) == forward[i]);
    std::uint64_t const far = std::uint64_t{1} << 40;
    CHECK(stream.bits(far) != stream.bits(0));  // the upper half of the counter counts
    CHECK(std::set(forward.begin(), forward.end()).size() == 100);
  }

  TEST_CASE("seed, purpose and children name different streams") {
    std::set<std::uint64_t> first;
    std::uint64_t streams = 0;
    auto const note = [&](Stream const& stream) { first.insert(stream.bits(0)), ++streams; };
    for (std::uint64_t seed = 0; seed < 100; ++seed)
      for (char const* const purpose : {"", "a", "b", "ab", "ba", "data", "dropout", "initial"}) {
        Stream const stream(seed, purpose);
        note(stream);
        for (std::uint64_t k = 0; k < 5; ++k) note(stream.child(k)), note(stream.child("layer" + std::to_string(k)));
        note(stream.child("").child(""));
        note(stream.child("x").child("y"));
        note(stream.child("xy"));
        note(stream.child(0).child(1));
        note(stream.child(1).child(0));
      }
    note(Stream(~std::uint64_t{0}, "a"));
    note(Stream(std::uint64_t{1} << 63, "a"));
    CHECK(first.size() == streams);
  }

  TEST_CASE("uniform: in [0, 1), with the moments of its distribution") {
    Stream const stream(1, "uniform");
    for (std::uint64_t i = 0; i < count; ++i) REQUIRE((stream.uniform(i) >= 0 && stream.uniform(i) < 1));
    CHECK(std::abs(mean_of([&](std::uint64_t i) { return stream.uniform(i); }) - 0.5) < five_errors / std::sqrt(12));
    CHECK(std::abs(mean_of([&](std::uint64_t i) { return std::pow(stream.uniform(i) - 0.5, 2); }) - 1.0 / 12) <
          five_errors / std::sqrt(180));
  }

  TEST_CASE("normal: finite, with the moments of its distribution, and its tails") {
    Stream const stream(1, "normal");
    for (std::uint64_t i = 0; i < count; ++i) REQUIRE(std::isfinite(stream.normal(i)));
    auto const moment = [&](double power) { return mean_of([&](std::uint64_t i) { return std::pow(stream.normal(i), power); }); };
    CHECK(std::abs(moment(1)) < five_errors);
    CHECK(std::abs(moment(2) - 1) < five_errors * std::sqrt(2));
    CHECK(std::abs(moment(3)) < five_errors * std::sqrt(15));
    CHECK(std::abs(moment(4) - 3) < five_errors * std::sqrt(96));
    for (auto const& [edge, share] :
         std::vector<std::pair<double, double>>{{-2, 0.0227501}, {-1, 0.1586553}, {0, 0.5}, {1, 0.8413447}, {3, 0.9986501}}) {
      double const bound = edge;  // a lambda cannot capture a binding
      CHECK(std::abs(mean_of([&](std::uint64_t i) { return stream.normal(i) < bound; }) - share) <
            five_errors * std::sqrt(share * (1 - share)));
    }
  }

  TEST_CASE("normal: Box-Muller of the draw's two halves, within 4 ulp") {
    Stream const stream(1, "accuracy");
    double worst = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      double const expected = box_muller(stream, i), error = std::abs(stream.normal(i) - expected);
      worst = test::worse(worst, error / (std::nextafter(std::abs(expected), 100.0) - std::abs(expected)));
    }
    CHECK(worst <= 4);
  }

  TEST_CASE("normal: the distribution is the normal one as far as Kolmogorov and Smirnov can see") {
    Stream const stream(1, "distribution");
    std::vector<double> values(count);
    stream.normals(0, values);
    std::ranges::sort(values);
    double farthest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double const share = std::erfc(-values[i] / std::numbers::sqrt2) / 2, n = static_cast<double>(count);
      farthest = std::max({farthest, share - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - share});
    }
    CHECK(farthest < 1.95 / std::sqrt(static_cast<double>(count)));  // exceeded by one seed in a thousand
  }

  TEST_CASE("normals, bits and words: draws in bulk are the draws, bit for bit, wherever a batch begins and ends, also across 2³²") {
    Stream const stream(7, "normals");
    std::uint64_t const first = (std::uint64_t{1} << 32) - 21;
    for (std::size_t const length : {0U, 1U, 2U, 7U, 15U, 16U, 17U, 45U})
      for (std::uint64_t begin = first; begin < first + 17; ++begin) {
        std::vector<double> normals(length + 1, 99);
        std::vector<std::uint64_t> bits(length + 1, 99);
        std::vector<std::uint32_t> words(4 * length + 1, 99), four(4);
        stream.normals(begin, {normals.data(), length});
        stream.bits(begin, {bits.data(), length});
        stream.words(begin, {words.data(), 4 * length});
        for (std::size_t i = 0; i < length; ++i) {
          REQUIRE(normals[i] == stream.normal(begin + i));
          REQUIRE(bits[i] == stream.bits(begin + i));
          REQUIRE(bits[i] == (words[4 * i] | std::uint64_t{words[4 * i + 1]} << 32));
          stream.words(begin + i, four);
          REQUIRE(std::equal(four.begin(), four.end(), &words[4 * i]));
        }
        REQUIRE(normals[length] == 99);
        REQUIRE(bits[length] == 99);
        REQUIRE(words[4 * length] == 99);
      }
  }

  TEST_CASE("dropout: an element falls out where its word of the draw is below the rate, in either precision") {
    Stream const stream(3, "dropout");
    std::vector<std::uint32_t> words(1000);
    stream.words(0, words);
    for (double const rate : {0x1p-53, 0.1, 0.3, 0.5, 0.999})
      for (DType const dtype : {DType::float32, DType::float64}) {
        Tensor const kept = dropout(Tensor::ones({1000}, dtype), rate, stream);
        for (std::uint64_t i = 0; i < 1000; ++i) {
          double const factor = dtype == DType::float32 ? static_cast<float>(1 / (1 - rate)) : 1 / (1 - rate);
          REQUIRE(kept.at(static_cast<Index>(i)) == (words[i] * 0x1p-32 < rate ? 0 : factor));
        }
      }
  }

  TEST_CASE("dropout: what falls out does not hang on how many elements there are, and is the rate's part of them") {
    Stream const stream(4, "dropout");
    auto const dropped = [&](Index count) { return dropout(Tensor::ones({count}, DType::float32), 0.3, stream).to_vector(); };
    auto const whole = dropped(20'000);
    for (Index const count : {0, 1, 3, 4, 63, 256, 257, 300}) {
      auto const some = dropped(count);
      REQUIRE(std::equal(some.begin(), some.end(), whole.begin()));
    }
    double const share = static_cast<double>(std::ranges::count(whole, 0.0)) / 20'000;
    CHECK(std::abs(share - 0.3) < 5 * std::sqrt(0.3 * 0.7 / 20'000));
  }

  TEST_CASE("neighbours and other streams are not correlated") {
    Stream const a(1, "a");
    for (Stream const& stream : {Stream(1, "b"), Stream(2, "a"), a.child(0), a.child(1)})
      CHECK(std::abs(mean_of([&](std::uint64_t i) { return a.normal(i) * stream.normal(i); })) < five_errors);
    CHECK(std::abs(mean_of([&](std::uint64_t i) { return a.normal(i) * a.normal(i + 1); })) < five_errors);
    CHECK(std::abs(mean_of([&](std::uint64_t i) { return a.child(i).normal(0) * a.child(i + 1).normal(0); })) < five_errors);
    CHECK(std::abs(mean_of([&](std::uint64_t i) { return a.normal(i) * (a.uniform(i + 1) - 0.5); })) < five_errors);
  }

  TEST_CASE("below: every number of the range equally often, none beyond") {
    Stream const stream(1, "below");
    for (std::uint64_t const n : {1U, 2U, 7U, 100U}) {
      CAPTURE(n);
      std::vector<double> seen(n, 0);
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t const k = stream.below(i, n);
        REQUIRE(k < n);
        ++seen[k];
      }
      double const expected = static_cast<double>(count) / static_cast<double>(n);
      double chi_square = 0;
      for (double const s : seen) chi_square += (s - expected) * (s - expected) / expected;
      double const freedom = static_cast<double>(n - 1);
      CHECK(chi_square <= freedom + 5 * std::sqrt(2 * freedom));
    }
    std::uint64_t const huge = (std::uint64_t{1} << 63) + 12345;
    double largest = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      REQUIRE(stream.below(i, huge) < huge);
      largest = std::max(largest, static_cast<double>(stream.below(i, huge)));
    }
    CHECK(largest > 0.98 * static_cast<double>(huge));
    CHECK_THROWS_WITH_AS(stream.below(0, 0), "random: a uniform integer below 0 does not exist", Error);
  }

  TEST_CASE("tensors: element i is draw i, in either precision, on any number of threads") {
    Stream const stream(3, "tensor");
    for (int const some : {1, 2, 3}) {
      Threads const threads(some);
      Tensor const normal = Tensor::normal({100, 37}, stream, DType::float64), narrow = Tensor::normal({3700}, stream, DType::float32);
      Tensor const uniform = Tensor::uniform({3700}, stream, DType::float64, -3, 5);
      for (std::uint64_t i = 0; i < 3700; ++i) {
        auto const at = static_cast<Index>(i);
        REQUIRE((normal.at(at) == stream.normal(i) && narrow.at(at) == static_cast<float>(stream.normal(i))));
        REQUIRE(uniform.at(at) == -3 + 8 * stream.uniform(i));
      }
    }
  }

  TEST_CASE("uniform tensors stay in [low, high), whatever the type's numbers are there") {
    Stream const stream(17, "narrow");
    constexpr double max = std::numeric_limits<double>::max();
    for (auto const& [low, high] : std::vector<std::pair<double, double>>{{16777216, 16777220},  // float32 has every second number there
                                                                          {0.7, 0.7000001},      // and is 0.7 below 0.7
                                                                          {-1e-7, 1e-7},
                                                                          {-16777220, -16777216},
                                                                          {1, 1 + 3e-16},  // two numbers of float64
                                                                          {-max, max}}) {
      for (DType const dtype : {DType::float32, DType::float64}) {
        if (dtype == DType::float32 && (high == max || high - low < 1e-9)) continue;
        for (double const x : Tensor::uniform({5000}, stream, dtype, low, high).to_vector()) {
          REQUIRE(x >= low);
          REQUIRE(x < high);
        }
      }
    }
    CHECK_THROWS_WITH_AS(Tensor::uniform({2}, stream, DType::float32, 2, 1), "uniform: the lower end 2 is above the upper end 1", Error);
  }
}
