#include "experiments/report/page.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/table.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/traces.hpp"

namespace heed {

namespace {

std::string section(std::string const& title, std::string const& html, char const* kind = "") {
  return html.empty() ? "" : fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n", kind, escape(title), html);
}

std::string folded(std::string const& title, std::string const& html) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape(title), html);
}

/// One ablation, run or study as HTML; `prefix` makes its ids differ from other chapters'.
class Section {
 public:
  Section(Chapter const& chapter, std::string prefix) : chapter_(chapter), material_(chapter.material), prefix_(std::move(prefix)) {}

  std::string html() const {
    auto const head = fmt::format("<article id=\"{}\">\n<header{}>\n<p class=\"note\">{}</p>\n<h1>{}</h1>\n{}</header>\n", prefix_,
                                  results_mark(chapter_), escape(kind(true)), escape(material_.name), lead());
    if (is_study()) return head + problems() + parts() + study_tables() + what_was_run() + "</article>\n";
    return head + problems() + results() + tuning() + parts() + curves() + viewer() + costs() + what_was_run() + "</article>\n";
  }

 private:
  bool is_study() const { return !chapter_.study.kind.empty(); }

  /// "run", "ablation", "study", or what has no configuration of its own: "suite", "claims", "ledger".
  std::string kind(bool capital = false) const {
    auto word = is_study() ? (material_.configuration.empty() ? chapter_.study.kind : "study") : material_.single ? "run" : "ablation";
    if (capital) word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
    return word;
  }

  static std::string verdicts(std::span<std::string const> sentences) {
    if (sentences.empty()) return "";
    std::string items = "<ul class=\"verdicts\">\n";
    for (auto const& sentence : sentences) items += fmt::format("<li>{}</li>\n", escape(sentence));
    return items + "</ul>\n";
  }

  std::string lead() const {
    if (is_study())
      return fmt::format("<p class=\"lead\">{}{}</p>\n", escape(chapter_.help),
                         chapter_.study.seconds > 1 ? fmt::format("; measured in {:.0f} s", chapter_.study.seconds) : "") +
             verdicts(material_.sentences);
    if (material_.single) return fmt::format("<p class=\"lead\">{} steps</p>\n", material_.steps) + verdicts(material_.sentences);
    bool const alike = material_.steps > 0 && std::ranges::count(material_.varied, "train.steps") == 0;
    std::string html =
        fmt::format("<p class=\"lead\"><code>{}</code> at its {} value, {} is better; {} × {}{}</p>\n", escape(material_.metric),
                    escape(material_.at), escape(material_.better), plural(material_.arms.size(), "arm"),
                    plural(material_.seeds.size(), "seed"), alike ? fmt::format(", {} steps each", material_.steps) : "");
    if (material_.trials_done < material_.trials_of)
      html += fmt::format(
          "<p class=\"problem\"><strong>{} of {} trials</strong> have ended; {}.</p>\n", material_.trials_done, material_.trials_of,
          chapter_.running ? "this page refreshes itself while the others run" : "the same command goes on with the others");
    if (material_.sentences.empty()) return html;
    auto const of_arms =
        static_cast<std::size_t>(std::ranges::count_if(material_.arms, [](ArmResult const& arm) { return arm.difference.has_value(); }));
    std::size_t const count = material_.sentences.size();
    // Sentences that are not folded: in a grid those on its keys, else at most 8. The table has all differences.
    std::size_t const enough = material_.effects.empty() || of_arms >= count ? 8 : count - of_arms;
    std::span<std::string const> const all(material_.sentences);
    if (all.size() <= enough + 1) return html + verdicts(all);
    return html + verdicts(all.first(enough)) + folded(fmt::format("{} more", all.size() - enough), verdicts(all.subspan(enough)));
  }

  std::string problems() const {
    std::string html;
    auto warnings = material_.warnings;
    if (!chapter_.undrawn.empty())
      warnings.push_back(fmt::format("figures are missing: {}; heed report on this folder draws them", chapter_.undrawn));
    for (auto const& warning : warnings) html += fmt::format("<p class=\"problem\"><strong>Warning:</strong> {}</p>\n", escape(warning));
    for (auto const& failure : material_.failures) {
      std::string log;
      for (auto const& line : failure.log) log += escape(line) + "\n";
      html += fmt::format("<div class=\"problem\"><strong>Failed:</strong> {}, seed {}: {}{}</div>\n", escape(failure.arm), failure.seed,
                          escape(failure.message),
                          log.empty() ? "" : fmt::format("<details><summary>last lines of its log</summary><pre>{}</pre></details>", log));
    }
    if (!material_.missing.empty() && material_.trials_done == material_.trials_of) {
      auto const names =
          mapped(material_.missing, [](auto const& trial) { return fmt::format("{} (seed {})", trial.first, trial.second); });
      html += fmt::format("<p class=\"problem\"><strong>Not run yet:</strong> {}</p>\n", escape(fmt::format("{}", fmt::join(names, ", "))));
    }
    if (html.empty()) return html;
    return fmt::format("<section aria-label=\"Failures and warnings\">\n{}</section>\n", html);
  }

  std::string figure(std::size_t i, bool heading = true) const {
    auto const& figure = chapter_.figures[i];
    auto const id = fmt::format("{}-figure{}", prefix_, i + 1);
    return fmt::format(
        "<figure>\n{}<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>\n<figcaption>{} "
        "<code>figures/{}.pdf</code></figcaption>\n</figure>\n",
        heading ? fmt::format("<h3>{}</h3>\n", escape(figure.title)) : "", escape(figure.title), inlined(chapter_.drawings[i], id, figure),
        escape(figure.caption), escape(figure.name));
  }

  /// Where a figure belongs, by the beginning of its name: with others of its kind, or else with the learning curves.
  static std::string_view kind_of(Figure const& figure) {
    for (std::string_view const kind : {"differences", "over_", "interaction", "probe_", "tuning", "added_"})
      if (kind.ends_with('_') ? figure.name.starts_with(kind) : figure.name == kind) return kind;
    return "curve";
  }

  std::string figures(std::string_view kind) const {
    constexpr std::size_t most_folded = 1'000'000;  // bytes of drawings that one has to ask for
    std::string html, rest, names;
    for (std::size_t i = 0; i < chapter_.drawings.size(); ++i) {
      if (kind_of(chapter_.figures[i]) != kind) continue;
      if (!chapter_.figures[i].further)
        html += figure(i);
      else if (rest.size() + chapter_.drawings[i].svg.size() + chapter_.drawings[i].narrow.size() < most_folded)
        rest += folded(chapter_.figures[i].title, figure(i, false));
      else
        names += fmt::format("{}<code>figures/{}.svg</code>", names.empty() ? "" : ", ", escape(chapter_.figures[i].name));
    }
    return html + rest + (names.empty() ? "" : "<p class=\"note\">Drawn beside this page: " + names + "</p>\n");
  }

  /// The sections of a study, or those added to a run or an ablation. A figure that gnuplot refused is not among the chapter's.
  std::string parts() const {
    std::string html;
    for (auto const& part : chapter_.parts) {
      std::string figures;
      for (auto const& each : part.figures) {
        auto const found = std::ranges::find(chapter_.figures, each.name, &Figure::name);
        auto const i = static_cast<std::size_t>(found - chapter_.figures.begin());
        if (i < chapter_.drawings.size()) figures += each.further ? folded(each.title, figure(i, false)) : figure(i);
      }
      html += section(part.title, verdicts(part.sentences) + figures + part.html);
    }
    return html;
  }

  std::string study_tables() const {
    std::string html;
    for (auto const& [title, rows, detail] : chapter_.study.tables) {
      if (!detail && !rows.empty()) html += folded(title, html_table(title, rows));
    }
    if (html.empty()) return html;
    return section("Tables", html +
                                 "<p class=\"note\">More of them are in <code>summary.md</code>, all numbers in "
                                 "<code>results.csv</code>.</p>\n");
  }

  std::string results() const {
    return section("Results", figures("interaction") + (material_.single ? run_tables() : comparison()) + figures("differences") +
                                  figures("over_") + effects());
  }

  /// Main effects and interactions of the keys of a grid.
  std::string effects() const {
    if (material_.effects.empty()) return "";
    bool const everywhere = over_all_combinations(material_.effects);
    return "<h3>Main effects and interactions of the keys</h3>\n" +
           html_table("Effects", material_.effect_rows(with_unit(material_.metric, material_.unit))) +
           fmt::format(
               "<p class=\"note\">Main effects: differences by seed, averaged over {}. a × b: interactions, differences of differences. p "
               "is corrected for the number of effects.{}</p>\n",
               everywhere ? "all combinations of the other keys" : "the combinations of the other keys for which all arms exist",
               std::ranges::any_of(material_.effects, [](Effect const& effect) { return std::isnan(effect.comparison.mean); })
                   ? " NaN: values that are infinite on both sides have no difference."
                   : "");
  }

  /// The grid of tune: every arm's score at every point, with what it chose.
  std::string tuning() const {
    if (!material_.tuning || material_.tuning->points.empty()) return "";
    auto const keys = mapped(material_.tuning->points.front().keys, [](auto const& each) { return each.first; });
    return section(
        "Tuning",
        figures("tuning") + html_table("Scores of the tuning grid", material_.tuning_rows(" ✓")) +
            fmt::format("<p class=\"note\">{} at each value of {}, mean over {} that the comparison does not use. ✓: selected for the "
                        "comparison; –: a trial failed, or has not ended.</p>\n",
                        escape(with_unit(material_.metric, material_.unit)), escape(fmt::format("{}", fmt::join(keys, ", "))),
                        plural(material_.tuning->seeds.size(), "seed")));
  }

  /// The tables of a single run: the last value of each metric, with baselines and known reference losses.
  std::string run_tables() const {
    auto const& run = material_.arms.front();
    TableRows last{{"metric", "last value", "at step"}}, baselines{{"baseline", "metric", "value", "this run − it"}},
        losses{{"baseline", "loss (nat)", "this run − it"}};
    auto const& history = run.histories.at(0);
    for (auto const& [name, series] : history) {
      if (auto const key = MetricKey::of(name); !key.is_probe() && !key.is_cost())
        last.push_back({with_unit(name), fmt::format("{:.5g}", series.back().second), fmt::format("{}", series.back().first)});
    }
    std::ranges::sort(last.begin() + 1, last.end(), {}, [](auto const& row) { return numbers_in_order(row.front()); });
    for (auto const& [name, metric, value] : material_.baselines) {
      auto& row = baselines.emplace_back(std::vector{name, with_unit(metric), fmt::format("{:.4f}", value), std::string()});
      if (auto const found = history.find(metric); found != history.end())
        row.back() = fmt::format("{:+.4f}", found->second.back().second - value);
    }
    for (auto const& [name, loss] : material_.reference_losses)
      losses.push_back({name, fmt::format("{:.4f}", loss), run.estimate ? fmt::format("{:+.4f}", run.estimate->mean - loss) : ""});
    std::string html = html_table("Last values", last);
    for (auto const& rows : {baselines, losses})
      if (rows.size() > 1) html += "<h3>Baselines</h3>\n" + html_table("Baselines", rows);
    return html;
  }

  std::string comparison() const {
    TableRows rows{{"arm", with_unit(material_.metric, material_.unit) + ", 95\u00a0%\u00a0interval", "difference", "p", "paired\u00a0t",
                    "effect", "verdict", "seeds", "tuned"}};
    auto const cells = material_.arm_rows();
    for (std::size_t i = 0; i < material_.arms.size(); ++i) {
      auto const& arm = material_.arms[i];
      auto row = cells[i + 1];
      if (arm.estimate && std::isinf(arm.estimate->mean)) row[2] = "(no interval)";
      if (!arm.difference) row[3].clear(), row[7] = arm.name == material_.baseline ? "baseline" : "–";
      if (row[8].find('/') == row[8].npos) row[8] = fmt::format("{}/{}", material_.seeds.size(), row[8]);
      rows.push_back({arm.name, row[1] + (row[2].empty() ? "" : " ") + row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[12]});
    }
    rows = without_empty_columns(std::move(rows));
    auto const has = [&](char const* column) { return std::ranges::count(rows.front(), column) > 0; };
    auto const kind = [&](std::size_t row, std::size_t column) {
      auto const& difference = material_.arms[row - 1].difference;
      return rows.front()[column] != "verdict" ? "" : difference ? fmt::format("text {}", name(difference->verdict)) : "text";
    };
    return html_table("Results by arm", rows, kind) +
           fmt::format("<p class=\"note\">Differences are paired by seed with {}. p, which the verdicts use: {}. {}{}{}{}</p>\n",
                       escape(material_.baseline), escape(material_.test_in_words()),
                       has("paired\u00a0t")
                           ? "Paired t: p of a paired t test of each arm alone, as often reported; it assumes normally distributed "
                             "differences and does not affect the verdicts. Intervals are for each arm alone, not simultaneous. "
                           : "",
                       has("effect")
                           ? "Effect: mean difference in standard deviations of the paired differences (Cohen's d<sub>z</sub>), with "
                             "Hedges' correction for few seeds. "
                           : "",
                       divergence_text(), margin_text());
  }

  std::string divergence_text() const {
    std::string text;
    if (std::ranges::any_of(material_.arms, [](ArmResult const& arm) { return !arm.diverged.empty(); }))
      text += "A seed that diverged counts as worse than any number: a mean over it is infinite and has no interval. ";
    if (std::ranges::any_of(material_.arms, [](ArmResult const& arm) { return arm.difference && arm.difference->ranked; }))
      text += "Where one seed's difference outweighs all others, p is from signed ranks. ";
    return text;
  }

  std::string margin_text() const {
    if (material_.margin > 0)
      return fmt::format(
          "Equivalent: {} the margin of {:g}{}.",
          material_.by_evidence() ? "the interval of the difference lies within" : "by an equivalence test the difference is smaller than",
          material_.margin, escape(material_.unit.empty() ? "" : " " + material_.unit));
    return "No arm is called equivalent, because no <code>margin</code> is set.";
  }

  std::string curves() const {
    return section("Training", figures("curve"), " class=\"curves\"") + section("Probes", figures("probe_"), " class=\"curves\"");
  }

  std::string viewer() const {
    if (chapter_.maps.empty()) return "";
    std::string data = chapter_.maps;
    replace_all(data, "<", "\\u003c");  // no letter of JSON but inside texts
    auto const select = [](char const* name, char const* what) {
      return fmt::format("<label>{}<select data-choose=\"{}\"></select></label>\n", what, name);
    };
    return "<section class=\"viewer\">\n<h2>Attention maps</h2>\n"
           "<p class=\"note\">" +
           std::string(material_.single ? "All maps are in <code>attention/</code>."
                                        : "One trial of each arm; all maps are in <code>attention/</code> of the trials.") +
           "</p>\n<fieldset class=\"controls\" aria-label=\"Map\">\n" + select("arm", "arm") + select("layer", "layer") +
           select("head", "head") +
           "<label><span>step <span class=\"step\"></span></span><input data-choose=\"step\" type=\"range\" min=\"0\" "
           "step=\"1\"></label>\n" +
           select("example", "example") + select("scale", "colours") +
           "<span class=\"save\"><button type=\"button\" data-save=\"png\">PNG</button><button type=\"button\" "
           "data-save=\"svg\">SVG</button></span>\n"
           "</fieldset>\n"
           "<output class=\"readout\" aria-live=\"polite\"></output>\n<div class=\"map\" tabindex=\"0\" role=\"application\"></div>\n"
           "<script type=\"application/json\">" +
           data + "</script>\n</section>\n";
  }

  std::string costs() const {
    TableRows rows{{material_.single ? "run" : "arm", "parameters", "seconds per run", "tokens per second", "peak memory (MB)"}};
    auto const cells = material_.arm_rows();
    for (std::size_t i = 0; i < material_.arms.size(); ++i) {
      auto const& arm = material_.arms[i];
      auto const cell = [&](std::size_t column) { return cells[i + 1][column].empty() ? "–" : cells[i + 1][column]; };
      if (arm.seconds || arm.memory) rows.push_back({arm.name, fmt::format("{}", arm.parameters), cell(9), cell(10), cell(11)});
    }
    if (rows.size() < 2) return "";
    return section("Time and memory",
                   html_table("Time and memory", rows) +
                       (material_.single ? "" : "<p class=\"note\">Means over the runs, with other runs in parallel.</p>\n"));
  }

  std::string what_was_run() const {
    std::vector<std::pair<std::string, std::string>> entries{{kind(), material_.name}};
    bool const dirty = std::ranges::count(material_.environment, std::pair<std::string, std::string>("dirty", "true")) > 0;
    for (auto const& [name, value] : material_.environment) {
      if (name == "revision")
        entries.emplace_back("code revision", value + (dirty ? " (modified)" : ""));
      else if (name != "dirty" && name != "blas_path")
        entries.emplace_back(name == "blas" ? "matrix library" : name == "build_type" ? "build" : name, value);
    }
    for (auto const& [file, sha256] : material_.read) entries.emplace_back("files read", fmt::format("{} (SHA-256 {})", file, sha256));
    std::string html = "<dl>\n";
    for (auto const& [name, value] : entries)
      if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value));
    html += "</dl>\n";
    if (!material_.configuration.empty())
      html +=
          fmt::format("<details open>\n<summary>{}</summary>\n<pre>{}</pre>\n</details>\n",
                      material_.single || is_study() ? "config.yaml, with all defaults" : "ablation.yaml", escape(material_.configuration));
    return section("Configuration", html);
  }

  Chapter const& chapter_;
  Material const& material_;
  std::string prefix_;
};

}  // namespace

std::string results_mark(Chapter const& chapter) {
  return chapter.results.empty() ? "" : fmt::format(" data-results=\"{}\"", chapter.results);
}

std::string page(std::vector<Chapter> const& chapters) {
  std::string title, articles, contents;
  bool maps = false;
  for (std::size_t i = 0; i < chapters.size(); ++i) {
    auto const prefix = fmt::format("part{}", i + 1);
    auto const name = escape(chapters[i].material.name);
    title += (i > 0 ? ", " : "") + name;
    contents += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", prefix, name);
    articles += Section(chapters[i], prefix).html();
    maps = maps || !chapters[i].maps.empty();
  }
  bool const waits = std::ranges::any_of(
      chapters, [](Chapter const& each) { return each.running && each.material.trials_done < each.material.trials_of; });
  return html_page(title,
                   (chapters.size() > 1 ? fmt::format("<nav aria-label=\"Contents\"><ul>\n{}</ul></nav>\n", contents) : "") +
                       fmt::format("<main>\n{}</main>\n", articles),
                   waits ? "<meta http-equiv=\"refresh\" content=\"10\">\n" : "", maps ? viewer_js : "");
}

}  // namespace heed
