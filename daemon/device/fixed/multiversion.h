/* Functions over rows in two versions of one source: for every x86-64 and for those with AVX2, chosen when the
 * program starts. Integers give the same bits in both. Elsewhere, and under sanitizers, which start after that
 * choice, there is one version. */
#ifndef DEVICE_MULTIVERSION_H
#define DEVICE_MULTIVERSION_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&                  \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MULTIVERSION __attribute__((target_clones("avx2", "default")))
#else
#define MULTIVERSION
#endif

/* What such a function calls has to become part of it. */
#define MULTIVERSION_PART static inline __attribute__((always_inline))

#endif
