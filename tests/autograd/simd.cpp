// The native form of every function in autograd/kernels/simd.hpp against the portable one, and what the processor is said to have.

#include "autograd/kernels/simd.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "autograd/blas/elements.hpp"
#include "autograd/processor/processor.hpp"
#include "autograd/random.hpp"
#include "tests/test.hpp"

namespace heed::kernels {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
std::vector<Bits<T>> bits(T const* x, Index count) {
  std::vector<Bits<T>> words;
  for (Index i = 0; i < count; ++i) words.push_back(std::bit_cast<Bits<T>>(x[i]));
  return words;
}

/// A batch's elements as they are in memory; all NaN alike if asked.
template <class T>
std::vector<Bits<T>> bits(xsimd::batch<T> const& v, bool one_nan = false) {
  alignas(64) T elements[xsimd::batch<T>::size];
  v.store_aligned(elements);
  for (T& x : elements) {
    if (one_nan && std::isnan(x)) x = std::numeric_limits<T>::quiet_NaN();
  }
  return bits(elements, lanes<T>);
}

/// Numbers of every kind: of either sign zero, the smallest and largest denormal and normal ones, infinity, NaN; and common ones between.
template <class T>
std::vector<T> of_every_kind() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers;
  Stream const stream(1, "simd");
  for (T const x : {T(0), Limits::denorm_min(), std::nextafter(Limits::min(), T(0)), Limits::min(), T(1), Limits::max(), Limits::infinity(),
                    Limits::quiet_NaN()}) {
    for (T const sign : {T(1), T(-1)}) {
      numbers.push_back(std::copysign(x, sign));
      for (int i = 0; i < 2; ++i) numbers.push_back(static_cast<T>(stream.normal(numbers.size())));
    }
  }
  return numbers;
}

/// Room whose end is the end of what the process may touch.
class Fenced {
 public:
  Fenced() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const pages = ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    first_ = static_cast<char*>(pages);
    REQUIRE(::mprotect(first_ + page_, page_, PROT_NONE) == 0);
  }
  ~Fenced() { ::munmap(first_, 2 * page_); }
  Fenced(Fenced const&) = delete;
  Fenced& operator=(Fenced const&) = delete;

  template <class T>
  T* last(Index count) const {
    return reinterpret_cast<T*>(first_ + page_) - count;
  }

 private:
  std::size_t page_;
  char* first_ = nullptr;
};

}  // namespace

TEST_SUITE("simd") {
  TEST_CASE_TEMPLATE("parts of batches: the same bits in both forms, and nothing beyond them is touched", T, float, double) {
    Fenced const fenced;
    auto const numbers = of_every_kind<T>();
    for (std::size_t begin = 0; begin + Lanes<T>::size <= numbers.size(); ++begin) {
      T const* const from = numbers.data() + begin;
      auto const whole = Lanes<T>::load_unaligned(from);
      for (Index count = 0; count <= lanes<T>; ++count) {
        CAPTURE(count);
        T* const x = fenced.last<T>(count);
        std::copy_n(from, count, x);
        for (T const fill : {T(0), T(-2.5), -std::numeric_limits<T>::infinity()})
          REQUIRE(bits(native::load_some<T>(x, count, fill)) == bits(portable::load_some<T>(x, count, fill)));
        REQUIRE(bits(native::keep_some<T>(whole, count)) == bits(portable::keep_some<T>(whole, count)));
        std::fill_n(x, count, T(7));
        native::store_some<T>(whole, x, count);
        REQUIRE(bits(x, count) == bits(from, count));
        std::array<T, 2 * Lanes<T>::size> room{}, wanted{};
        native::store_some<T>(whole, room.data() + 1, count);
        portable::store_some<T>(whole, wanted.data() + 1, count);
        REQUIRE(bits(room.data(), 2 * lanes<T>) == bits(wanted.data(), 2 * lanes<T>));
      }
    }
  }

  TEST_CASE_TEMPLATE("the largest element of a batch", T, float, double) {
    std::vector<T> numbers = of_every_kind<T>();
    std::erase_if(numbers, [](T x) { return std::isnan(x); });
    for (std::size_t begin = 0; begin + Lanes<T>::size <= numbers.size(); ++begin) {
      auto const v = Lanes<T>::load_unaligned(numbers.data() + begin);
      T const wanted = *std::max_element(&numbers[begin], &numbers[begin] + Lanes<T>::size);
      REQUIRE(native::largest<T>(v) == wanted);  // of −0 and 0 either
      REQUIRE(portable::largest<T>(v) == wanted);
    }
  }

  TEST_CASE_TEMPLATE("quotients and square roots are those of the language's own operators", T, float, double) {
    auto const numbers = of_every_kind<T>();
    auto const same = [](Lanes<T> const& found, T wanted) { return bits(found, true) == bits(Lanes<T>(wanted), true); };
    for (T const x : numbers) {
      REQUIRE(same(xsimd::sqrt(Lanes<T>(x)), std::sqrt(x)));
      for (T const y : numbers) REQUIRE(same(Lanes<T>(x) / Lanes<T>(y), x / y));
    }
  }

  TEST_CASE("scaled by a power of two: the same bits in both forms, from denormal results to infinity") {
    // Functions that are always inlined have no address in a build without optimisation.
    auto const native_form = [](auto const&... a) { return native::scaled_by_power(a...); };
    auto const portable_form = [](auto const&... a) { return portable::scaled_by_power(a...); };
    auto const small_native_form = [](auto const&... a) { return native::scaled_by_small_power(a...); };
    auto const small_portable_form = [](auto const&... a) { return portable::scaled_by_small_power(a...); };
    float const min_x = -87.33F, infinity = std::numeric_limits<float>::infinity();
    std::vector<float> exponents{min_x, std::nextafter(min_x, 0.0F), std::nextafter(min_x, -infinity), -infinity, -1e30F, -1e4F, 88.73F,
                                 89};
    for (float x = -90; x < 89; x += 0.11F) exponents.push_back(x);
    for (float const x : exponents) {
      float const n = std::nearbyint(x * 1.44269504F);
      for (float const y : {0.5F, 0.70710678F, 0.99999994F, 1.0F, 1.4142135F, 2.0F}) {
        auto const arguments = [&](auto const& f) { return bits(f(Lanes<float>(y), Lanes<float>(n), Lanes<float>(x), min_x)); };
        auto const found = arguments(native_form);
        REQUIRE(found == arguments(portable_form));
        if (n <= 127) {
          REQUIRE(found == arguments(small_native_form));
          REQUIRE(found == arguments(small_portable_form));
        }
        float const wanted = x < min_x ? 0.0F : std::ldexp(y, static_cast<int>(n));
        REQUIRE(found[0] == std::bit_cast<std::uint32_t>(wanted));
      }
    }
    Lanes<float> const nan(std::numeric_limits<float>::quiet_NaN()), lowest(-infinity);
    for (auto const& found :
         {native_form(nan, nan, nan, min_x), portable_form(nan, nan, nan, min_x), small_portable_form(nan, nan, nan, min_x)})
      CHECK(xsimd::all(xsimd::isnan(found)));
    for (auto const& found : {native_form(nan, nan, lowest, min_x), portable_form(nan, nan, lowest, min_x)})
      CHECK(xsimd::all(found == Lanes<float>(0.0F)));
  }

  TEST_CASE("the estimate of a reciprocal has 11 bits") {
    for (float x = 1; x < 2e37F; x *= 1.0137F)
      for (auto const& estimate : {native::reciprocal_estimate(Lanes<float>(x)), portable::reciprocal_estimate(Lanes<float>(x))})
        for (std::uint32_t const e : bits(estimate)) REQUIRE(std::abs(double{std::bit_cast<float>(e)} * double{x} - 1) < 0x1p-11);
  }

  TEST_CASE("products of words' lower halves") {
    Stream const stream(2, "words");
    for (std::uint64_t i = 0; i < 1000; ++i) {
      alignas(64) std::array<std::uint64_t, Words::size> words, found, portable_form;
      for (std::size_t k = 0; k < Words::size; ++k) words[k] = i == 0 ? ~std::uint64_t{0} : stream.bits(8 * i + k);
      auto const m = i == 0 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(stream.bits(i));
      native::multiply_lower(Words::load_aligned(words.data()), m).store_aligned(found.data());
      portable::multiply_lower(Words::load_aligned(words.data()), m).store_aligned(portable_form.data());
      REQUIRE(found == portable_form);
      for (std::size_t k = 0; k < Words::size; ++k) REQUIRE(found[k] == std::uint64_t{static_cast<std::uint32_t>(words[k])} * m);
    }
  }

  TEST_CASE("rounding to bfloat16: the nearest, ties to even; NaN stays NaN and large numbers become infinite") {
    auto const plain = [](std::uint32_t word) {
      bool const nan = (word & 0x7fffffff) > 0x7f800000;
      std::uint32_t const rounded = nan ? word | 0x400000 : word + 0x7fff + (word >> 16 & 1);
      return rounded & 0xffff0000;
    };
    auto const rounded = [](float x) { return std::bit_cast<float>(bits(rounded_to_bfloat16(Lanes<float>(x)))[0]); };
    CHECK(rounded(1 + 0x1p-8F) == 1);  // a tie: 1 is even
    CHECK(rounded(1 + 3 * 0x1p-8F) == 1 + 2 * 0x1p-7F);
    // Upper halves of zeros and subnormal numbers, the largest numbers, infinity or NaN; then any.
    std::vector<std::uint32_t> words{0, 0x80000000, 0x7f7f0000, 0x7f800000, 0xff800000};
    Stream const stream(3, "bfloat16");
    for (std::uint64_t i = 0; i < 20'000; ++i) words.push_back(static_cast<std::uint32_t>(stream.bits(i)));
    for (std::uint32_t const some : words)
      for (std::uint32_t const low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, some & 0xffffU}) {
        std::uint32_t const word = (some & 0xffff0000) | low;
        REQUIRE(std::bit_cast<std::uint32_t>(rounded(std::bit_cast<float>(word))) == plain(word));
      }
  }

  TEST_CASE("the transpose of a square, in both forms") {
    constexpr Index L = lanes<float>;
    for (Index const leading : {L, L + 3, 5 * L}) {
      std::vector<float> x(static_cast<std::size_t>(L * leading));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      for (auto const& f : {native::transpose, portable::transpose}) {
        alignas(64) std::array<float, static_cast<std::size_t>(2 * L * L)> out{};
        f(x.data(), leading, out.data(), 2 * L);
        for (Index i = 0; i < L; ++i) {
          for (Index j = 0; j < 2 * L; ++j) REQUIRE(at(out, i * 2 * L + j) == (j < L ? at(x, j * leading + i) : 0));
        }
      }
    }
  }

  TEST_CASE("the processor has what this was compiled for, and a name") {
    for (auto const* set = detail::instruction_sets; set->name != nullptr; ++set) {
      INFO(set->name);
      CHECK((!set->compiled || processor_has(set->name)));
    }
#if defined(__x86_64__)
    for (std::string const asked : {"AVX2", "FMA", "AVX512DQ", "AVX512BW", "AVX512VL", "AVX512_BF16", "AVX512_FP16", "AMX-BF16"}) {
      auto const* set = detail::instruction_sets;  // an unknown name would be false on every processor
      while (set->name != nullptr && set->name != asked) ++set;
      CHECK_MESSAGE(set->name != nullptr, asked);
    }
    CHECK(processor_has("AVX2") == (__builtin_cpu_supports("avx2") != 0));  // the compiler's own way of finding out
    CHECK(processor_has("AVX512F") == (__builtin_cpu_supports("avx512f") != 0));
    CHECK(processor_has("AVX512_BF16") == (__builtin_cpu_supports("avx512bf16") != 0));
    CHECK(processor_is_intel() == (__builtin_cpu_is("intel") != 0));
    CHECK(!processor_name().empty());
#elif defined(__aarch64__)
    CHECK(processor_has("NEON"));
#endif
  }
}

}  // namespace heed::kernels
