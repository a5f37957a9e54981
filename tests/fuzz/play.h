/* An input of `request`, from its first byte on. */
#ifndef TESTS_FUZZ_PLAY_H
#define TESTS_FUZZ_PLAY_H

#include <stddef.h>
#include <stdint.h>

struct heap;
struct scene;

/* The scene that an input wants; `heap` as scene_new has it. */
struct scene *play_begin(const uint8_t *bytes, size_t n, const struct heap *heap);
/* All that happens in it. */
void play(struct scene *scene, const uint8_t *bytes, size_t n);

#endif
