# Registries are explicit lists made from file names: adding a file adds an entry (no self-registering statics).
# kvasir_registry(OUT GLOB...) writes generated/OUT.inc with one KVASIR_ENTRY(name) line per file.
function(kvasir_registry out glob)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${glob})
  list(SORT files)
  set(text "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    if(NOT name MATCHES "_test$" AND NOT name IN_LIST ARGN)
      string(APPEND text "KVASIR_ENTRY(${name})\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${out}.inc CONTENT "${text}" @ONLY)
endfunction()

kvasir_registry(codecs src/dtype/*.cc registry operands)
kvasir_registry(layouts src/cache/layouts/*.cc)
kvasir_registry(families src/arch/families/*.cc)
kvasir_registry(commands src/cli/cmd_*.cc)
