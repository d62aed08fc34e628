// Who looks after every pair and stops at the first verdict: how often evidence (metric/evidence.hpp) and the sign-flip test are then wrong
// without a difference, after how many pairs they find one, and how many of a ledger's verdicts are false. Two thousand simulated loops of
// each case, in half a minute; the tables are printed, the picture is build/release/peeking.html.

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/random.hpp"
#include "experiments/config/table.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/traces.hpp"
#include "tests/folder.hpp"

TEST_SUITE("peeking") {
  using namespace heed;

  namespace {

  constexpr std::size_t loops = 2000, pairs = 40, first_look = 6;  // five pairs tell nothing
  constexpr std::size_t power_loops = 20'000, power_pairs = 100;

  /// A law of paired differences: draw i.
  using DifferenceLaw = double (*)(Stream const& stream, std::uint64_t i);

  double student_t3(Stream const& stream, std::uint64_t i) {
    auto const z = [&](std::uint64_t k) { return stream.normal(4 * i + k); };
    return z(0) / std::sqrt((z(1) * z(1) + z(2) * z(2) + z(3) * z(3)) / 3);
  }

  /// Both arms share half of the variance of a seed.
  double correlated(Stream const& stream, std::uint64_t i) {
    auto const value = [&](std::uint64_t k) { return std::sqrt(0.5) * (stream.normal(3 * i) + stream.normal(3 * i + k)); };
    return value(1) - value(2);
  }

  std::vector<std::pair<std::string, DifferenceLaw>> const laws{
      {"normal", [](Stream const& stream, std::uint64_t i) { return stream.normal(i); }},
      {"t3", student_t3},
      {"two points", [](Stream const& stream, std::uint64_t i) { return stream.uniform(i) < 0.5 ? -1.0 : 1.0; }},
      {"correlated", correlated},
      {"skewed, mean 0 (no null)", [](Stream const& stream, std::uint64_t i) { return -std::log1p(-stream.uniform(i)) - 1; }},
  };

  std::vector<double> drawn(DifferenceLaw law, Stream const& stream, std::size_t count, double shift = 0) {
    std::vector<double> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = shift + law(stream, i);
    return all;
  }

  /// The p of the sign-flip test after each pair, each by the same 1,000 random flips.
  std::vector<double> sign_flip_ps(std::vector<double> const& differences, Stream const& stream) {
    constexpr std::size_t flips = 1000;
    std::vector<double> sums(flips), ps;
    double sum = 0;
    for (std::size_t k = 0; k < differences.size(); ++k) {
      sum += differences[k];
      for (std::size_t flip = 0; flip < flips; ++flip)
        sums[flip] += (stream.bits(flip * differences.size() + k) & 1) != 0 ? differences[k] : -differences[k];
      auto const reached = std::ranges::count_if(sums, [&](double each) { return std::abs(each) >= std::abs(sum) * (1 - 1e-12); });
      ps.push_back(static_cast<double>(reached + 1) / (flips + 1));
    }
    return ps;
  }

  /// Shares of loops that were wrong at some look so far, by the number of looks.
  struct WrongSoFar {
    std::vector<double> evidence = std::vector<double>(pairs + 1), sign_flips = evidence, interval = evidence;
  };

  /// Without a difference. The interval leaves out the truth only where evidence has reached 20.
  WrongSoFar without_difference(std::string const& name, DifferenceLaw law) {
    WrongSoFar wrong;
    Stream const stream = Stream(1, "peeking").child(name);
    for (std::size_t loop = 0; loop < loops; ++loop) {
      auto const own = stream.child(loop);
      auto const d = drawn(law, own, pairs);
      auto const e = evidence(d), p = sign_flip_ps(d, own.child("flips"));
      auto const add = [&](std::vector<double>& shares, auto const& is_wrong) {
        std::size_t k = first_look;
        while (k <= pairs && !is_wrong(k)) ++k;
        for (; k <= pairs; ++k) shares[k] += 1.0 / loops;
      };
      add(wrong.evidence, [&](std::size_t k) { return e[k - 1] >= 20; });
      add(wrong.sign_flips, [&](std::size_t k) { return p[k - 1] <= 0.05; });
      add(wrong.interval, [&](std::size_t k) {
        if (e[k - 1] < 20) return false;
        auto const [low, high] = confidence_sequence(std::span(d).first(k));
        return low > 0 || high < 0;
      });
    }
    return wrong;
  }

  /// Pairs until the verdict at a true difference, in standard deviations: the median and the 80 % quantile; infinite after all of them.
  std::pair<double, double> pairs_until_verdict(double difference) {
    Stream const stream(1, "power");
    std::vector<double> until;
    for (std::size_t loop = 0; loop < power_loops; ++loop) {
      auto const e = evidence(drawn(laws.front().second, stream.child(loop), power_pairs, difference));
      auto const found = std::ranges::find_if(e, [](double each) { return each >= 20; });
      until.push_back(found == e.end() ? INFINITY : static_cast<double>(found - e.begin() + 1));
    }
    std::ranges::sort(until);
    return {until[(power_loops - 1) / 2], until[(power_loops - 1) * 4 / 5]};
  }

  /// Of 100 candidates that share a base, ten of them three standard deviations apart, 16 pairs each: mean shares over loops.
  std::map<std::string, double> ledger() {
    constexpr std::size_t candidates = 100, real = 10, own_loops = loops / 10;
    std::map<std::string, double> shares;
    for (std::size_t loop = 0; loop < own_loops; ++loop) {
      auto const stream = Stream(1, "ledger").child(loop);
      auto const base = drawn(laws.front().second, stream.child("base"), 16);
      std::vector<double> e, largest;
      for (std::size_t i = 0; i < candidates; ++i) {
        auto d = drawn(laws.front().second, stream.child(i), base.size(), i < real ? 3 * std::sqrt(2.0) : 0);
        for (std::size_t k = 0; k < d.size(); ++k) d[k] -= base[k];
        auto const all = evidence(d);
        e.push_back(all.back()), largest.push_back(*std::ranges::max_element(all));
      }
      auto const stands = standing(e);
      double found = 0, found_false = 0, alone = 0, alone_false = 0;
      for (std::size_t i = 0; i < candidates; ++i) {
        found += stands[i] ? 1 : 0, found_false += stands[i] && i >= real ? 1 : 0;
        alone += largest[i] >= 20 ? 1 : 0, alone_false += largest[i] >= 20 && i >= real ? 1 : 0;
      }
      shares["false without e-BH"] += alone_false / std::max(alone, 1.0) / own_loops;
      shares["false with e-BH"] += found_false / std::max(found, 1.0) / own_loops;
      shares["found with e-BH"] += (found - found_false) / real / own_loops;
    }
    return shares;
  }

  std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

  void add_line(Panel& panel, std::string const& law, std::vector<double> const& shares) {
    FigureLayer layer{.look = look_of(panel.layers.size()), .name = law};
    for (std::size_t k = first_look; k <= pairs; ++k) layer.points.push_back(CurvePoint::bare(static_cast<double>(k), 100 * shares[k]));
    panel.layers.push_back(std::move(layer));
  }

  }  // namespace

  TEST_CASE("who stops at the first verdict: wrong by evidence in at most 5 % of loops, by the sign-flip test in many") {
    Panel panel{.title = "evidence", .y = axis_over(Range{0, 40}, "wrong so far (%)"), .guides = {{.at = 5, .dash = 2}}};
    Figure figure{.name = "peeking",
                  .title = "Stopping at the first verdict, without a difference",
                  .caption = "Share of loops with a wrong verdict so far, by the number of pairs looked at. The line across: 5 %.",
                  .panels = {panel, panel},
                  .across = 2,
                  .shared_y = true};
    figure.panels.back().title = "sign-flip test at every look";
    TableRows rows{{"differences", "evidence", "sign flips at every look", "interval misses"}};
    for (auto const& each : laws) {
      auto const& [name, law] = each;
      CAPTURE(each.first);
      auto const wrong = without_difference(name, law);
      bool const symmetric = law != laws.back().second;
      CHECK(wrong.evidence.back() <= (symmetric ? 0.065 : 0.2));  // 5 %, with three standard errors of 2,000 loops
      CHECK(wrong.evidence.back() >= 0.01);
      CHECK(wrong.interval.back() <= wrong.evidence.back());
      CHECK(wrong.sign_flips.back() >= 0.12);
      add_line(figure.panels[0], name, wrong.evidence);
      add_line(figure.panels[1], name, wrong.sign_flips);
      rows.push_back({name, percent(wrong.evidence.back()), percent(wrong.sign_flips.back()), percent(wrong.interval.back())});
    }
    share_x(figure, "pairs", Ticks::even);
    auto const page = fs::read_symlink("/proc/self/exe").parent_path() / "peeking.html";
    write_figures(page, {figure}, "Looking after every pair", "");
    MESSAGE("\n", markdown_table(rows), page.string());
  }

  TEST_CASE("pairs until the verdict: soon, where the difference is large") {
    TableRows rows{{"true difference (sd)", "median", "80 % quantile", "fixed number, 80 % power"}};
    for (auto const& each : {std::pair(0.5, 38.0), {1.0, 12.0}, {1.5, 7.0}, {2.0, 7.0}, {3.0, 6.0}}) {
      auto const [difference, most] = each;
      CAPTURE(each.first);
      auto const [median, quantile] = pairs_until_verdict(difference);
      CHECK(median <= most);
      CHECK(median >= first_look);
      rows.push_back({fmt::format("{:g}", difference), fmt::format("{:g}", median), fmt::format("{:g}", quantile),
                      fmt::format("{}", seeds_that_detect(difference, 1))});
    }
    MESSAGE("\n", markdown_table(rows));
  }

  TEST_CASE("e-BH leaves hardly a false verdict of a ledger, and what is real stands") {
    auto shares = ledger();
    for (auto const& [what, share] : shares) MESSAGE(what, ": ", percent(share));
    CHECK(shares["false with e-BH"] <= 0.05);
    CHECK(shares["false without e-BH"] > shares["false with e-BH"]);
    CHECK(shares["found with e-BH"] > 0.9);
  }
}
