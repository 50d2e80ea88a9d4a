# Everything comes from Debian packages (scripts/packages.txt). The library links those of libraries.cmake; this file
# finds header-only libraries and those of the program.
include(cmake/libraries.cmake)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(CURL REQUIRED libcurl>=7.85)  # its header; the program loads the library when it is needed
# prometheus-cpp's own CMake package asks for what its exposer needs: civetweb, curl, zlib.
find_library(PROMETHEUS_CORE_LIBRARY prometheus-cpp-core REQUIRED)
