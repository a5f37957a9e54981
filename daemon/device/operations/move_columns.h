/* Moves between matrices whose channels have other widths, and between a matrix and a tensor of a channel for each
 * column: row by row and column by column the same elements, but no common channels. */
#ifndef DEVICE_MOVE_COLUMNS_H
#define DEVICE_MOVE_COLUMNS_H

#include "daemon/device/memory/local.h"
#include "daemon/device/operations/move_watch.h"

/* All elements, dummies and marks aside. As move_within. */
bool move_columns(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
		  struct move_watch *watch);

#endif
