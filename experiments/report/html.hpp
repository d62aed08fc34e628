#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Escapes a text for HTML content and quoted attributes, isolated (nn/files/utf8.hpp); bytes that are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// A table row whose first cell is a header.
std::string html_row(std::vector<std::string> const& cells);

/// A table. On narrow pages a row of more than three cells becomes a list. `what`: description for screen readers; `body`: its rows.
std::string html_table(std::string const& what, std::vector<std::string> const& head, std::string const& body);

/// The page's style sheet and the script of the attention map viewer; CMakeLists.txt makes them from page.css and viewer.js.
extern std::string_view const page_css;
extern std::string_view const viewer_js;

}  // namespace heed
