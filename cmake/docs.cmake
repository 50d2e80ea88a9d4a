# Tests of the pages (their commands run, docs/cli.md is what the program prints, they build as a site) and of a release.
add_test(NAME docs.commands COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/docs/doc_test.py
  --program $<TARGET_FILE:kvasir>)
set_tests_properties(docs.commands PROPERTIES LABELS slow TIMEOUT 600
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
add_test(NAME docs.cli_page COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/scripts/make_cli_page.py
  --program $<TARGET_FILE:kvasir> --check)
add_test(NAME docs.release COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/docs/release_test.py)
add_test(NAME docs.site COMMAND ${PROJECT_SOURCE_DIR}/scripts/site ${CMAKE_BINARY_DIR}/site)
set_tests_properties(docs.cli_page docs.release docs.site PROPERTIES LABELS fast TIMEOUT 60
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
