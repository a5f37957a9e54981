/* First the loops are made as few as possible: what touches on both sides is one block, what goes on evenly one
 * loop. Small blocks that touch along one loop here and along another there are transposed; all others are copied,
 * the loop innermost that has the smallest pitch on either side. Mostly that is the host's next feature, on the
 * next lane: features of a few bytes, whose lines there are shared, move up to 1.5 times as fast as lane by lane.
 */
#include "daemon/device/operations/move_box.h"

#include "daemon/device/least.h"

void move_box_init(struct move_box *box, uint8_t *to, const uint8_t *from, int64_t element_bytes)
{
	box->to = to;
	box->from = from;
	box->bytes = element_bytes;
	box->element_bytes = element_bytes;
	box->n_loops = 0;
}

void move_box_add(struct move_box *box, int64_t n, int64_t to_pitch, int64_t from_pitch)
{
	if (n == 1)
		return;
	box->n[box->n_loops] = n;
	box->to_pitch[box->n_loops] = to_pitch;
	box->from_pitch[box->n_loops++] = from_pitch;
}

static void swap_values(int64_t *a, int64_t *b)
{
	int64_t value = *a;
	*a = *b;
	*b = value;
}

static void swap_loops(struct move_box *box, unsigned a, unsigned b)
{
	swap_values(&box->n[a], &box->n[b]);
	swap_values(&box->to_pitch[a], &box->to_pitch[b]);
	swap_values(&box->from_pitch[a], &box->from_pitch[b]);
}

static void remove_loop(struct move_box *box, unsigned at)
{
	swap_loops(box, at, --box->n_loops);
}

static void touch(struct move_box *box)
{
	for (unsigned i = 0; i < box->n_loops;)
		if (box->to_pitch[i] == box->bytes && box->from_pitch[i] == box->bytes) {
			box->bytes *= box->n[i];
			remove_loop(box, i);
			i = 0;
		} else {
			i++;
		}
}

static bool goes_on(const struct move_box *box, unsigned inner, unsigned outer)
{
	return inner != outer && box->to_pitch[outer] == box->n[inner] * box->to_pitch[inner] &&
	       box->from_pitch[outer] == box->n[inner] * box->from_pitch[inner];
}

static bool join_one(struct move_box *box)
{
	for (unsigned inner = 0; inner < box->n_loops; inner++)
		for (unsigned outer = 0; outer < box->n_loops; outer++)
			if (goes_on(box, inner, outer)) {
				box->n[inner] *= box->n[outer];
				remove_loop(box, outer);
				return true;
			}
	return false;
}

static int64_t pitch_of(const struct move_box *box, unsigned i)
{
	return box->to_pitch[i] < box->from_pitch[i] ? box->to_pitch[i] : box->from_pitch[i];
}

static void sort_loops(struct move_box *box, unsigned first)
{
	for (unsigned i = first; i < box->n_loops; i++)
		for (unsigned k = i; k > first && pitch_of(box, k) < pitch_of(box, k - 1); k--)
			swap_loops(box, k, k - 1);
}

/* Brings the loops that touch to the front: that of `to` first. False where there are no two of them. */
static bool find_transpose(struct move_box *box)
{
	unsigned to = 0, from = 0;
	if (box->bytes > BLOCKS_TRANSPOSE_BYTES_MAX || (box->bytes & (box->bytes - 1)))
		return false;
	while (to < box->n_loops && box->to_pitch[to] != box->bytes)
		to++;
	while (from < box->n_loops && box->from_pitch[from] != box->bytes)
		from++;
	if (to == box->n_loops || from == box->n_loops)
		return false;
	swap_loops(box, 0, to);
	if (from == 0)
		from = to;
	swap_loops(box, 1, from);
	return true;
}

struct run {
	move_box_act *act;
	void *ctx;
	struct move_watch *watch;
	int64_t *done, most;
	int64_t element_bytes, piece; /* of a piece: bytes */
	bool is_transpose;
};

static bool run_piece(const struct run *run, uint8_t *to, const uint8_t *from, const struct blocks *piece)
{
	int64_t elements = piece->n[0] * piece->n[1] * piece->bytes / run->element_bytes;
	run->act(run->ctx, to, from, piece, run->is_transpose);
	*run->done += elements;
	return move_watch_look(run->watch, elements) && *run->done < run->most;
}

/* Blocks of which one is more than a piece. */
static bool run_long(const struct run *run, uint8_t *to, const uint8_t *from, int64_t bytes)
{
	struct run parts = *run;
	parts.is_transpose = false;
	for (int64_t at = 0; at < bytes; at += run->piece) {
		struct blocks one = {least(run->piece, bytes - at), {1, 1}, {0, 0}, {0, 0}};
		if (!run_piece(&parts, to + at, from + at, &one))
			return false;
	}
	return true;
}

/* Blocks of the two inner loops, cut along both. */
static bool run_plane(const struct run *run, uint8_t *to, const uint8_t *from, const struct blocks *all)
{
	/* Of a transpose some cache lines in both directions. */
	enum { TRANSPOSE_COLUMNS = 64 };
	int64_t most = run->piece / all->bytes, n_1 = 1, n_0;
	if (run->is_transpose && most)
		n_1 = least(least(all->n[1], TRANSPOSE_COLUMNS), most);
	n_0 = least(all->n[0], most / n_1);
	if (n_0 == all->n[0])
		n_1 = least(all->n[1], most / n_0);
	for (int64_t j = 0; j < all->n[1]; j += n_1)
		for (int64_t i = 0; i < all->n[0]; i += n_0 ? n_0 : 1) {
			struct blocks some = *all;
			uint8_t *t = to + i * all->to_pitch[0] + j * all->to_pitch[1];
			const uint8_t *f = from + i * all->from_pitch[0] + j * all->from_pitch[1];
			some.n[0] = least(n_0, all->n[0] - i);
			some.n[1] = least(n_1, all->n[1] - j);
			if (!(n_0 ? run_piece(run, t, f, &some) : run_long(run, t, f, all->bytes)))
				return false;
		}
	return true;
}

static bool run_outer(const struct run *run, const struct move_box *box, const struct blocks *plane)
{
	int64_t at[MOVE_BOX_LOOPS_MAX] = {0}, to = 0, from = 0;
	unsigned i;
	do {
		if (!run_plane(run, box->to + to, box->from + from, plane))
			return false;
		for (i = 2; i < box->n_loops; i++) {
			to += box->to_pitch[i];
			from += box->from_pitch[i];
			if (++at[i] < box->n[i])
				break;
			to -= box->n[i] * box->to_pitch[i];
			from -= box->n[i] * box->from_pitch[i];
			at[i] = 0;
		}
	} while (i < box->n_loops);
	return true;
}

/* Of blocks that are long a line takes about as long as an element of others. */
static int64_t piece_bytes(const struct move_box *box, const struct move_watch *watch)
{
	enum { LINE_BYTES = 64, PIECE_BYTES = 256 << 10 };
	if (box->bytes >= LINE_BYTES && !move_watch_is_own(watch))
		return PIECE_BYTES;
	return move_watch_piece(watch) * box->element_bytes;
}

bool move_box_run(struct move_box *box, move_box_act *act, void *ctx, struct move_watch *watch, int64_t *done,
		  int64_t most)
{
	struct run run = {act, ctx, watch, done, most, box->element_bytes, 0, false};
	touch(box);
	while (join_one(box))
		;
	run.is_transpose = find_transpose(box);
	sort_loops(box, run.is_transpose ? 2 : 0);
	run.piece = piece_bytes(box, watch);
	struct blocks plane = {box->bytes, {1, 1}, {0, 0}, {0, 0}};
	for (unsigned i = 0; i < box->n_loops && i < 2; i++) {
		plane.n[i] = box->n[i];
		plane.to_pitch[i] = box->to_pitch[i];
		plane.from_pitch[i] = box->from_pitch[i];
	}
	return run_outer(&run, box, &plane);
}

void move_box_fill(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose)
{
	const struct move_box_fill *fill = ctx;
	(void)from;
	(void)is_transpose;
	fill->paths->fill(to, blocks, fill->pattern);
}

void move_box_copy(void *ctx, uint8_t *to, const uint8_t *from, const struct blocks *blocks, bool is_transpose)
{
	const struct blocks_paths *paths = ctx;
	(is_transpose ? paths->transpose : paths->copy)(to, from, blocks);
}
