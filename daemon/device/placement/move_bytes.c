/* What is to be moved, and how far it is, is kept in local memory (memory/kept.h). Each piece of a move can be
 * made again: its source stays as it is until it is written down that the piece was made. That is so where a piece
 * is no longer than the way that it goes; another is staged first, as many pieces of a few bytes would take long.
 *
 * Invariant: at any moment, to go on from what is written down leads to the same bytes and bits.
 *
 * Both words have a checksum, of the moves and of the position: a bit that flips in them would have other tensors'
 * bytes moved. A word of 0 says that no compaction is under way. */
#include "daemon/device/placement/move_bytes.h"

#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/tensors/changes.h"

_Static_assert((int)DEVICE_MOVES_MAX == (int)KEPT_MOVES_MAX, "each move of a step is kept");

/* How far a compaction is: bytes of one NPU of one move. In one word, so that it is written in one store. */
struct progress {
	uint64_t move, npu, done;
	bool staged; /* the piece behind `done` */
};

enum { NPU_BITS = 11, DONE_BITS = 31, MOVE_BITS = 7, POSITION_BITS = MOVE_BITS + NPU_BITS + DONE_BITS + 1 };

_Static_assert(KEPT_MOVES_MAX <= 1 << MOVE_BITS, "a move's number fits");

uint64_t move_bytes_position_word(uint64_t position)
{
	enum { CHECK_BITS = 64 - POSITION_BITS, NOT_ZERO = 0x2a5d };
	uint64_t check = NOT_ZERO;

	position &= (UINT64_C(1) << POSITION_BITS) - 1;
	for (uint64_t rest = position; rest; rest >>= CHECK_BITS)
		check ^= rest & ((1 << CHECK_BITS) - 1);
	return check << POSITION_BITS | position;
}

uint64_t move_bytes_moves_word(const struct kept_move *moves, uint64_t n)
{
	const uint64_t FNV_BASIS = UINT64_C(0xcbf29ce484222325), FNV_PRIME = UINT64_C(0x100000001b3);
	uint64_t sum = (FNV_BASIS ^ n) * FNV_PRIME;

	for (uint64_t i = 0; i < n; i++) {
		const struct kept_move *m = &moves[i];
		const uint64_t words[] = {m->handle, (uint64_t)m->from_offset, (uint64_t)m->to_offset,
					  (uint64_t)m->bytes_per_npu, m->is_empty};
		for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			sum = (sum ^ words[k]) * FNV_PRIME;
	}
	return n ? n << 32 | (uint32_t)(sum ^ sum >> 32) | 1 : 0;
}

static uint64_t n_moves(const struct kept *kept)
{
	return kept->n_moves >> 32;
}

static uint64_t pack(const struct progress *at)
{
	return move_bytes_position_word(((at->move << NPU_BITS | at->npu) << DONE_BITS | at->done) << 1 |
					at->staged);
}

static struct progress unpack(uint64_t word)
{
	return (struct progress){word >> (1 + DONE_BITS + NPU_BITS) & ((1 << MOVE_BITS) - 1),
				 word >> (1 + DONE_BITS) & ((UINT64_C(1) << NPU_BITS) - 1),
				 word >> 1 & ((UINT64_C(1) << DONE_BITS) - 1), word & 1};
}

static void note(struct device *device, const struct progress *at)
{
	kept_order();
	atomic_store_explicit(&device->local.kept->progress, pack(at), memory_order_relaxed);
	kept_order();
	changes_made_kept(device, &device->local.kept->progress, sizeof(device->local.kept->progress));
	device_give_way(device);
}

static void set_n_moves(struct device *device, uint64_t n)
{
	struct kept *kept = device->local.kept;
	kept_order();
	kept->n_moves = move_bytes_moves_word(kept->moves, n);
	kept_order();
	changes_made_kept(device, &kept->n_moves, sizeof(kept->n_moves));
}

void move_bytes_note(struct device *device, const struct device_move *moves, unsigned n)
{
	struct kept *kept = device->local.kept;
	changes_tell_kept(device);
	set_n_moves(device, 0);
	for (unsigned i = 0; i < n; i++) {
		const struct tensor *tensor = moves[i].tensor;
		kept->moves[i] = (struct kept_move){tensor->handle, moves[i].from_offset, moves[i].to_offset,
						    moves[i].bytes_per_npu, !tensor->touched};
	}
	kept->progress = pack(&(struct progress){.move = 0});
	changes_made_kept(device, &kept->progress, sizeof(kept->progress));
	changes_made_kept(device, kept->moves, n * sizeof(kept->moves[0]));
	set_n_moves(device, n);
}

static void stage_made(const struct device *device, int64_t bytes)
{
	const struct kept *kept = device->local.kept;
	size_t bits = (size_t)(bytes + 63) / 64 * sizeof(uint64_t);
	changes_made_kept(device, kept->stage, (size_t)bytes);
	changes_made_kept(device, kept->stage_written, bits);
	if (kept->may_be_damaged)
		changes_made_kept(device, kept->stage_damaged, bits);
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
			stage_made(device, piece);
			at->staged = true;
			note(device, at);
		}
		local_move_piece(local, npu, to + done, from + done, piece, at->staged);
		changes_made(device, npu, to + done, piece);
		at->staged = false;
		at->done += (uint64_t)piece;
		note(device, at);
	}
	int64_t left = from > to + move->bytes_per_npu ? from : to + move->bytes_per_npu;
	local_forget_moved(local, npu, left, end - left);
	changes_made(device, npu, left, end - left);
}

static void forget(struct device *device, const struct kept_move *move)
{
	for (int64_t npu = 0; npu < device->options.geometry.n_npus; npu++) {
		local_forget_moved(&device->local, npu, move->to_offset, move->bytes_per_npu);
		changes_made(device, npu, move->to_offset, move->bytes_per_npu);
	}
}

/* Where something was lost it may have lain where a tensor without data goes, and not have made way: nobody is to
 * read its bytes there. */
static void compact(struct device *device, bool something_lost, const bool *is_left_out)
{
	struct kept *kept = device->local.kept;
	struct progress at = unpack(kept->progress);
	for (; at.move < n_moves(kept); at = (struct progress){.move = at.move + 1}) {
		const struct kept_move *move = &kept->moves[at.move];
		if (is_left_out && is_left_out[at.move])
			continue;
		if (move->is_empty && something_lost)
			forget(device, move);
		while (!move->is_empty && at.npu < (uint64_t)device->options.geometry.n_npus) {
			move_lane(device, move, &at);
			at = (struct progress){.move = at.move, .npu = at.npu + 1};
			note(device, &at);
		}
	}
	set_n_moves(device, 0);
}

void device_compact_bytes(struct device *device)
{
	compact(device, false, NULL);
}

/* ---- after a restart ---- */

struct looking {
	const struct kept *kept;
	const bool *is_left_out;
	uint64_t i;
};

/* A tensor that lies where a move comes from was moved there later. */
static bool is_moved_later(void *ctx, struct tensor *tensor)
{
	const struct looking *looking = ctx;
	for (uint64_t i = looking->i + 1; i < n_moves(looking->kept); i++)
		if (!looking->is_left_out[i] && looking->kept->moves[i].handle == tensor->handle)
			return true;
	return false;
}

static bool can_go_on(const struct device *device, uint64_t i, const bool *is_left_out)
{
	const struct kept_move *move = &device->local.kept->moves[i];
	const struct tensor *tensor = device_find(device, move->handle);
	struct looking looking = {device->local.kept, is_left_out, i};
	return tensor && !tensor->base && tensor_offset(tensor) == move->to_offset &&
	       tensor_bytes_per_npu(tensor) == move->bytes_per_npu && move->from_offset > move->to_offset &&
	       move->from_offset <= device->options.geometry.npu_bytes - move->bytes_per_npu &&
	       !overlap_any(device, tensor) &&
	       overlap_each(device, move->from_offset, move->bytes_per_npu, tensor, is_moved_later, &looking);
}

bool device_compaction_is_sound(const struct device *device)
{
	const struct kept *kept = device->local.kept;
	uint64_t n = n_moves(kept);
	return !kept->n_moves || (n <= KEPT_MOVES_MAX && kept->n_moves == move_bytes_moves_word(kept->moves, n) &&
				  kept->progress == move_bytes_position_word(kept->progress));
}

void move_bytes_restore(struct device *device, bool something_lost)
{
	struct kept *kept = device->local.kept;
	uint64_t n = device_compaction_is_sound(device) ? n_moves(kept) : 0;
	bool is_left_out[KEPT_MOVES_MAX] = {false};
	for (uint64_t i = n; i-- > 0;)
		is_left_out[i] = !can_go_on(device, i, is_left_out);
	if (!n)
		set_n_moves(device, 0);
	compact(device, something_lost, is_left_out);
}
