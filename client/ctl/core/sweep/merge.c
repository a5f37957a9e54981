/* One row for each command whose reports can be added up. Invariant: a report that is added has all that its row
 * names, counts that are not negative, and items of its sweep, each once. */
#include "client/ctl/core/sweep/sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"

enum { SUMS_MAX = 4, SUM_MAX = 1 << 30 };

static const struct row {
	const char *command;
	const char *sums[SUMS_MAX + 1]; /* added up */
	const char *same;		/* the same in all of them */
	bool has_first;			/* and what merge_first adds */
} rows[] = {
	{"conform", {"passed", "failed", "skipped", "runs"}, "placements", false},
	{"check", {"passed", "failed"}, "placements", false},
	{"replay", {"requests", "skipped", "differences"}, NULL, true},
};

static const struct row *row_of(const json_t *report)
{
	const char *command = json_string_value(json_object_get(report, "command"));
	for (unsigned i = 0; command && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].command, command))
			return &rows[i];
	return NULL;
}

/* ---- reading ---- */

static bool take_text(const json_t *from, const char *name, char *text)
{
	const char *value = json_string_value(json_object_get(from, name));
	if (!value || strlen(value) + 1 != SWEEP_ID_BYTES || strspn(value, "0123456789abcdef") != strlen(value))
		return false;
	memcpy(text, value, SWEEP_ID_BYTES);
	return true;
}

static bool take_count(const json_t *from, const char *name, json_int_t most, json_int_t *count)
{
	const json_t *value = json_object_get(from, name);
	*count = json_integer_value(value);
	return json_is_integer(value) && *count >= 0 && *count <= most;
}

static bool take_part(const json_t *report, struct sweep_part *part)
{
	const json_t *from = json_object_get(report, "sweep");
	json_int_t shard, n_shards, n_items;
	if (!take_text(from, "id", part->id) || !take_text(from, "split", part->split) ||
	    !take_text(from, "run", part->run) || !take_count(from, "shards", SWEEP_SHARDS_MAX, &n_shards) ||
	    !take_count(from, "shard", n_shards, &shard) || shard < 1 ||
	    !take_count(from, "items", SUM_MAX, &n_items) || !json_is_number(json_object_get(from, "time")))
		return false;
	part->shard = (unsigned)shard;
	part->n_shards = (unsigned)n_shards;
	part->n_items = (size_t)n_items;
	part->time = json_number_value(json_object_get(from, "time"));
	return true;
}

static bool are_of_items(const json_t *list, size_t n_items)
{
	const json_t *one;
	json_int_t item;
	size_t i;
	json_array_foreach(list, i,
			   one) if (!take_count(one, "item", (json_int_t)n_items - 1, &item)) return false;
	return json_is_array(list);
}

static bool is_report(const json_t *report, struct sweep_part *part)
{
	const struct row *row = row_of(report);
	json_int_t count;
	bool good = row && take_part(report, part) &&
		    are_of_items(json_object_get(report, "items"), part->n_items) &&
		    are_of_items(json_object_get(report, "cases"), part->n_items) &&
		    (!row->same || take_count(report, row->same, SUM_MAX, &count));
	for (const char *const *sum = row ? row->sums : NULL; good && *sum; sum++)
		good = take_count(report, *sum, INT64_MAX / SWEEP_SHARDS_MAX, &count);
	return good;
}

int merge_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error)
{
	json_error_t why;
	struct part part = {.path = path, .report = json_load_file(path, 0, &why)};
	*why_not = NULL;
	if (!part.report && json_error_code(&why) == json_error_cannot_open_file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.400s", why.text);
	if (!part.report) {
		*why_not = "it is not whole";
		return 0;
	}
	if (json_is_object(json_object_get(part.report, "error"))) {
		*why_not = "it says that its run failed";
		return 0;
	}
	if (!is_report(part.report, &part.of))
		return npumem_error_set(error, NPUMEM_INVALID,
					"%.200s is not a report of conform, check or replay", path);
	return parts_add(parts, &part, error);
}

/* ---- adding up ---- */

struct sorted {
	size_t item, order;
	json_t *one; /* the report's */
};

static int by_item(const void *a, const void *b)
{
	const struct sorted *one = a, *other = b;
	if (one->item != other->item)
		return one->item < other->item ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

/* What the parts that count list under `name`, in the order of one run. */
static struct sorted *collect(const struct parts *parts, const char *name, size_t *n)
{
	struct sorted *all = NULL;
	json_t *one;
	size_t i;
	*n = 0;
	for (size_t k = 0; k < parts->n; k++) {
		if (parts->list[k].by != PARTS_NONE)
			continue;
		json_array_foreach(json_object_get(parts->list[k].report, name), i, one)
		{
			struct sorted *sorted = memory_grow(&all, *n, sizeof(*sorted));
			size_t item = (size_t)json_integer_value(json_object_get(one, "item"));
			*sorted = (struct sorted){item, (*n)++, one};
		}
	}
	if (all)
		qsort(all, *n, sizeof(*all), by_item);
	return all;
}

/* A new array. */
static json_t *list_of(const struct sorted *all, size_t n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append(list, all[i].one);
	return list;
}

/* Each once, and all where there is a part of every shard. */
static int check_items(const struct sorted *items, size_t n, size_t n_items, bool whole,
		       struct npumem_error *error)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (items[i].item == items[i + 1].item)
			return npumem_error_set(error, NPUMEM_INVALID, "item %zu, \"%.200s\", ran in two shards",
						items[i].item,
						json_string_value(json_object_get(items[i].one, "name")));
	for (size_t i = 0; i < n_items && whole; i++)
		if (i >= n || items[i].item != i)
			return npumem_error_set(error, NPUMEM_INVALID, "item %zu of %zu ran in no shard", i,
						n_items);
	return 0;
}

static void add_counts(const struct parts *parts, const struct row *row, json_t *sum)
{
	for (const char *const *name = row->sums; *name; name++) {
		json_int_t total = 0;
		for (size_t i = 0; i < parts->n; i++)
			if (parts->list[i].by == PARTS_NONE)
				total += json_integer_value(json_object_get(parts->list[i].report, *name));
		json_object_set_new(sum, *name, json_integer(total));
	}
	if (row->same)
		json_object_set(sum, row->same, json_object_get(parts->list->report, row->same));
}

static int add_lists(const struct parts *parts, const json_t *missing, json_t *sum, struct npumem_error *error)
{
	size_t n_items, n_cases;
	const struct sorted *items = collect(parts, "items", &n_items), *cases = collect(parts, "cases", &n_cases);
	int status = check_items(items, n_items, parts->list->of.n_items, !json_array_size(missing), error);
	json_object_set_new(sum, "items", list_of(items, n_items));
	json_object_set_new(sum, "cases", list_of(cases, n_cases));
	return status;
}

void merge_first(json_t *report)
{
	static const char *const said[] = {"first", "session", "uid", "pid", "same_geometry", "npu", "what"};
	json_t *cases = json_object_get(report, "cases"), *one, *first = json_array_get(cases, 0);
	size_t i;
	json_array_foreach(cases, i, one) if (json_integer_value(json_object_get(one, "differences")))
	{
		first = one;
		break;
	}
	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (json_object_get(first, said[i]))
			json_object_set(report, said[i], json_object_get(first, said[i]));
}

json_t *merge_sum(const struct parts *parts, struct npumem_error *error)
{
	const struct row *row = row_of(parts->list->report);
	json_t *sum = json_object(), *missing = parts_missing(parts);
	struct sweep_part whole;
	parts_whole(parts, &whole);
	add_counts(parts, row, sum);
	int status = add_lists(parts, missing, sum, error);
	json_object_set_new(sum, "command", json_string(row->command));
	json_object_set_new(sum, "sweep", sweep_part_json(&whole));
	json_object_set(sum, "missing", missing);
	if (row->has_first)
		merge_first(sum);
	return status ? NULL : sum;
}
