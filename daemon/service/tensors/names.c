/* A hash table with chains and linear hashing: when it is full, each new name adds one bucket, which takes its
 * part of one other. So each addition costs the same. Without memory for a bucket the chains grow longer, so that
 * adding cannot fail. Invariant: a record is in the table while it has a name and is not gone; each (uid, name)
 * has at most one. */
#include "daemon/service/tensors/names.h"

#include <errno.h>

enum { BUCKETS_PER_CHUNK = 256, CHUNK_BYTES = BUCKETS_PER_CHUNK * sizeof(struct record *) };

int names_init(struct names *names, const struct heap *heap, uint64_t seed)
{
	*names = (struct names){.heap = heap, .n_buckets = BUCKETS_PER_CHUNK, .seed = seed};
	if (chunks_add(&names->chunks, heap, CHUNK_BYTES))
		return 0;
	chunks_deinit(&names->chunks, heap);
	return -ENOMEM;
}

void names_deinit(struct names *names)
{
	chunks_deinit(&names->chunks, names->heap);
}

static bool is_name_byte(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '.' || c == '-' || c == '/';
}

int names_check(const char *name, struct npumem_error *error)
{
	size_t length = 0;
	bool digits = true;

	for (; name[length]; length++) {
		unsigned char c = (unsigned char)name[length];

		if (length == NPUMEM_NAME_BYTES_MAX)
			return npumem_error_set(error, NPUMEM_INVALID, "name %.16s... is longer than %d bytes",
						name, NPUMEM_NAME_BYTES_MAX);
		if (!is_name_byte(c))
			return npumem_error_set(
				error, NPUMEM_INVALID,
				c >= ' ' && c <= '~'
					? "byte %zu of a name is '%c', which is not one of A-Z a-z 0-9 _ . - /"
					: "byte %zu of a name is 0x%02x, which is not one of A-Z a-z 0-9 _ . - /",
				length + 1, c);
		digits = digits && c >= '0' && c <= '9';
	}
	if (!length)
		return npumem_error_set(error, NPUMEM_INVALID, "a name of 0 bytes");
	if (digits)
		return npumem_error_set(error, NPUMEM_INVALID,
					"name %s is digits alone: it would read as a number", name);
	return 0;
}

int names_check_label(const char *label, struct npumem_error *error)
{
	size_t n = 0;

	while (label[n] >= ' ' && label[n] <= '~')
		n++;
	if (!label[n] && n <= NPUMEM_NAME_BYTES_MAX)
		return 0;
	if (!label[n])
		return npumem_error_set(error, NPUMEM_INVALID, "a label of %zu bytes: at most %d are possible", n,
					NPUMEM_NAME_BYTES_MAX);
	return npumem_error_set(error, NPUMEM_INVALID,
				"byte %zu of a label is 0x%02x, which is not printable ASCII", n + 1,
				(unsigned char)label[n]);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply and fold 8 bytes at a time, as wyhash does. `name` is filled up with zeros. */
static uint64_t hash_of(const struct names *names, uint32_t uid, const char *name)
{
	uint64_t hash = mix(names->seed ^ uid, 0x9e3779b97f4a7c15u), word;

	for (size_t i = 0; i <= NPUMEM_NAME_BYTES_MAX && name[i]; i += sizeof(word)) {
		memcpy(&word, name + i, sizeof(word));
		hash = mix(hash ^ word, names->seed | 1);
	}
	return mix(hash, 0x9e3779b97f4a7c15u);
}

static struct record **bucket_at(const struct names *names, size_t i)
{
	return (struct record **)names->chunks.at[i / BUCKETS_PER_CHUNK] + i % BUCKETS_PER_CHUNK;
}

/* The largest power of two that is no more than n. */
static size_t power_below(size_t n)
{
	return (size_t)1 << (8 * sizeof(long) - 1 - (size_t)__builtin_clzl(n));
}

/* Buckets from power_below(n_buckets) on have taken their part of a lower one. The part of a bucket that does not
 * exist yet is still in that lower one. */
static struct record **bucket_of(const struct names *names, uint32_t uid, const char *name)
{
	uint64_t hash = hash_of(names, uid, name);
	size_t power = power_below(names->n_buckets), i = hash & (2 * power - 1);

	return bucket_at(names, i < names->n_buckets ? i : hash & (power - 1));
}

struct record *names_find(const struct names *names, uint32_t uid, const char *name)
{
	char padded[NPUMEM_NAME_BYTES_MAX + 1] = {0};
	size_t length = strnlen(name, sizeof(padded));
	struct record *record;

	if (!length || length == sizeof(padded))
		return NULL;
	memcpy(padded, name, length);
	record = *bucket_of(names, uid, padded);
	/* A view's name stays in the table for a while after its root has gone. */
	while (record &&
	       (record->uid != uid || memcmp(record->name, padded, sizeof(padded)) != 0 || record_is_gone(record)))
		record = record->next_name;
	return record;
}

/* One bucket more. */
static void grow(struct names *names)
{
	struct record **from = bucket_at(names, names->n_buckets - power_below(names->n_buckets)), *record = *from;

	if (names->n_buckets == names->chunks.n * BUCKETS_PER_CHUNK &&
	    !chunks_add(&names->chunks, names->heap, CHUNK_BYTES))
		return;
	names->n_buckets++;
	for (*from = NULL; record;) {
		struct record *next = record->next_name, **to = bucket_of(names, record->uid, record->name);

		record->next_name = *to;
		*to = record;
		record = next;
	}
}

void names_add(struct names *names, struct record *record)
{
	struct record **bucket;

	if (names->n >= names->n_buckets)
		grow(names);
	bucket = bucket_of(names, record->uid, record->name);
	record->next_name = *bucket;
	*bucket = record;
	names->n++;
}

void names_remove(struct names *names, struct record *record)
{
	struct record **at = bucket_of(names, record->uid, record->name);

	while (*at != record)
		at = &(*at)->next_name;
	*at = record->next_name;
	record->next_name = NULL;
	names->n--;
}
