/* What is to be moved, and how far it is, is kept in local memory (memory/kept.h). Each piece of a move can be
 * made again: its source stays as it is until it is written down that the piece was made. That is so where a piece
 * is no longer than the way that it goes; another is staged first, as many pieces of a few bytes would take long.
 *
 * Invariant: at any moment, to go on from what is written down leads to the same bytes and bits. */
#include "daemon/device/placement/move_bytes.h"

#include "daemon/device/reuse/overlap.h"
#include "daemon/device/tensors/changes.h"

_Static_assert((int)DEVICE_MOVES_MAX == (int)KEPT_MOVES_MAX, "each move of a step is kept");

/* How far a compaction is: bytes of one NPU of one move. In one word, so that it is written in one store. */
struct progress {
	uint64_t move, npu, done;
	bool staged; /* the piece behind `done` */
};

enum { NPU_BITS = 11, DONE_BITS = 31 };

static uint64_t pack(const struct progress *at)
{
	return ((at->move << NPU_BITS | at->npu) << DONE_BITS | at->done) << 1 | at->staged;
}

static struct progress unpack(uint64_t word)
{
	return (struct progress){word >> (1 + DONE_BITS + NPU_BITS),
				 word >> (1 + DONE_BITS) & ((UINT64_C(1) << NPU_BITS) - 1),
				 word >> 1 & ((UINT64_C(1) << DONE_BITS) - 1), word & 1};
}

static void note(struct device *device, const struct progress *at)
{
	kept_order();
	atomic_store_explicit(&device->local.kept->progress, pack(at), memory_order_relaxed);
	kept_order();
	device_give_way(device);
}

void move_bytes_note(struct device *device, const struct device_move *moves, unsigned n)
{
	struct kept *kept = device->local.kept;
	changes_tell_kept(device);
	kept->n_moves = 0;
	kept_order();
	for (unsigned i = 0; i < n; i++) {
		const struct tensor *tensor = moves[i].tensor;
		kept->moves[i] = (struct kept_move){tensor->handle, moves[i].from_offset, moves[i].to_offset,
						    moves[i].bytes_per_npu, !tensor->touched};
	}
	kept->progress = 0;
	kept_order();
	kept->n_moves = n;
}

static void move_lane(struct device *device, const struct kept_move *move, struct progress *at)
{
	struct local *local = &device->local;
	int64_t npu = (int64_t)at->npu, from = move->from_offset, to = move->to_offset,
		end = from + move->bytes_per_npu;
	changes_tell(device, npu, to, end - to);
	while ((int64_t)at->done < move->bytes_per_npu) {
		int64_t done = (int64_t)at->done, left = move->bytes_per_npu - done;
		int64_t piece = left < KEPT_STAGE_BYTES ? left : KEPT_STAGE_BYTES;
		if (piece > from - to && !at->staged) {
			local_stage(local, npu, from + done, piece);
			at->staged = true;
			note(device, at);
		}
		local_move_piece(local, npu, to + done, from + done, piece, at->staged);
		at->staged = false;
		at->done += (uint64_t)piece;
		note(device, at);
	}
	int64_t left = from > to + move->bytes_per_npu ? from : to + move->bytes_per_npu;
	local_forget_moved(local, npu, left, end - left);
}

static void forget(struct device *device, const struct kept_move *move)
{
	for (int64_t npu = 0; npu < device->options.geometry.n_npus; npu++)
		local_forget_moved(&device->local, npu, move->to_offset, move->bytes_per_npu);
}

/* Where something was lost it may have lain where a tensor without data goes, and not have made way: nobody is to
 * read its bytes there. */
static void compact(struct device *device, bool something_lost)
{
	struct kept *kept = device->local.kept;
	struct progress at = unpack(kept->progress);
	for (; at.move < kept->n_moves; at = (struct progress){.move = at.move + 1}) {
		const struct kept_move *move = &kept->moves[at.move];
		if (move->is_empty && something_lost)
			forget(device, move);
		while (!move->is_empty && at.npu < (uint64_t)device->options.geometry.n_npus) {
			move_lane(device, move, &at);
			at = (struct progress){.move = at.move, .npu = at.npu + 1};
			note(device, &at);
		}
	}
	kept_order();
	kept->n_moves = 0;
}

void device_compact_bytes(struct device *device)
{
	compact(device, false);
}

/* ---- after a restart ---- */

struct looking {
	const struct kept *kept;
	uint64_t i;
};

/* Who lies where a move comes from was moved there later. */
static bool is_moved_later(void *ctx, struct tensor *tensor)
{
	const struct looking *looking = ctx;
	for (uint64_t i = looking->i + 1; i < looking->kept->n_moves; i++)
		if (looking->kept->moves[i].handle == tensor->handle)
			return true;
	return false;
}

static bool can_go_on(const struct device *device, uint64_t i)
{
	const struct kept_move *move = &device->local.kept->moves[i];
	const struct tensor *tensor = device_find(device, move->handle);
	struct looking looking = {device->local.kept, i};
	return tensor && !tensor->base && tensor->place.offset == move->to_offset &&
	       tensor->place.bytes_per_npu == move->bytes_per_npu && move->from_offset > move->to_offset &&
	       move->from_offset <= device->options.geometry.npu_bytes - move->bytes_per_npu &&
	       !overlap_any(device, tensor) &&
	       overlap_each(device, move->from_offset, move->bytes_per_npu, tensor, is_moved_later, &looking);
}

void move_bytes_restore(struct device *device, bool something_lost)
{
	struct kept *kept = device->local.kept;
	if (kept->n_moves > KEPT_MOVES_MAX)
		kept->n_moves = 0;
	for (uint64_t i = kept->n_moves; i-- > 0;)
		if (!can_go_on(device, i))
			kept->moves[i] = (struct kept_move){.is_empty = true};
	compact(device, something_lost);
}
