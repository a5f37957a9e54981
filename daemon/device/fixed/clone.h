/* Functions over rows in two versions of one source: for every x86-64 and for those with AVX2, chosen when the
 * program starts. Integers give the same bits in both. Elsewhere, and under sanitizers, which start after that
 * choice, there is one version. */
#ifndef DEVICE_FIXED_CLONE_H
#define DEVICE_FIXED_CLONE_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&                  \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONE __attribute__((target_clones("avx2", "default")))
#else
#define CLONE
#endif

/* What such a function calls has to become part of it. */
#define CLONE_PART static inline __attribute__((always_inline))

#endif
