// The page of the server: the file that web/ builds, as the build puts it into the program (cmake/page.cmake).
#pragma once

#include <string_view>

namespace kvasir::serve {

extern const std::string_view kPage;        ///< HTML with scripts and styles inline
extern const std::string_view kPageTag;     ///< its ETag, quotes included
extern const std::string_view kPagePolicy;  ///< its Content-Security-Policy

}  // namespace kvasir::serve
