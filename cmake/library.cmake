# The library (everything but the server, the hub and the command line), those, the program and its link `llm`.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/src/(cli|hub|serve)/")

# Sanitizers take minutes for such a file with all its loops unrolled.
set(kernels_level -O3)
# A tile's products are summed as they come, in registers: g++ would compute all of them first and spill them.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(kernels_level "-O3 -fno-tree-reassoc -fno-tree-ter")
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(kernels_level -O1)
endif()
# How src/math/kernels_TARGET.cc is compiled.
function(kvasir_kernels target flags)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/math/kernels_${target}.cc PROPERTIES
    COMPILE_FLAGS "${flags} ${ARGN} ${kernels_level}")
endfunction()
# One file per CPU target; everything else is built for the baseline so that an old CPU gets a sentence, not a SIGILL.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 "-mavx2 -mfma -mf16c -mbmi2")
  set(avx512 "${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512")
  kvasir_kernels(avx2 ${avx2})
  kvasir_kernels(avx2_vnni ${avx2} -mavxvnni)
  kvasir_kernels(avx512 ${avx512})
  kvasir_kernels(avx512_vnni ${avx512} -mavx512vnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  kvasir_kernels(neon "")
  kvasir_kernels(neon_dotprod -march=armv8.2-a+dotprod)
endif()

# Properties of every target that compiles the sources: the library, and the fuzz targets' own build of it.
function(kvasir_library_properties target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
  target_link_libraries(${target} PUBLIC Threads::Threads
    PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> PkgConfig::PCRE2 PkgConfig::XXHASH PkgConfig::URING PkgConfig::UTF8PROC sentencepiece)
endfunction()

# Reading the standard headers is half of a file's compilation, so up to eight files of a folder share it; files that
# fit EXCEPT are compiled one by one.
function(kvasir_group target sources except)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(FILTER sources EXCLUDE REGEX "${except}")
  set(last_folder "")
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT folder STREQUAL last_folder)
      set(count 0)
      set(last_folder ${folder})
    endif()
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${folder})
    string(REPLACE "/" "_" name ${name})
    math(EXPR number "${count} / 8")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${number})
  endforeach()
endfunction()

# Compiled once, for both libraries. The program and the tests link the static one.
add_library(kvasir_lib STATIC ${sources})
kvasir_library_properties(kvasir_lib)
set_target_properties(kvasir_lib PROPERTIES OUTPUT_NAME kvasir EXPORT_NAME kvasir_static
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(kvasir_lib PUBLIC $<INSTALL_INTERFACE:include>)
# Files that each register one thing of a kind use the same private names, and are compiled one by one.
kvasir_group(kvasir_lib "${sources}"
  "/(arch/families|engine/sampling|dtype|cache/layouts|chat/formats)/|/unused_[a-z]*\\.cc$|/math/kernels_")

# Only what carries KVASIR_API is seen from outside; kvasir.map hides the templates of others that were compiled here.
set(KVASIR_SHARED_DEFAULT ON)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(KVASIR_SHARED_DEFAULT OFF)
endif()
option(KVASIR_SHARED "The shared library beside the static one" ${KVASIR_SHARED_DEFAULT})
if(KVASIR_SHARED)
  add_library(kvasir_shared SHARED $<TARGET_OBJECTS:kvasir_lib>)
  kvasir_library_properties(kvasir_shared)
  set_target_properties(kvasir_shared PROPERTIES OUTPUT_NAME kvasir EXPORT_NAME kvasir LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/kvasir.map)
  target_include_directories(kvasir_shared PUBLIC $<INSTALL_INTERFACE:include>)
  target_link_options(kvasir_shared PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/kvasir.map -Wl,--no-undefined -Wl,--as-needed)
endif()

# The server is the program's, not the library's: who embeds the library gets no sockets. Nothing here is hot.
file(GLOB_RECURSE serve_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/serve/*.cc)
list(FILTER serve_sources EXCLUDE REGEX "_test\\.cc$")
include(cmake/page.cmake)
add_library(kvasir_serve STATIC ${serve_sources} ${PROJECT_BINARY_DIR}/generated/page.cc)
# Coroutines' frames have fields of private types, and g++ warns of them within an #include; translators share names.
kvasir_group(kvasir_serve "${serve_sources}" "/http/|/translate_responses\\.cc$")
target_include_directories(kvasir_serve PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
target_link_libraries(kvasir_serve PUBLIC kvasir_lib PRIVATE fmt::fmt nlohmann_json::nlohmann_json ${PROMETHEUS_CORE_LIBRARY})
target_compile_definitions(kvasir_serve PRIVATE BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED)
# The thread sanitizer does not follow Asio's fences, and g++ says so each time; what they order is under locks too.
set(serve_level -O1)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(serve_level -O0)  # halves the time of its headers
endif()
target_compile_options(kvasir_serve PRIVATE ${serve_level} "$<$<CXX_COMPILER_ID:GNU>:-fcoroutines;-Wno-tsan>")

# So is the hub: who embeds the library gets no requests to anywhere. libcurl is loaded by `kvasir pull` alone, as it
# brings twenty libraries along: only its header is needed here.
file(GLOB hub_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/hub/*.cc)
list(FILTER hub_sources EXCLUDE REGEX "_test\\.cc$")
add_library(kvasir_hub STATIC ${hub_sources})
kvasir_group(kvasir_hub "${hub_sources}" "^$")
target_include_directories(kvasir_hub PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR} ${CURL_INCLUDE_DIRS})
target_link_libraries(kvasir_hub PUBLIC kvasir_lib PkgConfig::NETTLE ${CMAKE_DL_LIBS} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
target_compile_options(kvasir_hub PRIVATE -O1)

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cc)
list(FILTER cli_sources EXCLUDE REGEX "_test\\.cc$")
add_executable(kvasir ${cli_sources})
target_include_directories(kvasir PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
target_link_libraries(kvasir PRIVATE kvasir_serve kvasir_hub kvasir_lib fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::EDIT)
# Option parsing and JSON: the optimiser's time buys nothing there, and under sanitizers their headers take five minutes.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(kvasir PRIVATE -O0 -fno-sanitize=undefined)
else()
  target_compile_options(kvasir PRIVATE -O1)
endif()
add_custom_command(TARGET kvasir POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink kvasir llm
  WORKING_DIRECTORY $<TARGET_FILE_DIR:kvasir>)
