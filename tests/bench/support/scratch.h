/* A directory of the bench's own, which goes with it. */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

enum { SCRATCH_PATH_BYTES = 108 };

/* The path of `name` (up to 64 bytes) in it; returns `path`. */
char *scratch_path(const char *name, char path[SCRATCH_PATH_BYTES]);

#endif
