// Macros for clang's thread safety analysis, which scripts/check_threads.sh runs; empty for other compilers.
// Source: clang.llvm.org/docs/ThreadSafetyAnalysis.html.
#pragma once

#if defined(__clang__)
#define KVASIR_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define KVASIR_THREAD_ATTRIBUTE(x)
#endif

/// This variable is read and written only with the mutex held.
#define KVASIR_GUARDED_BY(mutex) KVASIR_THREAD_ATTRIBUTE(guarded_by(mutex))
/// This function is called with the mutex held (REQUIRES), or without it (EXCLUDES).
#define KVASIR_REQUIRES(mutex) KVASIR_THREAD_ATTRIBUTE(requires_capability(mutex))
#define KVASIR_EXCLUDES(mutex) KVASIR_THREAD_ATTRIBUTE(locks_excluded(mutex))

// Used by base/mutex.h.
#define KVASIR_CAPABILITY(name) KVASIR_THREAD_ATTRIBUTE(capability(name))
#define KVASIR_SCOPED_CAPABILITY KVASIR_THREAD_ATTRIBUTE(scoped_lockable)
#define KVASIR_ACQUIRE(...) KVASIR_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define KVASIR_RELEASE(...) KVASIR_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
