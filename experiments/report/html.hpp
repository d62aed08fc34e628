#pragma once

#include <string>
#include <string_view>

namespace heed {

/// A text as HTML: what has a meaning there is escaped, in content and in quoted attributes alike, and bytes that
/// are not UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// The styles of a page and the program of its viewer of attention maps; CMakeLists.txt makes them of page.css and viewer.js.
extern std::string_view const page_css;
extern std::string_view const viewer_js;

}  // namespace heed
