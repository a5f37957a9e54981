/* Items and whose they are. Invariant: both follow from the items, their costs and the number of shards alone, so
 * that every shard comes to the same by itself, and that each item is one shard's. */
#include "client/ctl/core/sweep/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

#define SWEEP_COST_MAX 1e9 /* seconds; so that sums of them stay finite */

/* FNV-1a, whose figures these are. */
static uint64_t mixed(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void sweep_init(struct sweep *sweep, const char *command)
{
	*sweep = (struct sweep){
		.command = command, .shard = 1, .n_shards = 1, .content = UINT64_C(0xcbf29ce484222325)};
	sweep_mix(sweep, command, strlen(command) + 1);
}

int sweep_shard(struct sweep *sweep, const char *text, struct npumem_error *error)
{
	const char *slash = strchr(text, '/');
	char first[24] = "";
	int64_t at = 0, n = 0;
	if (slash && slash - text < (ptrdiff_t)sizeof(first))
		memcpy(first, text, (size_t)(slash - text));
	if (!slash || !numbers_integer(first, &at) || !numbers_integer(slash + 1, &n) || at < 1 || at > n ||
	    n > SWEEP_SHARDS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"--shard \"%.40s\" is not I/N with 1 <= I <= N <= %d", text,
					SWEEP_SHARDS_MAX);
	sweep->shard = (unsigned)at;
	sweep->n_shards = (unsigned)n;
	sweep->is_shared = true;
	return 0;
}

/* A path may have bytes that are no text. */
static void to_json_text(char *name)
{
	json_t *text = json_string(name);
	for (; !text && *name; name++)
		if ((unsigned char)*name >= 0x80)
			*name = '?';
	json_decref(text);
}

void sweep_add(struct sweep *sweep, const char *name)
{
	struct sweep_item *item = memory_grow(&sweep->items, sweep->n++, sizeof(*item));
	*item = (struct sweep_item){.name = memory_text("%s", name), .cost = 1};
	to_json_text(item->name);
	sweep_mix(sweep, name, strlen(name) + 1);
}

void sweep_mix(struct sweep *sweep, const void *bytes, size_t n)
{
	sweep->content = mixed(sweep->content, bytes, n);
}

int sweep_mix_file(struct sweep *sweep, const char *path, struct npumem_error *error)
{
	unsigned char buffer[16384];
	struct stat status;
	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return 0;
	FILE *file = fopen(path, "r");
	size_t n;
	while (file && (n = fread(buffer, 1, sizeof(buffer), file)))
		sweep_mix(sweep, buffer, n);
	int err = errno;
	bool bad = !file || ferror(file);
	if (file)
		fclose(file);
	return bad ? npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(err)) : 0;
}

/* ---- costs ---- */

/* name: seconds. NULL: `error` says why. */
static json_t *costs_read(const char *path, struct npumem_error *error)
{
	json_error_t why;
	json_t *report = json_load_file(path, 0, &why), *costs = json_object();
	const json_t *items = json_object_get(report, "items"), *item;
	bool bad = !json_is_array(items);
	size_t i;
	json_array_foreach(items, i, item)
	{
		const char *name = json_string_value(json_object_get(item, "name"));
		const json_t *seconds = json_object_get(item, "seconds");
		double cost = json_number_value(seconds);
		bad |= !name || !json_is_number(seconds) || !(cost >= 0 && cost <= SWEEP_COST_MAX) ||
		       json_object_set_new(costs, name, json_real(cost));
	}
	if (!report)
		npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, why.text);
	else if (bad)
		npumem_error_set(error, NPUMEM_INVALID, "%.200s is not a report with the seconds of its \"items\"",
				 path);
	return report && !bad ? costs : NULL;
}

int sweep_costs(struct sweep *sweep, const char *path, struct npumem_error *error)
{
	const json_t *costs = costs_read(path, error);
	double sum = 0;
	size_t n = 0;
	if (!costs)
		return NPUMEM_INVALID;
	for (size_t i = 0; i < sweep->n; i++) {
		const json_t *cost = json_object_get(costs, sweep->items[i].name);
		sweep->items[i].cost = cost ? json_number_value(cost) : -1;
		sum += cost ? sweep->items[i].cost : 0;
		n += cost != NULL;
	}
	if (!n && sweep->n)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s has the seconds of none of these items",
					path);
	for (size_t i = 0; i < sweep->n; i++)
		if (sweep->items[i].cost < 0)
			sweep->items[i].cost = sum / (double)n;
	return 0;
}

/* ---- shards ---- */

static int by_cost(const void *a, const void *b)
{
	const struct sweep_item *one = *(struct sweep_item *const *)a, *other = *(struct sweep_item *const *)b;
	if (one->cost != other->cost)
		return one->cost > other->cost ? -1 : 1;
	return one < other ? -1 : one > other;
}

struct load {
	double seconds;
	unsigned shard;
};

static bool is_before(const struct load *one, const struct load *other)
{
	return one->seconds != other->seconds ? one->seconds < other->seconds : one->shard < other->shard;
}

/* The first of the heap has more to do: it goes where it belongs. */
static void sink(struct load *heap, unsigned n)
{
	for (unsigned at = 0, least;; at = least) {
		least = at;
		for (unsigned child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
			if (is_before(&heap[child], &heap[least]))
				least = child;
		if (least == at)
			return;
		struct load moved = heap[at];
		heap[at] = heap[least];
		heap[least] = moved;
	}
}

void sweep_assign(struct sweep *sweep)
{
	struct sweep_item **sorted = memory_new(sweep->n, sizeof(struct sweep_item *));
	struct load *heap = memory_new(sweep->n_shards, sizeof(*heap));
	for (unsigned i = 0; i < sweep->n_shards; i++)
		heap[i].shard = i + 1;
	for (size_t i = 0; i < sweep->n; i++)
		sorted[i] = &sweep->items[i];
	qsort(sorted, sweep->n, sizeof(struct sweep_item *), by_cost);
	for (size_t i = 0; i < sweep->n; i++) {
		sorted[i]->shard = heap->shard;
		heap->seconds += sorted[i]->cost;
		sink(heap, sweep->n_shards);
	}
	sweep->split = mixed(sweep->content, &sweep->n_shards, sizeof(sweep->n_shards));
	for (size_t i = 0; i < sweep->n; i++)
		sweep->split = mixed(sweep->split, &sweep->items[i].shard, sizeof(sweep->items[i].shard));
}

bool sweep_is_ours(const struct sweep *sweep, size_t item)
{
	return sweep->items[item].shard == sweep->shard;
}

size_t sweep_n_ours(const struct sweep *sweep)
{
	size_t n = 0;
	for (size_t i = 0; i < sweep->n; i++)
		n += sweep_is_ours(sweep, i);
	return n;
}

/* ---- reports ---- */

static void id_text(uint64_t number, char *text)
{
	snprintf(text, SWEEP_ID_BYTES, "%016" PRIx64, number);
}

void sweep_part(const struct sweep *sweep, struct sweep_part *part)
{
	struct timespec now;
	uint64_t run = 0;
	clock_gettime(CLOCK_REALTIME, &now);
	if (getrandom(&run, sizeof(run), GRND_NONBLOCK) != sizeof(run))
		run = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)getpid();
	*part = (struct sweep_part){.shard = sweep->shard,
				    .n_shards = sweep->n_shards,
				    .n_items = sweep->n,
				    .time = (double)now.tv_sec + (double)now.tv_nsec / 1e9};
	id_text(sweep->content, part->id);
	id_text(sweep->split, part->split);
	id_text(run, part->run);
}

json_t *sweep_part_json(const struct sweep_part *part)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f}", "id", part->id, "split", part->split, "run",
			 part->run, "shard", (json_int_t)part->shard, "shards", (json_int_t)part->n_shards,
			 "items", (json_int_t)part->n_items, "time", part->time);
}

void sweep_json(const struct sweep *sweep, const struct sweep_part *part, json_t *report)
{
	json_t *items = json_array();
	for (size_t i = 0; i < sweep->n; i++)
		if (sweep->items[i].ran)
			json_array_append_new(items,
					      json_pack("{s:I, s:s, s:f}", "item", (json_int_t)i, "name",
							sweep->items[i].name, "seconds", sweep->items[i].seconds));
	json_object_set_new(report, "command", json_string(sweep->command));
	json_object_set_new(report, "sweep", sweep_part_json(part));
	json_object_set_new(report, "items", items);
}
