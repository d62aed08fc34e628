#include "experiments/report/html.hpp"

#include <utility>

#include <fmt/format.h>

#include "nn/files/utf8.hpp"

namespace heed {

std::string escape(std::string_view text) {
  auto html = isolated(text);
  for (auto const& [sign, name] : {std::pair("&", "&amp;"), {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}})
    replace_all(html, sign, name);
  return html;
}

std::string html_table(std::string const& what, TableRows const& rows,
                       std::function<std::string(std::size_t row, std::size_t column)> const& kind) {
  if (rows.size() < 2) return "";
  auto const& head = rows.front();
  std::string html =
      fmt::format("<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table{1}>\n<thead><tr>", escape(what),
                  head.size() > 8   ? " class=\"wide\""
                  : head.size() > 3 ? " class=\"many\""
                                    : "");
  for (auto const& cell : head) html += fmt::format("<th scope=\"col\">{}</th>", escape(cell));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 1; i < rows.size(); ++i) {
    html += "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      auto const of = kind ? kind(i, k) : "";
      html +=
          fmt::format("<{0} data-column=\"{1}\"{2}>{3}</{4}>", k == 0 ? "th scope=\"row\"" : "td", k < head.size() ? escape(head[k]) : "",
                      of.empty() ? "" : fmt::format(" class=\"{}\"", of), escape(rows[i][k]), k == 0 ? "th" : "td");
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
