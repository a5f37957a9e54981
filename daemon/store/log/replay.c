/* Applies the rounds to the files in order, as long as each is whole and of the same process as the first.
 * Applying all or some of them twice does no harm. */
#include <errno.h>
#include <zlib.h>

#include "daemon/store/files/calls.h"
#include "daemon/store/log/log.h"
#include "daemon/store/opening.h"

struct replay {
	struct opening *opening;
	uint8_t *round; /* with its head */
	uint64_t room;
	uint64_t at, seq; /* of the next round, in the log */
	unsigned n;
	bool has_begun; /* the first round was begun */
	bool is_changed[FORMAT_FILES];
};

static int fd_of(const struct replay *replay, unsigned file)
{
	return replay->opening->store->fds[file];
}

static int grow_round(struct replay *replay, uint64_t bytes)
{
	const struct heap *heap = replay->opening->options->heap;

	if (bytes <= replay->room)
		return 0;
	heap_free(heap, replay->round);
	replay->room = 0;
	replay->round = heap_alloc(heap, bytes);
	if (!replay->round)
		return -ENOMEM;
	replay->room = bytes;
	return 0;
}

/* As earlier versions of npumemd wrote it: CRC-32 of all but itself. */
static uint64_t sum_of_version_2(const struct format_log *head)
{
	enum { OFF = offsetof(struct format_log, sum) + sizeof(uint32_t) };
	uLong crc = crc32_z(crc32_z(0, (const uint8_t *)head, OFF), (const uint8_t *)(head + 1),
			    head->bytes - sizeof(*head));

	return (uint64_t)crc << 32;
}

/* 1: there is a round; 0: there is none; -errno. */
static int read_round(struct replay *replay)
{
	const struct opening *opening = replay->opening;
	uint64_t most = opening->bytes[FORMAT_JOURNAL] - FORMAT_RECORDS_OFF;
	struct format_log head;

	if (replay->at + sizeof(head) > most)
		return 0;
	int64_t n = calls_read(opening->options->hooks, fd_of(replay, FORMAT_JOURNAL), &head, sizeof(head),
			       FORMAT_RECORDS_OFF + replay->at);
	if (n < 0)
		return (int)n;
	replay->has_begun = replay->has_begun || (!replay->at && head.magic == FORMAT_LOG_MAGIC);
	if (head.magic != FORMAT_LOG_MAGIC || head.bytes < sizeof(head) || head.bytes > most - replay->at ||
	    (replay->n && head.seq != replay->seq))
		return 0;
	int status = grow_round(replay, head.bytes);
	if (status)
		return status;
	n = calls_read(opening->options->hooks, fd_of(replay, FORMAT_JOURNAL), replay->round, head.bytes,
		       FORMAT_RECORDS_OFF + replay->at);
	if (n < 0)
		return (int)n;
	const struct format_log *round = (const struct format_log *)(void *)replay->round;
	return round->sum == (opening->version == 2 ? sum_of_version_2(round) : log_sum(round));
}

/* A table's file may be shorter than the table was. */
static int apply_change(struct replay *replay, const struct format_change *change)
{
	struct opening *opening = replay->opening;
	uint64_t end = change->off + change->bytes, *bytes = &opening->bytes[change->file];
	int status = 0;

	if (end > *bytes)
		status = calls_allocate(opening->options->hooks, fd_of(replay, change->file), *bytes, end);
	if (status)
		return status;
	*bytes = end > *bytes ? end : *bytes;
	replay->is_changed[change->file] = true;
	return calls_write(opening->options->hooks, fd_of(replay, change->file), change->data, change->bytes,
			   change->off);
}

static int apply_round(struct replay *replay)
{
	const struct format_log *head = (const struct format_log *)(void *)replay->round;
	int status = 0;

	for (uint64_t at = sizeof(*head); !status && at + sizeof(struct format_change) <= head->bytes;) {
		const struct format_change *change = (const struct format_change *)(void *)(replay->round + at);
		if (change->file >= FORMAT_FILES || change->bytes > head->bytes - at - sizeof(*change))
			return -EINVAL;
		status = apply_change(replay, change);
		at += sizeof(*change) + ((change->bytes + UINT64_C(7)) & ~UINT64_C(7));
	}
	replay->seq = head->seq + 1;
	replay->at += head->bytes;
	replay->n++;
	return status;
}

static int finish(struct replay *replay)
{
	static const struct format_log none;
	const struct store_hooks *hooks = replay->opening->options->hooks;
	int status = 0;

	for (unsigned file = 0; !status && file < FORMAT_FILES; file++)
		if (replay->is_changed[file])
			status = calls_sync(hooks, fd_of(replay, file));
	if (!status)
		status =
			calls_write(hooks, fd_of(replay, FORMAT_JOURNAL), &none, sizeof(none), FORMAT_RECORDS_OFF);
	return status ? status : calls_sync(hooks, fd_of(replay, FORMAT_JOURNAL));
}

int log_replay(struct opening *opening)
{
	struct replay replay = {.opening = opening};
	int status = opening->bytes[FORMAT_JOURNAL] > FORMAT_RECORDS_OFF ? read_round(&replay) : 0;

	while (status > 0) {
		status = apply_round(&replay);
		if (!status)
			status = read_round(&replay);
	}
	heap_free(opening->options->heap, replay.round);
	/* If the first round is not whole, it was never synced, and none of it is in the files. */
	if (!status && replay.has_begun)
		status = finish(&replay);
	if (status == -EINVAL)
		return opening_judge(opening, FORMAT_JOURNAL, STORE_DAMAGED,
				     "is damaged: a change in its log is wrong");
	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "its log cannot be replayed: %s",
				      strerror(-status));
	return 0;
}
