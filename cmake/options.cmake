# Flags that the Law depends on come first: no contraction, no fast-math (docs/numerics.md).
add_compile_options(-ffp-contract=off -fno-fast-math)
if(KVASIR_DEV)
  add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror)
endif()
