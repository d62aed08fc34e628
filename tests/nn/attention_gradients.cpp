// First and second derivatives of every score × align × position, by the kernels and by the reference, at random shapes and at the edges.
// What is declared is tested; nothing is listed here.

#include "autograd/ops/operations.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("attention_gradients") {
  using namespace heed;
  using test::check_agree, test::difference, test::value_and_gradients, test::Extents, test::Subject, test::Variant;
  using test::variants, test::Tensors;

  namespace {

  constexpr double step = 3e-5;  // of finite differences: short, for the sharp scores and the edges

  /// One call of a variant as a function of its query, its key, its value and its parameters, in this order.
  struct Problem {
    Variant variant;
    Extents extents;
    Visibility visibility;
    std::vector<std::string> names;  ///< of the parameters
    Tensors inputs;

    Parameters parameters(Tensors const& x) const {
      std::vector<std::pair<std::string, Tensor>> given;
      for (std::size_t i = 0; i < names.size(); ++i) given.emplace_back(names[i], x[i + 3]);
      return Parameters::given(given, x[0].dtype());
    }
    Subject subject(Tensors const& x) const { return {variant, extents, parameters(x)}; }
    Tensor operator()(Tensors const& x) const { return subject(x)(x[0], x[1], x[2], visibility); }
    Tensor reference(Tensors const& x) const { return subject(x).reference(x[0], x[1], x[2], visibility); }
    /// Which keys have a weight, and on which side of its kinks the score is: constant where the definition is smooth.
    std::vector<double> support(Tensors const& x) const {
      auto const here = subject(x);
      auto sides = (here.weights(x[0], x[1], visibility) > 0).to_vector();
      for (Tensor const& kinks : here.kinks(x[0], x[1], visibility)) {
        if (!kinks.defined()) continue;
        for (double const side : (kinks > 0).to_vector()) sides.push_back(side);
      }
      return sides;
    }
    TensorFunction call(bool by_kernel = true) const {
      return [=, this](Tensors const& x) { return by_kernel ? (*this)(x) : reference(x); };
    }
  };

  /// Inputs and parameters of a problem whose extents and visibility stand.
  void fill(Problem& p, Stream const& stream) {
    Extents const& e = p.extents;
    Subject const drawn(p.variant, e, Parameters(stream.bits(0), DType::float64));
    auto const some = [&](Index rows, Index width, char const* name) {
      return Tensor::normal({e.batch, rows, width}, stream.child(name), DType::float64);
    };
    p.names.clear();
    p.inputs = {some(e.queries, e.heads * e.width, "query"), some(e.keys, e.heads * e.width, "key"),
                some(e.keys, e.heads * e.value_width, "value")};
    for (auto const& [name, value] : drawn.parameters().all()) {
      p.names.push_back(name);
      Tensor const noise = scale(Tensor::normal(value.shape(), stream.child(name), DType::float64), 0.3);
      // A number alone may be one that 0 makes infinitely steep.
      p.inputs.push_back(value.rank() == 0 ? value.detach() * exp(noise) : value.detach() + noise);
    }
  }

  enum Kind { self, cross, one_query, one_key, padded, sliding };
  constexpr Kind kinds[]{self, cross, one_query, one_key, padded, sliding};

  /// self: causal, a query for every key; cross: every key seen, but for padding; one_query, likewise; one_key, under a causal mask with an
  /// offset; padded: causal and padded, a sequence of no keys, and a window wider than any row; sliding: the last keys of a longer
  /// sequence, to the past or both sides, of which a query sees the nearest 1 … 4. The rest by chance.
  Problem drawn(Variant const& variant, Kind kind, Stream const& stream) {
    auto dice = [shape = stream.child("shape"), thrown = std::uint64_t{0}](Index low, Index high) mutable {
      return low + static_cast<Index>(shape.below(thrown++, static_cast<std::uint64_t>(high - low + 1)));
    };
    Index const width = variant.position == "rotary" ? 2 * dice(1, 2) : dice(2, 4);
    Extents e{dice(1, 2), dice(1, 4), dice(2, 9), dice(1, 2), width, dice(1, 3)};
    Visibility visibility{
        .causal = kind != cross && kind != one_query, .lengths = {}, .offset = kind == one_key || kind == padded ? dice(0, 3) : 0};
    if (kind == sliding) {
      visibility.causal = dice(0, 1) == 0;
      visibility.sees = dice(1, 4), visibility.first_key = dice(0, 5), visibility.offset = std::max<Index>(e.keys - e.queries, 0);
    }
    if (kind == self) e.queries = e.keys;
    if (kind == one_query) e.queries = 1;
    if (kind == one_key) e.keys = 1;
    if (kind == padded) e.batch = 2;
    if (kind == cross || kind == one_query || kind == padded) {
      std::vector<Index> lengths{kind == padded ? 0 : e.keys};
      if (e.batch == 2) lengths.push_back(dice(1, e.keys));
      visibility.lengths = Tensor::of(lengths, {e.batch});
    }
    Problem p{variant, e, visibility, {}, {}};
    double const windows[]{0.6, 1.3, 2.2};
    p.variant.settings.set("window", kind == padded ? 30 : windows[dice(0, 2)]);
    fill(p, stream.child("inputs"));
    return p;
  }

  /// A problem along two random directions in the space of all its inputs, and its value along two others: a derivative that is wrong
  /// in any element is wrong here, at a fraction of the cost.
  struct Slice {
    Problem const& problem;
    Tensors directions;  ///< [2, elements] of each input
    Tensor onto;         ///< [2, elements of the value]

    explicit Slice(Problem const& p) : problem(p) {
      Stream const stream(11, "directions");
      for (Tensor const& x : p.inputs) directions.push_back(Tensor::normal({2, x.elements()}, stream.child(directions.size()), x.dtype()));
      Extents const& e = p.extents;
      onto = Tensor::normal({2, e.batch * e.queries * e.heads * e.value_width}, stream.child("onto"), DType::float64);
    }
    Tensors moved(Tensor const& by) const {
      Tensors x = problem.inputs;
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = x[i] + reshape(matmul(by, directions[i]), {x[i].shape().begin(), x[i].shape().end()});
      return x;
    }
    Tensor operator()(Tensors const& by) const { return matmul(onto, reshape(problem(moved(by[0])), {-1, 1})); }
    static Tensor origin() { return Tensor::zeros({1, 2}, DType::float64); }

    /// Whether no kink of the definition is within reach of a finite difference.
    bool smooth() const {
      NoGrad const no_grad;
      auto const here = problem.support(problem.inputs);
      for (std::vector<double> const& by : {std::vector{3 * step, 0.0}, {-3 * step, 0.0}, {0.0, 3 * step}, {0.0, -3 * step}})
        if (problem.support(moved(Tensor::of(by, {1, 2}))) != here) return false;
      return true;
    }
  };

  void check_derivatives(TensorFunction const& f, Tensors const& at, double looser = 1) {
    test::check_ok(gradcheck(f, at, looser * 1e-7, step));
    test::check_ok(gradgradcheck(f, at, looser * 1e-6, step));
  }

  /// Softpick holds constant what it divides a row by: its derivative is no finite difference's but where scores are large.
  bool has_finite_differences(Variant const& variant) { return variant.settings.align != "softpick"; }

  /// Calls test(problem) for every variant and kind; what lies at a kink is drawn again.
  template <class Test>
  void for_each_problem(char const* purpose, Test const& test, bool (*wanted)(Variant const&) = nullptr) {
    for (Variant const& variant : variants()) {
      if (wanted != nullptr && !wanted(variant)) continue;
      for (Kind const kind : kinds) {
        auto const draw = [&](std::uint64_t number) {
          return drawn(variant, kind, Stream(number, purpose).child(variant.name()).child(kind));
        };
        std::uint64_t number = 0;
        while (!Slice(draw(number)).smooth()) REQUIRE(++number < 60);
        INFO(variant.name(), ", kind ", kind, ", draw ", number);
        test(draw(number));
      }
    }
  }

  /// The value of f, its gradients, and those of the sum of their squares.
  Tensors two_orders(TensorFunction const& f, Tensors const& at, DType dtype = DType::float64) {
    Tensors const inputs = test::leaves(at, dtype);
    Tensors results = test::with_gradients({f(inputs)}, inputs, true);
    Tensor total = Tensor::scalar(0, dtype);
    for (std::size_t i = 1; i < results.size(); ++i) total = total + sum(results[i] * results[i]);
    if (total.requires_grad())
      for (Tensor const& g : grad({total}, inputs)) results.push_back(g);
    return results;
  }

  bool all_finite(Tensors const& found) {
    return std::ranges::all_of(found, [](Tensor const& t) { return test::all_finite(t.to_vector()); });
  }

  }  // namespace

  TEST_CASE("derivatives of both orders are those of finite differences, for every variant") {
    for_each_problem(
        "derivatives", [](Problem const& problem) { check_derivatives(Slice(problem), {Slice::origin()}); }, has_finite_differences);
  }

  TEST_CASE("softpick: derivatives are those of finite differences where scores are large") {
    for (std::string const score : {"dot", "additive", "general"}) {
      CAPTURE(score);
      Variant variant{{}, "none"};
      variant.settings.score = score;
      variant.settings.align = "softpick";
      for (std::uint64_t draw = 0, tested = 0; tested < 4; ++draw) {
        REQUIRE(draw < 200);
        Problem problem{variant, {1, 2, 5, 2, 3, 2}, {}, {}, {}};
        fill(problem, Stream(draw, "softpick").child(score));
        for (Tensor& x : problem.inputs) x = scale(x, 2);
        if (!Slice(problem).smooth()) continue;
        check_derivatives(Slice(problem), {Slice::origin()}, 100);
        ++tested;
      }
    }
  }

  TEST_CASE("and element by element, for every score and align") {
    for (Variant const& variant : variants()) {
      if (variant.position != "none" || !has_finite_differences(variant)) continue;
      INFO(variant.name());
      Problem problem{variant, {1, 2, 3, 2, 2, 1, 4}, {}, {}, {}};
      problem.variant.settings.set("window", 1.3);
      std::uint64_t draw = 0;
      do fill(problem, Stream(draw, "elements").child(variant.name()));
      while (!Slice(problem).smooth() && ++draw < 20);
      check_derivatives(problem.call(), problem.inputs);
    }
  }

  TEST_CASE("a definition that says 'everywhere' has no kinks") {
    for (Variant const& variant : variants()) {
      auto const align = Registry<AlignKind>::find(variant.settings.align);
      if (align->smooth != "everywhere" || variant.position != "none") continue;
      INFO(variant.name());
      for (Kind const kind : kinds) CHECK(Slice(drawn(variant, kind, Stream(1, variant.name()).child(kind))).smooth());
    }
  }

  TEST_CASE("the kernels are the reference, in value and first derivatives") {
    for_each_problem("kernels", [](Problem const& problem) {
      for (auto const& each : {std::pair{DType::float64, 1e-12}, std::pair{DType::float32, 5e-5}}) {
        auto const& dtype = each.first;
        double const tolerance = (problem.variant.settings.align == "softpick" ? 8 : 1) * each.second;  // it subtracts 1 from powers
        INFO(to_string(dtype));
        auto const expected = value_and_gradients(problem.call(false), problem.inputs, dtype);
        check_agree(value_and_gradients(problem.call(), problem.inputs, dtype), expected, tolerance);
        ReferenceAttention const no_kernels;
        check_agree(value_and_gradients(problem.call(), problem.inputs, dtype), expected, 0);
      }
    });
  }

  TEST_CASE("a query that sees no key reads zeros and has zero derivatives of both orders") {
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Problem const problem = drawn(variant, padded, Stream(4, variant.name()));
      for (TensorFunction const& f : {problem.call(), problem.call(false)})
        for (bool const both : {false, true}) {
          auto const found = both ? two_orders(f, problem.inputs) : value_and_gradients(f, problem.inputs);
          CHECK(all_finite(found));
          // The value and the derivatives by query, key and value begin with the first sequence, which has no keys.
          for (std::size_t i = 0; i < found.size(); ++i)
            if (std::size_t const input = (i + problem.inputs.size() - 1) % problem.inputs.size(); i == 0 || input <= 2)
              CHECK(max(abs(slice(found[i], 0, 0, 1))).item() == 0);
        }
    }
  }

  TEST_CASE("equal scores: the weights are equal, the derivatives those of finite differences") {
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Problem problem{variant, {2, 2, 4, 2, 2, 2}, {}, {}, {}};
      problem.variant.settings.set("window", 30.0);
      fill(problem, Stream(6, variant.name()));
      problem.inputs[1] = reshape(expand(slice(problem.inputs[1], 1, 0, 1), {2, 4, 4}), {2, 4, 4});
      for (std::size_t i = 3; i < problem.inputs.size(); ++i)
        problem.inputs[i] = Tensor::full(problem.inputs[i].shape(), 0.5, DType::float64);
      if (has_finite_differences(variant)) {
        REQUIRE(Slice(problem).smooth());
        check_derivatives(Slice(problem), {Slice::origin()});
      }
      if (variant.position != "none" || !test::kind_of<Align>(variant.settings.align).rows_are_distributions) continue;
      Tensor const weights = problem.subject(problem.inputs).weights(problem.inputs[0], problem.inputs[1], {});
      for (double const w : weights.to_vector()) CHECK(w == doctest::Approx(0.25).epsilon(1e-12));
    }
  }

  TEST_CASE("scores of ten thousand: everything stays finite, and the kernels the reference") {
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      Problem problem = drawn(variant, self, Stream(8, variant.name()));
      auto const largest = [&] {
        Parameters parameters = problem.parameters(problem.inputs);
        Extents const& e = problem.extents;
        auto const score = test::kind_of<Score>(variant.settings.score)
                               .make(Scope(parameters).at("score"), variant.settings, {e.heads, e.width, e.context});
        return max(abs(test::scores_of(*score, split_heads(problem.inputs[0], e.heads), split_heads(problem.inputs[1], e.heads)))).item();
      };
      std::vector<std::size_t> growing;  // what a score is multiplied by: its parameters, or the query where it has none
      for (std::size_t i = 0; i < problem.names.size(); ++i)
        if (problem.names[i].starts_with("score.")) growing.push_back(i + 3);
      if (growing.empty()) growing.push_back(0);
      while (largest() < 1e4)
        for (std::size_t const i : growing) problem.inputs[i] = scale(problem.inputs[i], 3);
      for (DType const dtype : {DType::float64, DType::float32}) CHECK(all_finite(two_orders(problem.call(), problem.inputs, dtype)));
      check_agree(value_and_gradients(problem.call(), problem.inputs), value_and_gradients(problem.call(false), problem.inputs), 1e-9);
    }
  }

  // ---------------------------------------------------------------- where a definition is not differentiable

  namespace {

  /// One head of width one, the score q·k and the values e_j: the context is the row of weights.
  struct Row {
    Problem problem;

    Row(std::string const& score, std::string const& align, double q, std::vector<double> const& k, double window = 10) {
      auto const n = static_cast<Index>(k.size());
      problem.variant.position = "none";
      problem.variant.settings.score = score;
      problem.variant.settings.align = align;
      problem.variant.settings.set("window", window);
      problem.extents = {1, 1, n, 1, 1, n};
      fill(problem, Stream(1, "row"));
      problem.inputs[0] = Tensor::full({1, 1, 1}, q, DType::float64);
      problem.inputs[1] = Tensor::of(k, {1, n, 1});
      problem.inputs[2] = reshape(one_hot(Tensor::arange(n, DType::int64), n, DType::float64), {1, n, n});
    }
    Tensor at(std::size_t input, Index element, double by, bool by_kernel) const {
      Tensors x = problem.inputs;
      x[input] = x[input].clone();
      heed::at(x[input].mutable_data<double>(), element) += by;
      return problem.call(by_kernel)(x);
    }
    std::vector<double> weights(bool by_kernel) const { return at(0, 0, 0, by_kernel).to_vector(); }
    /// ∂a_j/∂(an element of an input), as it is returned.
    double returned(Index j, std::size_t input, Index element, bool by_kernel) const {
      Tensors x = problem.inputs;
      x[input] = x[input].clone().set_requires_grad();
      return grad(sum(slice(problem.call(by_kernel)(x), 2, j, j + 1)), x[input]).at(element);
    }
    /// The same from one side only, by the difference quotient of a step of sign and size `h`.
    double one_sided(Index j, std::size_t input, Index element, double h, bool by_kernel) const {
      return (at(input, element, h, by_kernel).at(j) - at(input, element, 0, by_kernel).at(j)) / h;
    }
  };

  }  // namespace

  TEST_CASE("sparsemax at the edge of its support: the derivative is that of the side where the support stays") {
    for (bool const by_kernel : {true, false}) {
      // Two keys whose scores are exactly 1 apart: the lower one has just left.
      Row const pair("dot", "sparsemax", 1, {1, 0});
      CHECK(pair.weights(by_kernel) == std::vector<double>{1, 0});
      CHECK(pair.one_sided(0, 1, 1, -1e-6, by_kernel) == 0);
      CHECK(pair.one_sided(1, 1, 1, 1e-6, by_kernel) == doctest::Approx(0.5));
      for (Index j : {0, 1})
        for (Index k : {0, 1}) CHECK(pair.returned(j, 1, k, by_kernel) == 0);
      // Two that tie above a third at the threshold: (½, ½, 0), and I − 1/2 between the two.
      Row const three("dot", "sparsemax", 1, {0, 0, -0.5});
      CHECK(three.weights(by_kernel) == std::vector<double>{0.5, 0.5, 0});
      for (Index j : {0, 1, 2}) {
        CHECK(three.one_sided(j, 1, 2, -1e-6, by_kernel) == 0);
        CHECK(three.one_sided(j, 1, 2, 1e-6, by_kernel) == doctest::Approx(j == 2 ? 2.0 / 3 : -1.0 / 3));
        CHECK(three.returned(j, 1, 2, by_kernel) == 0);
        CHECK(three.returned(j, 1, 0, by_kernel) == (j == 2 ? 0 : j == 0 ? 0.5 : -0.5));
      }
    }
  }

  TEST_CASE("entmax15 at the edge of its support: the derivative is 0 from both sides, the second one that of outside") {
    // e = (2, x): for x ≤ 0 all weight is on the first; above, a_1 = x²/4 + o(x²).
    for (bool const by_kernel : {true, false}) {
      Row const pair("dot", "entmax15", 1, {2, 0});
      CHECK(pair.weights(by_kernel) == std::vector<double>{1, 0});
      CHECK(pair.one_sided(1, 1, 1, -1e-4, by_kernel) == 0);
      CHECK(std::abs(pair.one_sided(1, 1, 1, 1e-4, by_kernel)) < 1e-4);
      CHECK(pair.at(1, 1, 1e-3, by_kernel).at(1) == doctest::Approx(1e-6 / 4).epsilon(1e-2));
      for (Index k : {0, 1}) CHECK(pair.returned(1, 1, k, by_kernel) == 0);
      Tensor const key = pair.problem.inputs[1].clone().set_requires_grad();
      Tensor const weights = pair.problem.call(by_kernel)({pair.problem.inputs[0], key, pair.problem.inputs[2]});
      Tensor const first = grad(sum(slice(weights, 2, 1, 2)), key, true);
      if (first.requires_grad()) CHECK(grad(sum(first), key).to_vector() == std::vector<double>{0, 0});
    }
  }

  TEST_CASE("local_p at the edge of its window: the key is in, and the derivative that of the side where it stays") {
    // q = 0 puts the centre at p = 3/2 of three keys; with D = 3/2 key 0 stands on the edge, and p moves by 3 v W/4 of q.
    for (bool const by_kernel : {true, false}) {
      Row row("dot", "local_p", 0, {0.3, -0.4, 0.9}, 1.5);
      REQUIRE(row.problem.names == std::vector<std::string>{"align.position_matrix", "align.position_vector"});
      row.problem.inputs[3] = Tensor::full({1, 1, 1}, 0.8, DType::float64);
      row.problem.inputs[4] = Tensor::full({1, 1}, 0.5, DType::float64);
      double const keys[]{0.3, -0.4, 0.9}, slope = 3 * 0.5 * 0.8 / 4, square = 0.75 * 0.75, mean = (0.3 - 0.4 + 0.9) / 3;
      auto const weights = row.weights(by_kernel);
      for (Index j = 0; j < 3; ++j) {
        double const off = static_cast<double>(j) - 1.5, a = std::exp(-off * off / (2 * square)) / 3;
        CHECK(at(weights, j) == doctest::Approx(a).epsilon(1e-14));
        double const expected = a * (keys[j] - mean + off / square * slope);
        CHECK(row.returned(j, 0, 0, by_kernel) == doctest::Approx(expected).epsilon(1e-12));
        CHECK(row.one_sided(j, 0, 0, -1e-7, by_kernel) == doctest::Approx(expected).epsilon(1e-5));
      }
      // To the other side key 0 falls out of the window, and the rest shares its weight.
      CHECK(row.at(0, 0, 1e-7, by_kernel).at(0) == 0);
      CHECK(row.at(0, 0, 1e-7, by_kernel).at(1) == doctest::Approx(weights[1] * 1.5).epsilon(1e-5));
    }
  }

  TEST_CASE("local windows hold the keys at a distance of exactly D, or the nearest one") {
    for (bool const by_kernel : {true, false}) {
      Row row("dot", "local_m", 0, {0, 0, 0, 0}, 1);
      row.problem.visibility.offset = 1;
      for (std::size_t j = 0; j < 4; ++j) CHECK(row.weights(by_kernel)[j] == doctest::Approx(j < 3 ? 1.0 / 3 : 0).epsilon(1e-14));
      row.problem.visibility.offset = 7;  // beyond all keys
      CHECK(row.weights(by_kernel) == std::vector<double>{0, 0, 0, 1});
      // p = 3/2 and D = 0.4: keys 1 and 2 are as near, and neither is in the window.
      Row const none("dot", "local_p", 0, {0.1, 0.2, 0.3}, 0.4);
      auto const weights = none.weights(by_kernel);
      CHECK(weights[0] == 0);
      CHECK(weights[1] == doctest::Approx(std::exp(-0.25 / (2 * 0.04))));
      CHECK(weights[2] == 0);
    }
  }

  TEST_CASE("the cosine of a zero vector is 0, and its derivative that of the definition") {
    // e_j = β q k_j/(|q| |k_j| + 1e-8): at q = 0 the slope is β k_j/1e-8, from either side.
    double const keys[]{0.4, -1, 2}, mean = (0.4 - 1 + 2) / 3;
    for (bool const by_kernel : {true, false}) {
      Row row("cosine", "softmax", 0, {0.4, -1, 2});
      row.problem.inputs[3] = Tensor::full({1}, 3, DType::float64);
      for (Index j = 0; j < 3; ++j) {
        CHECK(at(row.weights(by_kernel), j) == doctest::Approx(1.0 / 3).epsilon(1e-14));
        double const expected = 3e8 / 3 * (keys[j] - mean);
        CHECK(row.returned(j, 0, 0, by_kernel) == doctest::Approx(expected).epsilon(1e-12));
        for (double const h : {1e-14, -1e-14}) CHECK(row.one_sided(j, 0, 0, h, by_kernel) == doctest::Approx(expected).epsilon(1e-4));
      }
      // A zero key likewise: its own score is 0, and the others' do not feel it.
      Row const zero_key("cosine", "softmax", 1, {0, 0, 0});
      CHECK(zero_key.weights(by_kernel)[1] == doctest::Approx(1.0 / 3).epsilon(1e-14));
      double const sharpness = zero_key.problem.inputs[3].item();
      CHECK(zero_key.returned(1, 1, 1, by_kernel) == doctest::Approx(sharpness * 1e8 * 2 / 9).epsilon(1e-12));
      CHECK(zero_key.returned(0, 1, 1, by_kernel) == doctest::Approx(-sharpness * 1e8 / 9).epsilon(1e-12));
    }
  }

  TEST_CASE("saturated and tied scores, by hand") {
    // Scores of ±10⁴: the weights are exact, and ∂a_0/∂k_0 is s/2 · q for a tie of two, with s the slope of the align.
    for (bool const by_kernel : {true, false})
      for (auto const& each : {std::pair{"softmax", 0.5}, {"local_m", 0.5}, {"sparsemax", 1}, {"entmax15", std::sqrt(0.5)}}) {
        double const slope = each.second;
        CAPTURE(each.first);
        Row const one("dot", each.first, 1e4, {1, -1, 0.5});
        CHECK(one.weights(by_kernel) == std::vector<double>{1, 0, 0});
        for (Index j : {0, 1, 2}) {
          CHECK(one.returned(j, 0, 0, by_kernel) == 0);
          CHECK(one.returned(j, 1, j, by_kernel) == 0);
        }
        Row const tie("dot", each.first, 1e4, {1, 1, -1});
        auto const weights = tie.weights(by_kernel);
        for (std::size_t const j : {0, 1}) CHECK(weights[j] == doctest::Approx(0.5).epsilon(1e-14));
        CHECK(weights[2] == 0);
        CHECK(tie.returned(0, 1, 0, by_kernel) == doctest::Approx(1e4 * slope / 2).epsilon(1e-12));
        CHECK(tie.returned(0, 1, 1, by_kernel) == doctest::Approx(-1e4 * slope / 2).epsilon(1e-12));
        CHECK(tie.returned(0, 1, 2, by_kernel) == 0);
      }
  }
}
