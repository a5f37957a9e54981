/* Parts of one sweep. Invariant: all have the same sweep and split, and of each shard at most one counts. */
#include "client/ctl/core/sweep/sweep.h"

#include <string.h>

#include "client/ctl/core/memory.h"

static int check_same(const struct part *first, const struct part *part, struct npumem_error *error)
{
	const struct sweep_part *one = &first->of, *other = &part->of;
	if (strcmp(one->id, other->id) || one->n_items != other->n_items)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%.200s is of another sweep than %.200s: other cases, options or device",
					part->path, first->path);
	if (one->n_shards != other->n_shards)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%.200s is one of %u shards, and %.200s one of %u: what is in both cannot "
					"be told",
					part->path, other->n_shards, first->path, one->n_shards);
	if (strcmp(one->split, other->split))
		return npumem_error_set(error, NPUMEM_INVALID,
					"%.200s was shared out by other costs than %.200s: what is in both cannot "
					"be told",
					part->path, first->path);
	return 0;
}

int parts_add(struct parts *parts, const struct part *part, struct npumem_error *error)
{
	int status = parts->n ? check_same(parts->list, part, error) : 0;
	if (status)
		return status;
	struct part *added = memory_grow(&parts->list, parts->n, sizeof(*added));
	*added = *part;
	added->by = PARTS_NONE;
	for (size_t i = 0; i < parts->n; i++) {
		struct part *before = &parts->list[i];
		if (before->by != PARTS_NONE || before->of.shard != added->of.shard)
			continue;
		if (before->of.time > added->of.time)
			added->by = i;
		else
			before->by = parts->n;
	}
	parts->n++;
	return 0;
}

const struct part *parts_of(const struct parts *parts, unsigned shard)
{
	for (size_t i = 0; i < parts->n; i++)
		if (parts->list[i].by == PARTS_NONE && parts->list[i].of.shard == shard)
			return &parts->list[i];
	return NULL;
}

json_t *parts_missing(const struct parts *parts)
{
	json_t *missing = json_array();
	for (unsigned shard = 1; parts->n && shard <= parts->list->of.n_shards; shard++)
		if (!parts_of(parts, shard))
			json_array_append_new(missing, json_integer((json_int_t)shard));
	return missing;
}

void parts_whole(const struct parts *parts, struct sweep_part *whole)
{
	*whole = parts->list->of;
	for (size_t i = 1; i < parts->n; i++)
		if (parts->list[i].by == PARTS_NONE && parts->list[i].of.time > whole->time)
			*whole = parts->list[i].of;
	if (whole->n_shards > 1)
		memcpy(whole->split, whole->id, sizeof(whole->split));
	whole->shard = whole->n_shards = 1;
}
