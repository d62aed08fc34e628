#include "autograd/blas/products.hpp"

#include <thread>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;

namespace {

constexpr Products float32{};
constexpr Products bfloat16{.bfloat16 = true};

struct Size {
  Index n, m, k;
  friend std::ostream& operator<<(std::ostream& out, Size const& s) { return out << fmt::format("{} x {} x {}", s.n, s.m, s.k); }
};
std::vector<Size> const sizes{{1, 1, 1},    {1, 40, 70},  {1, 384, 129}, {1, 403, 300},   {2, 3, 5},     {7, 33, 64},
                              {64, 64, 32}, {65, 31, 17}, {80, 96, 200}, {200, 128, 130}, {130, 65, 140}};

std::vector<float> drawn(Index count, std::uint64_t seed) {
  test::Values values(static_cast<std::size_t>(count));
  Stream(seed, "products").normals(0, values);
  return {values.begin(), values.end()};
}

Tensor single(Shape const& shape, char const* name) { return test::normal(shape, name, DType::float32); }

/// alpha A B + beta C with A and B stored transposed or not, in matrices that may be wider than they need be.
struct Case {
  Case(Size const& s, bool transpose_a, bool transpose_b, bool wider = true)
      : size(s),
        leading_a((transpose_a ? s.n : s.k) + (wider ? 3 : 0)),
        leading_b((transpose_b ? s.k : s.m) + (wider ? 2 : 0)),
        leading_c(s.m + (wider ? 1 : 0)),
        a(drawn((transpose_a ? s.k : s.n) * leading_a, 1)),
        b(drawn((transpose_b ? s.m : s.k) * leading_b, 2)),
        c(drawn(s.n * leading_c, 3)),
        at(transpose_a),
        bt(transpose_b) {}

  float left(Index i, Index j) const { return heed::at(a, at ? j * leading_a + i : i * leading_a + j); }
  float right(Index i, Index j) const { return heed::at(b, bt ? j * leading_b + i : i * leading_b + j); }

  float alpha = 0.5F, beta = 2;

  /// A B in float64 by OpenBLAS, each element of both given to f; dense.
  template <class F>
  test::Values in_float64(F const& f) const {
    test::Values x, y, product(static_cast<std::size_t>(size.n * size.m));
    for (Index i = 0; i < size.n; ++i)
      for (Index l = 0; l < size.k; ++l) x.push_back(f(left(i, l)));
    for (Index l = 0; l < size.k; ++l)
      for (Index j = 0; j < size.m; ++j) y.push_back(f(right(l, j)));
    kernels::openblas_gemm<double>(size.n, size.m, size.k, 1, {x.data(), size.k, false}, {y.data(), size.m, false}, 0, product.data(),
                                   size.m);
    return product;
  }

  enum class By : std::uint8_t { products, tiles, rounded_tiles, openblas };

  void make(By by, std::vector<float>& out) const {
    auto const& [n, m, k] = size;
    kernels::Matrix<float> const left{a.data(), leading_a, at}, right{b.data(), leading_b, bt};
    kernels::Addend<float> const addend{addend_row.empty() ? nullptr : addend_row.data(),
                                        addend_matrix.empty() ? nullptr : addend_matrix.data(), false};
    switch (by) {
      case By::products:
        return kernels::gemm<float>(n, m, k, alpha, left, right, beta, out.data(), leading_c);
      case By::tiles:
        return kernels::tiled_gemm<kernels::Numbers>({n, m, k, left, right}, {alpha, beta, out.data(), leading_c, addend});
      case By::rounded_tiles:
        return kernels::tiled_gemm<kernels::Rounded>({n, m, k, left, right}, {alpha, beta, out.data(), leading_c, addend});
      case By::openblas:
        return kernels::openblas_gemm<float>(n, m, k, alpha, left, right, beta, out.data(), leading_c);
    }
  }

  /// The largest error of a product, in units of float32's precision and of what was summed.
  template <class F>
  double error(F const& f, By by = By::products) const {
    auto out = c;
    make(by, out);
    auto const exact = in_float64([&](float x) { return double{f(x)}; });
    auto const sizes_of_terms = in_float64([&](float x) { return std::abs(double{f(x)}); });  // Σ |a b|, by which rounding is measured
    double worst = 0;
    for (Index i = 0; i < size.n; ++i)
      for (Index j = 0; j < leading_c; ++j) {
        auto const strided = static_cast<std::size_t>(i * leading_c + j), dense = static_cast<std::size_t>(i * size.m + j);
        if (j >= size.m) {
          REQUIRE(out[strided] == c[strided]);  // beside the matrix
          continue;
        }
        double value = double{alpha} * exact[dense], terms = double{alpha} * sizes_of_terms[dense];
        for (float const added :
             {beta * c[strided], addend_row.empty() ? 0 : heed::at(addend_row, j), addend_matrix.empty() ? 0 : addend_matrix[strided]})
          value += double{added}, terms += std::abs(double{added});
        worst = test::worse(worst, std::abs(double{out[strided]} - value) / (terms * std::numeric_limits<float>::epsilon()));
      }
    return worst;
  }

  Size size;
  Index leading_a, leading_b, leading_c;
  std::vector<float> a, b, c;
  bool at, bt;
  std::vector<float> addend_row{}, addend_matrix{};
};

float same(float x) { return x; }

/// Of finite numbers; suite simd has the others.
float to_bfloat16(float x) {
  auto const word = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((word + 0x7fff + (word >> 16 & 1)) & 0xffff0000);
}

template <class Body>
void for_cases(Body const& body) {
  float plain = 0;  // beta, by turns
  for (Size const& size : sizes)
    for (bool const transpose_a : {false, true})
      for (bool const transpose_b : {false, true}) {
        INFO("size ", size, ", transpose_a ", transpose_a, ", transpose_b ", transpose_b);
        Case one(size, transpose_a, transpose_b);
        body(one);
        one.alpha = 1;
        one.beta = plain;
        plain = 1 - plain;
        body(one);
      }
}

}  // namespace

TEST_SUITE("products") {
  TEST_CASE("float32 products are as near to float64's as OpenBLAS's") {
    double worst = 0, worst_openblas = 0;
    for_cases([&](Case const& c) {
      worst = test::worse(worst, c.error(same));
      worst_openblas = test::worse(worst_openblas, c.error(same, Case::By::openblas));
    });
    CHECK(worst < 4);
    CHECK(worst <= 2 * worst_openblas);
  }

  TEST_CASE("the kernel of tiles: its error, what it adds, and what stays beside the matrix") {
    double worst = 0, worst_openblas = 0;
    std::vector<Size> const of_tiles{{1, 1, 1},    {13, 16, 5},  {14, 17, 16},  {29, 20, 40},  {33, 7, 20},   {40, 32, 31},   {19, 96, 20},
                                     {29, 33, 40}, {70, 65, 70}, {29, 400, 31}, {40, 48, 400}, {70, 112, 20}, {15, 420, 390}, {64, 64, 64}};
    for (Size const& size : of_tiles)
      for (int const flags : {0, 1, 2, 3})
        for (auto const& [alpha, beta] : {std::pair{0.5F, 2.0F}, {1.0F, 0.0F}})
          for (bool const adds : {false, true}) {
            INFO("size ", size, ", flags ", flags, ", adds ", adds);
            Case one(size, (flags & 1) != 0, (flags & 2) != 0);
            one.alpha = alpha;
            one.beta = beta;
            if (adds) one.addend_row = drawn(size.m, 4), one.addend_matrix = drawn(size.n * one.leading_c, 5);
            worst = test::worse(worst, one.error(same, Case::By::tiles));
            if (!adds) worst_openblas = test::worse(worst_openblas, one.error(same, Case::By::openblas));
          }
    CHECK(worst < 4);
    CHECK(worst <= 2 * worst_openblas);
  }

  TEST_CASE("the kernel of tiles, where what comes next is prefetched, and where the left factor is copied") {
    for (Size const& size : {Size{600, 64, 300}, Size{601, 70, 300}, Size{160, 408, 400}, Size{121, 208, 1700}})
      for (bool const transposed : {false, true}) {
        INFO("size ", size, ", transposed ", transposed);
        CHECK(Case(size, transposed, true, false).error(same, Case::By::tiles) < 4);
      }
    CHECK(Case({20, 40, 1024}, false, false, false).error(same, Case::By::tiles) < 4);  // rows 4 KiB apart
    CHECK(Case({1024, 40, 20}, true, false, false).error(same, Case::By::tiles) < 4);
  }

  TEST_CASE("a layer's product has its bias and residual") {
    Tensor const x = single({96, 64}, "x"), w = single({64, 64}, "w"), bias = single({64}, "b"), residual = single({96, 64}, "r");
    auto const y = linear(x, w, bias, residual);
    auto const exact = linear(x.to(DType::float64), w.to(DType::float64), bias.to(DType::float64), residual.to(DType::float64));
    for (Index i = 0; i < y.elements(); ++i) CHECK(y.at(i) == doctest::Approx(exact.at(i)).epsilon(1e-5));
  }

  TEST_CASE("a bias's gradient comes with the product for the input's, whoever makes that and on however many threads") {
    for (Products const& how : {float32, bfloat16}) {
      WithProducts const chosen(how);
      // In tiles (whole ones, with a few rows left, in two stretches of the inner extent), and a single row.
      for (Size const& size : {Size{140, 48, 64}, Size{143, 48, 500}, Size{30, 8, 9}, Size{1, 40, 70}}) {
        std::vector<Tensor> const in{single({size.n, size.m}, "x").set_requires_grad(), single({size.k, size.m}, "w").set_requires_grad(),
                                     Tensor::zeros({size.k}, DType::float32).set_requires_grad()};
        Tensor const dy = single({size.n, size.k}, "dy"), wanted = sum(dy.to(DType::float64), {0});
        for (int const count : {1, 2, 3}) {
          Threads const some(count);
          auto const gradients = grad({linear(in[0], in[1], in[2])}, in, {dy});
          for (Index j = 0; j < size.k; ++j) CHECK(std::abs(gradients[2].at(j) - wanted.at(j)) <= 1e-6 * static_cast<double>(size.n));
        }
      }
    }
  }

  TEST_CASE("pairs of bfloat16 numbers: the processor's instructions are the portable forms, but for subnormal numbers") {
    using kernels::WordBatch;
    std::vector<float> const x = drawn(4 * kernels::lanes<float>, 1), sums = drawn(kernels::lanes<float>, 2);
    auto const at = [&](Index i) { return WordBatch::load_unaligned(x.data() + i * kernels::lanes<float>); };
    auto const numbers = [](WordBatch const& words) {
      std::array<float, WordBatch::size> all;
      words.store_unaligned(all.data());
      return all;
    };
    auto const bits = [&](WordBatch const& words) { return std::bit_cast<std::array<std::uint32_t, WordBatch::size>>(numbers(words)); };
    using Bits = xsimd::batch<std::uint32_t>;
    auto const words_of = [](WordBatch const& v) { return kernels::bits_as<std::uint32_t>(v); };
    auto const lower = [&](WordBatch const& v) { return kernels::bits_as<float>(words_of(v) << 16); };
    auto const upper = [&](WordBatch const& v) { return kernels::bits_as<float>(words_of(v) & Bits(0xffff0000)); };
    auto const interleaved = [&](WordBatch const& low, WordBatch const& high) {
      return kernels::bits_as<float>((words_of(kernels::rounded_to_bfloat16(low)) >> 16) | words_of(kernels::rounded_to_bfloat16(high)));
    };
    WordBatch const a = interleaved(at(0), at(1)), b = interleaved(at(2), at(3)), sum = WordBatch::load_unaligned(sums.data());
    auto const words = bits(a);
    for (std::size_t i = 0; i < words.size(); ++i) {
      CHECK(std::bit_cast<float>(words[i] << 16) == to_bfloat16(x[i]));
      CHECK(std::bit_cast<float>(words[i] & 0xffff0000U) == to_bfloat16(x[words.size() + i]));
    }
    auto const portable = numbers(xsimd::fma(lower(a), lower(b), xsimd::fma(upper(a), upper(b), sum)));
    for (std::size_t i = 0; i < words.size(); ++i) {
      double const first = double{to_bfloat16(x[i])} * double{to_bfloat16(x[2 * words.size() + i])},
                   second = double{to_bfloat16(x[words.size() + i])} * double{to_bfloat16(x[3 * words.size() + i])};
      double const scale = std::abs(first) + std::abs(second) + std::abs(double{sums[i]});
      CHECK(std::abs(portable[i] - (first + second + double{sums[i]})) <= 2e-7 * scale);
    }
#ifdef __AVX512BF16__
    CHECK(bits(kernels::interleaved(at(0), at(1))) == words);
    CHECK(bits(kernels::pairs_of(at(0), at(1)))[1] == bits(kernels::interleaved(WordBatch(x[2]), WordBatch(x[3])))[0]);
    auto const own = numbers(kernels::dot_pairs(a, b, sum));
    for (std::size_t i = 0; i < words.size(); ++i) CHECK(own[i] == doctest::Approx(portable[i]).epsilon(1e-6));
#endif
  }

  TEST_CASE("bfloat16 products are those of rounded factors, summed in float32") {
    WithProducts const chosen(bfloat16);
    for_cases([&](Case const& c) {
      CHECK(c.error(to_bfloat16) < 4);
      CHECK(c.error(to_bfloat16, Case::By::rounded_tiles) < 4);  // where there are no instructions for them
      if (c.size.k > 10) CHECK(c.error(same) > 100);             // and not of the factors themselves
    });
    // In blocks of both factors; one for each way to read them.
    CHECK(Case({18, 50, 1100}, false, true).error(to_bfloat16) < 4);
    CHECK(Case({3, 600, 1700}, true, false).error(to_bfloat16) < 4);
  }

  TEST_CASE("a row of one has the same product as among others") {
    Tensor const x = single({3, 70}, "x"), w = single({50, 70}, "w"), bias = single({50}, "b");
    for (Products const& how : {float32, bfloat16}) {
      WithProducts const chosen(how);
      Tensor const all = linear(x, w, bias);
      for (Index row = 0; row < 3; ++row) CHECK(test::absolute_difference(linear(x.rows(row, 1), w, bias), all.rows(row, 1)) <= 1e-4);
    }
  }

  TEST_CASE("a layer has the same bits on however many threads, in float32, bfloat16 and float64") {
    struct Way {
      Products products;
      DType dtype;
    };
    for (Way const& way : {Way{float32, DType::float32}, Way{bfloat16, DType::float32}, Way{float32, DType::float64}}) {
      WithProducts const chosen(way.products);
      // One sweep and several: of columns, of the inner extent, and, in the gradients, of rows that are transposed; a row too many for
      // equal pieces, a single column, a few rows, and one row, whose threads read the matrix in parts and streams of their own.
      for (Size const& size : {Size{200, 64, 64}, Size{161, 500, 40}, Size{60, 90, 900}, Size{450, 70, 130}, Size{1537, 20, 33},
                               Size{1537, 1, 70}, Size{97, 300, 300}, Size{1, 603, 300}}) {
        INFO("size ", size, ", way.dtype ", to_string(way.dtype), ", way.products.bfloat16 ", way.products.bfloat16);
        std::vector<Tensor> const in{test::normal_leaf({size.n, size.k}, "x", way.dtype),
                                     test::normal_leaf({size.m, size.k}, "w", way.dtype), test::normal_leaf({size.m}, "b", way.dtype)};
        test::check_threads({1, 2, 3, 5}, [&] { return test::with_gradients({linear(in[0], in[1], in[2])}, in); });
      }
    }
  }

#ifdef __linux__
  TEST_CASE("the library's products stay on the thread that asks for them: one that never multiplied before starts no others") {
    auto const tasks = [] {
      std::filesystem::directory_iterator const all("/proc/self/task");
      return std::distance(begin(all), end(all));
    };
    test::Values const x(512 * 512, 1);
    test::Values y(x.size());
    std::ptrdiff_t before = 0, after = 0;
    std::thread([&] {
      before = tasks();
      kernels::gemm<double>(512, 512, 512, 1, {x.data(), 512}, {x.data(), 512}, 0, y.data(), 512);
      after = tasks();
    }).join();
    CHECK(after == before);
    CHECK(y[0] == 512);
  }
#endif

  TEST_CASE("float64 is OpenBLAS's whatever is chosen") {
    Tensor const x = test::normal({80, 96}, "x");
    auto const before = matmul(x, x, false, true).to_vector();
    WithProducts const chosen(bfloat16);
    CHECK(matmul(x, x, false, true).to_vector() == before);
  }

  TEST_CASE("gradients go through bfloat16 products too") {
    Tensor const x = single({40, 64}, "x").set_requires_grad(), w = single({48, 64}, "w").set_requires_grad();
    auto const gradients = [&] { return grad({sum(tanh(scale(linear(x, w, {}), 0.1)))}, {x, w}); };
    auto const exact = gradients();
    WithProducts const chosen(bfloat16);
    auto const rounded = gradients();
    for (std::size_t i = 0; i < 2; ++i) {
      double const distance = test::distance(rounded[i], exact[i]);
      CHECK(distance > 0);
      CHECK(distance < 0.01);
    }
  }

  TEST_CASE("what was multiplied is counted, and the library is named") {
    Tensor const x = Tensor::ones({10, 20}, DType::float32);
    auto const before = product_flops();
    matmul(x, x, false, true);
    CHECK(product_flops() - before == 2 * 10 * 10 * 20);
    CHECK(matrix_library().starts_with("OpenBLAS"));
    CHECK(matrix_library().ends_with(", factors in float32"));
    WithProducts const rounded(bfloat16);
    CHECK(factors_in_words().starts_with("in bfloat16"));
    CHECK((factors_in_words().find("AMX") != std::string::npos) == kernels::has_amx());
    bool const by_pairs = !kernels::has_amx() && kernels::has_pairs && !kernels::bfloat16_is_slower();
    CHECK((factors_in_words().find("AVX512_BF16") != std::string::npos) == by_pairs);
  }

  TEST_CASE("products of nothing, however they are made: no rows, no columns, and sums over nothing") {
    auto const ones = [](Shape const& shape) { return Tensor::ones(shape, DType::float32); };
    for (Products const& how : {float32, bfloat16}) {
      WithProducts const chosen(how);
      CHECK(linear(ones({5, 3}), ones({0, 3}), {}).shape() == Shape{5, 0});
      CHECK(linear(ones({0, 3}), ones({4, 3}), {}).shape() == Shape{0, 4});
      CHECK(linear(ones({2, 0}), ones({3, 0}), ones({3})).to_vector() == std::vector<double>(6, 1));
      CHECK(matmul(ones({7, 0}), ones({0, 5})).to_vector() == std::vector<double>(35, 0));
    }
  }

  TEST_CASE("gradients of products with a size of 0, first and second, are those of finite sums") {
    struct Form {
      std::string name;
      TensorFunction of;
      std::vector<Shape> shapes;
    };
    auto const forms = [](Index n, Index k, Index m) {
      Index const classes = std::max<Index>(m, 1);
      return std::vector<Form>{
          {"matmul", [](auto const& x) { return matmul(x[0], x[1]); }, {{n, k}, {k, m}}},
          {"matmul of a batch", [](auto const& x) { return matmul(x[0], x[1]); }, {{2, n, k}, {k, m}}},
          {"matmul of batches", [](auto const& x) { return matmul(x[0], x[1], true, true); }, {{2, k, n}, {2, m, k}}},
          {"linear", [](auto const& x) { return linear(x[0], x[1], x[2]); }, {{2, n, k}, {m, k}, {m}}},
          {"linear of a row", [](auto const& x) { return linear(x[0], x[1], x[2], x[3]); }, {{1, k}, {m, k}, {m}, {1, m}}},
          {"head_product", [](auto const& x) { return head_product(x[0], x[1], 2); }, {{1, n, 2 * k}, {2, k, m}}},
          {"head_readout", [](auto const& x) { return head_readout(x[0], x[1], x[2], 2); }, {{1, n, 2 * k}, {2, k, m}, {2, m}}},
          {"conv2d", [](auto const& x) { return conv2d(x[0], x[1], x[2]); }, {{n, k, 3, 3}, {m, k, 2, 2}, {m}}},
          {"linear_cross_entropy",
           [](auto const& x) { return linear_cross_entropy(x[0], x[1], x[2], Tensor::zeros({x[0].size(0)}, DType::int64)); },
           {{n, k}, {classes, k}, {classes}}}};
    };
    for (int zeros = 1; zeros < 8; ++zeros)
      for (Form const& form : forms(zeros & 1 ? 0 : 3, zeros & 2 ? 0 : 4, zeros & 4 ? 0 : 5))
        for (DType const dtype : {DType::float32, DType::float64}) {
          auto const& shapes = form.shapes;
          INFO("form.name ", form.name, ", zeros ", zeros);
          std::vector<Tensor> x;
          for (Shape const& shape : shapes) x.push_back(Tensor::normal(shape, Stream(1, "x").child(x.size()), dtype).set_requires_grad());
          for (bool const second : {false, true}) {
            Tensor const y = form.of(x);
            std::vector<Tensor> const once = grad({sum(y * y)}, x, {}, second);
            for (std::size_t i = 0; i < x.size(); ++i) {  // a term that is added alone: d Σy² is 2 Σ y
              CHECK(once[i].shape() == shapes[i]);
              Tensor const last = i + 1 == x.size() && (form.name.starts_with("linear") || form.name == "conv2d") ? y : Tensor();
              if (!last.defined() || form.name == "linear_cross_entropy") continue;
              Tensor const wanted = form.name == "conv2d" ? sum(scale(y, 2), {0, 2, 3}) : sum_to(scale(y, 2), shapes[i]);
              CHECK(test::difference(once[i], wanted) <= 1e-5);
            }
            if (!second) continue;
            Tensor total = Tensor::zeros({}, dtype);
            for (Tensor const& each : once) total = total + sum(each * each);
            if (!total.requires_grad()) continue;
            auto const twice = grad({total}, x);
            for (std::size_t i = 0; i < x.size(); ++i) CHECK(twice[i].shape() == shapes[i]);
          }
          for (Tensor const& leaf : x) REQUIRE_FALSE(leaf.grad().defined());
          backward(sum(form.of(x)));
          for (std::size_t i = 0; i < x.size(); ++i) CHECK((!x[i].grad().defined() || x[i].grad().shape() == shapes[i]));
        }
  }

#ifdef __x86_64__  // elsewhere OpenBLAS knows other kernels, and a name of these means nothing to it
  TEST_CASE("OpenBLAS uses the widest vectors that this build and the processor have, also of one that it does not know") {
    std::string const library = matrix_library();
    char const* const told = std::getenv("OPENBLAS_CORETYPE");  // by the user, or by the engine
    if (told != nullptr) {
      CHECK(library.find(told) != std::string::npos);
      return;
    }
    [[maybe_unused]] auto const has = [&](std::string const& kernels) { return library.find(kernels) != std::string::npos; };
#ifdef __AVX512DQ__
    CHECK((has("SkylakeX") || has("Cooperlake") || has("SapphireRapids")));
#elif defined(__AVX2__)
    CHECK(!has("Prescott"));
#endif
  }
#endif
}
