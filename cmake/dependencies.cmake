# Everything comes from Debian packages (scripts/packages.txt). What the library links is in libraries.cmake; here are
# header-only libraries and those of the program.
include(cmake/libraries.cmake)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
# Its own CMake package asks for what its exposer needs: civetweb, curl, zlib.
find_library(PROMETHEUS_CORE_LIBRARY prometheus-cpp-core REQUIRED)
