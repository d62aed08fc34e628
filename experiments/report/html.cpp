#include "experiments/report/html.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nn/files/utf8.hpp"

namespace heed {

std::string escape(std::string_view text) {
  auto html = isolated(text);
  for (auto const& [sign, name] : {std::pair("&", "&amp;"), {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}})
    replace_all(html, sign, name);
  return html;
}

namespace {

/// The columns, beside the first, that have a long cell with letters other than the e of a number.
std::vector<bool> columns_of_text(TableRows const& rows) {
  constexpr std::size_t longest = 20;
  std::vector<bool> of_text(rows.front().size());
  for (std::size_t i = 1; i < rows.size(); ++i)
    for (std::size_t k = 1; k < std::min(rows[i].size(), of_text.size()); ++k)
      of_text[k] =
          of_text[k] || (columns(rows[i][k]) > longest && rows[i][k].find_first_of("abcdfghijklmnopqrstuvwxyz") != std::string::npos);
  return of_text;
}

}  // namespace

std::string html_table(std::string const& what, TableRows const& rows,
                       std::function<std::string(std::size_t row, std::size_t column)> const& kind) {
  if (rows.size() < 2) return "";
  auto const& head = rows.front();
  auto const of_text = columns_of_text(rows);
  std::string html =
      fmt::format("<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table{1}>\n<thead><tr>", escape(what),
                  head.size() > 8   ? " class=\"wide\""
                  : head.size() > 3 ? " class=\"many\""
                                    : "");
  for (std::size_t k = 0; k < head.size(); ++k) {
    char const* const of = of_text[k] ? " class=\"text\"" : kind && kind(1, k).starts_with("text") ? " class=\"left\"" : "";
    html += fmt::format("<th scope=\"col\"{}>{}</th>", of, escape(head[k]));
  }
  html += "</tr></thead>\n<tbody>\n";
  std::string heading;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    html += "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      auto of = kind ? kind(i, k) : "";
      if (of.empty() && k < head.size() && of_text[k]) of = "text";
      if (k == 0 && !rows[i][k].empty()) heading = fmt::format(" data-row=\"{}\"", escape(rows[i][k]));
      html += fmt::format("<{0} data-column=\"{1}\"{2}{3}>{4}</{5}>", k == 0 ? "th scope=\"row\"" : "td",
                          k < head.size() ? escape(head[k]) : "", of.empty() ? "" : fmt::format(" class=\"{}\"", of),
                          k == 0 && rows[i][k].empty() ? heading : "", escape(rows[i][k]), k == 0 ? "th" : "td");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_page(std::string const& title, std::string const& body, std::string const& more, std::string_view script) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; {}style-src 'unsafe-inline'; img-src data:\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n{}<title>{} – heed</title>\n<style>\n{}</style>\n</head>\n<body>\n{}{}</body>\n</html>\n",
      script.empty() ? "" : "script-src 'unsafe-inline'; ", more, title, page_css, body,
      script.empty() ? "" : fmt::format("<script>\n{}</script>\n", script));
}

}  // namespace heed
