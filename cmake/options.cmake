# Flags that the Law depends on come first: no contraction, no fast-math (docs/numerics.md).
add_compile_options(-ffp-contract=off -fno-fast-math)
if(KVASIR_DEV)
  add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror)
  # Where assertions are on, GCC 12 sees an overflow behind those of fmt 9 (its bug); ours stay on.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-DFMT_ASSERT(condition,message)=((void)0)>")
endif()
