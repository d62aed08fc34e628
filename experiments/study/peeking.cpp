// Who looks after every pair and stops at the first verdict: how often evidence (metric/evidence.hpp) and the sign-flip test are then wrong
// without a difference, after how many pairs they find one, and how many of a ledger's verdicts are false. Simulated.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/random.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/study/study.hpp"

namespace heed {

namespace {

struct PeekingSettings : Settings {
  Index loops = 2000, pairs = 40;
  std::vector<double> differences{0.5, 1, 1.5, 2, 3};

  std::vector<Field> fields() override {
    return {field(&loops, "loops", "simulated loops of each case").in(1, 1'000'000),
            field(&pairs, "pairs", "pairs after which a loop gives up").in(6, 1000),
            field(&differences, "differences", "true differences, in standard deviations of the paired differences")};
  }
};

/// A law of paired differences with mean 0: draw i.
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

std::vector<std::pair<std::string, DifferenceLaw>> const difference_laws{
    {"normal", [](Stream const& stream, std::uint64_t i) { return stream.normal(i); }},
    {"t3", student_t3},
    {"two points", [](Stream const& stream, std::uint64_t i) { return stream.uniform(i) < 0.5 ? -1.0 : 1.0; }},
    {"correlated", correlated},
    {"skewed (mean 0)", [](Stream const& stream, std::uint64_t i) { return -std::log1p(-stream.uniform(i)) - 1; }},
};

std::vector<double> drawn(DifferenceLaw law, Stream const& stream, Index pairs, double shift = 0) {
  std::vector<double> all;
  for (Index i = 0; i < pairs; ++i) all.push_back(shift + law(stream, static_cast<std::uint64_t>(i)));
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

std::vector<std::string> row(std::string const& what, std::string const& law, double x, double y) {
  return {what, law, csv_number(x), csv_number(y)};
}

/// Shares of loops that have gone wrong by each number of pairs. `first_wrong`: of each loop the number at which it did.
void add_shares(CsvRows& rows, std::string const& what, std::string const& law, std::vector<std::size_t> const& first_wrong, Index pairs) {
  for (Index k = 6; k <= pairs; ++k) {
    auto const count = std::ranges::count_if(first_wrong, [&](std::size_t at) { return at <= static_cast<std::size_t>(k); });
    rows.push_back(row(what, law, static_cast<double>(k), static_cast<double>(count) / static_cast<double>(first_wrong.size())));
  }
}

/// Without a difference. A true value is not covered only where evidence against it has reached 20 and the hull leaves it out, too.
CsvRows errors(std::string const& name, DifferenceLaw law, PeekingSettings const& settings, Stream const& stream) {
  constexpr std::size_t never = 1'000'000;
  std::vector<std::size_t> by_evidence, by_flips, uncovered;
  for (Index loop = 0; loop < settings.loops; ++loop) {
    stop_if_interrupted();
    auto const own = stream.child(static_cast<std::uint64_t>(loop));
    auto const d = drawn(law, own, settings.pairs);
    auto const e = evidence(d);
    auto const p = sign_flip_ps(d, own.child("flips"));
    std::size_t wrong = never, flipped = never, missed = never;
    for (std::size_t k = d.size(); k >= 6; --k) {
      if (p[k - 1] <= 0.05) flipped = k;
      if (e[k - 1] < 20) continue;
      wrong = k;
      auto const [low, high] = confidence_sequence(std::span(d).first(k));
      if (low > 0 || high < 0) missed = k;
    }
    by_evidence.push_back(wrong), by_flips.push_back(flipped), uncovered.push_back(missed);
  }
  CsvRows rows;
  add_shares(rows, "evidence", name, by_evidence, settings.pairs);
  add_shares(rows, "sign flips", name, by_flips, settings.pairs);
  add_shares(rows, "not covered", name, uncovered, settings.pairs);
  return rows;
}

/// Pairs until the verdict at a true difference: median and 80 % quantile, and what the test with a fixed number needs for 80 % power.
CsvRows power(double difference, PeekingSettings const& settings, Stream const& stream) {
  std::vector<double> pairs;
  for (Index loop = 0; loop < settings.loops; ++loop) {
    auto const e =
        evidence(drawn(difference_laws.front().second, stream.child(static_cast<std::uint64_t>(loop)), settings.pairs, difference));
    auto const found = std::ranges::find_if(e, [](double each) { return each >= 20; });
    pairs.push_back(found == e.end() ? INFINITY : static_cast<double>(found - e.begin() + 1));
  }
  std::ranges::sort(pairs);
  auto const quantile = [&](double share) { return pairs[static_cast<std::size_t>(share * static_cast<double>(pairs.size() - 1))]; };
  return {row("median", "normal", difference, quantile(0.5)), row("80 %", "normal", difference, quantile(0.8)),
          row("fixed", "normal", difference, static_cast<double>(seeds_that_detect(difference, 1)))};
}

/// 100 candidates that share a base, ten of them three standard deviations apart, 16 pairs each.
CsvRows ledger(PeekingSettings const& settings, Stream const& stream) {
  constexpr std::size_t candidates = 100, real = 10;
  constexpr Index pairs = 16;
  double const loops = static_cast<double>(std::max<Index>(settings.loops / 10, 1));
  std::map<std::string, double> shares;
  for (double loop = 0; loop < loops; ++loop) {
    stop_if_interrupted();
    auto const own = stream.child(static_cast<std::uint64_t>(loop));
    auto const base = drawn(difference_laws.front().second, own.child("base"), pairs);
    std::vector<double> e, largest;
    for (std::size_t i = 0; i < candidates; ++i) {
      auto d = drawn(difference_laws.front().second, own.child(i), pairs, i < real ? 3 * std::sqrt(2.0) : 0);
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
    shares["false without e-BH"] += alone_false / std::max(alone, 1.0) / loops;
    shares["false with e-BH"] += found_false / std::max(found, 1.0) / loops;
    shares["found with e-BH"] += (found - found_false) / real / loops;
  }
  return mapped(shares, [&](auto const& each) { return row(each.first, "normal", candidates, each.second); });
}

StudyResult report(CsvRows const& rows) {
  auto result = result_of({"what", "law", "x", "y"}, rows);
  std::map<std::pair<std::string, std::string>, double> last;
  for (auto const& each : rows) last[{each[0], each[1]}] = *parsed_number<double>(each[3]);
  auto const percent = [&](char const* what, std::string const& law) { return fmt::format("{:.1f} %", 100 * last[{what, law}]); };
  StudyTable wrong{"Wrong verdicts without a difference", {{"differences", "evidence", "sign flips at every look", "interval misses"}}};
  for (auto const& [name, law] : difference_laws)
    wrong.rows.push_back({name, percent("evidence", name), percent("sign flips", name), percent("not covered", name)});
  StudyTable until{"Pairs until the verdict", {{"true difference (sd)", "median", "80 % quantile", "fixed number, 80 % power"}}};
  for (std::size_t i = 0; i + 2 < rows.size(); ++i)
    if (rows[i][0] == "median") until.rows.push_back({rows[i][2], rows[i][3], rows[i + 1][3], rows[i + 2][3]});
  StudyTable discoveries{"100 candidates with one base, 90 without a difference, looked at after each of 16 pairs", {{"share", ""}}};
  for (auto const* const what : {"false without e-BH", "false with e-BH", "found with e-BH"})
    discoveries.rows.push_back({what, percent(what, "normal")});
  result.tables = {wrong, until, discoveries};
  result.sentences = {
      fmt::format("who looks after every pair is wrong in {} of loops by evidence, in {} by sign flips (normal differences)",
                  percent("evidence", "normal"), percent("sign flips", "normal")),
      "skewed differences with mean 0 are no null of these tests, which ask for symmetry"};
  return result;
}

Study peeking(PeekingSettings const& settings, StudyContext const& context) {
  Study study;
  Stream const stream(context.seed, "peeking");
  for (auto const& [name, law] : difference_laws)
    study.cells.push_back({name, [&, name = name, law = law, own = stream.child(name)] { return errors(name, law, settings, own); }});
  for (double const difference : settings.differences)
    study.cells.push_back({fmt::format("difference {:g}", difference),
                           [&, difference, own = stream.child("power")] { return power(difference, settings, own); }});
  study.cells.push_back({"ledger", [&, own = stream.child("ledger")] { return ledger(settings, own); }});
  study.report = report;
  return study;
}

/// Shares of wrong loops over the number of looks, a line a law.
Panel looks(StudyRecord const& record, std::string const& what) {
  Panel panel{.title = what == "evidence" ? "evidence" : "sign-flip test at every look",
              .y = axis_over(Range{0, 40}, "wrong so far (%)"),
              .guides = {{.at = 5, .dash = 2}}};
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  for (auto const& [name, law] : difference_laws) {
    FigureLayer layer{.look = look_of(panel.layers.size()), .name = name};
    for (auto const& line : lines)
      if (line["what"] == what && line["law"] == name) layer.points.push_back(CurvePoint::bare(line.number("x"), 100 * line.number("y")));
    panel.layers.push_back(std::move(layer));
  }
  return panel;
}

std::vector<StudyPart> present(StudyRecord const& record) {
  Figure figure{.name = "looks",
                .title = "Stopping at the first verdict, without a difference",
                .caption = "Share of loops with a wrong verdict so far, by the number of pairs that were looked at. The line across: 5 %.",
                .panels = {looks(record, "evidence"), looks(record, "sign flips")},
                .across = 2,
                .shared_y = true};
  share_x(figure, "pairs", Ticks::even);
  return {{.title = "Looking after every pair", .html = "", .figures = {figure}}};
}

Declared<StudyKind> const peeking_study{
    study_kind("peeking", "how often tests that are looked at after every pair are wrong, and how soon they are right", peeking, present)};

}  // namespace

}  // namespace heed
