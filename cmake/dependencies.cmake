# All dependencies are Debian packages (scripts/packages.txt). libraries.cmake has those that the library links; here
# are header-only libraries and those of the program.
include(cmake/libraries.cmake)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(CURL REQUIRED libcurl>=7.85)  # only its header; the program loads the library on demand
# Not prometheus-cpp's own CMake package: it requires the libraries of its exposer (civetweb, curl, zlib).
find_library(PROMETHEUS_CORE_LIBRARY prometheus-cpp-core REQUIRED)
