# Flags that the Law depends on come first: no contraction, no fast-math (docs/numerics.md).
add_compile_options(-ffp-contract=off -fno-fast-math)
if(KVASIR_DEV)
  # Our asserts are compiled, fmt's are not: with them GCC 12 sees an overflow in it that is none.
  add_compile_options("-DFMT_ASSERT(condition,message)=static_cast<void>(0)")
  add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror)
endif()
