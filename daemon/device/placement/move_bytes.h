/* The bytes of a compaction's tensors, moved so that it can be gone on with wherever it was stopped. */
#ifndef DEVICE_MOVE_BYTES_H
#define DEVICE_MOVE_BYTES_H

#include "daemon/device/internal.h"

/* Writes down what is to be moved, in place of what was: up to DEVICE_MOVES_MAX, in order of offset. Nothing that
 * a move writes over is still to be moved by a later one. */
void move_bytes_note(struct device *device, const struct device_move *moves, unsigned n);

/* When all tensors were restored: goes on with what was written down and is not done, of tensors that lie where it
 * would take them. Whatever was written down, no other tensor's bytes change. With something_lost, what a lost one
 * has left where a tensor without data goes is forgotten. */
void move_bytes_restore(struct device *device, bool something_lost);

/* The words of kept.h, of a position and of n moves, each with a checksum: what they are made of is sound where it
 * has the word that is kept. */
uint64_t move_bytes_position_word(uint64_t position);
uint64_t move_bytes_moves_word(const struct kept_move *moves, uint64_t n);

#endif
