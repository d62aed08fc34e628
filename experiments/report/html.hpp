#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A text as HTML: what has a meaning there is escaped, in content and in quoted attributes alike, and bytes that
/// are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// A row of a table; the first cell heads it.
std::string html_row(std::vector<std::string> const& cells);

/// A table. Where the page is too narrow for them, a row of more than three cells stands as a list. `what` it shows is told to screen
/// readers; `body`: its rows.
std::string html_table(std::string const& what, std::vector<std::string> const& head, std::string const& body);

/// The styles of a page and the program of its viewer of attention maps; CMakeLists.txt makes them of page.css and viewer.js.
extern std::string_view const page_css;
extern std::string_view const viewer_js;

}  // namespace heed
