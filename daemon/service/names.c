/* A chained hash table that doubles when it is full. Without memory for that its chains grow longer instead, so
 * that adding cannot fail.
 * Invariant: a record is in it exactly while its tensor is alive and its name is not empty. */
#include "daemon/service/names.h"

#include <errno.h>

enum { FIRST_BUCKETS = 64 };

int names_init(struct names *names, const struct heap *heap, uint64_t seed)
{
	*names = (struct names){.heap = heap, .n_buckets = FIRST_BUCKETS, .seed = seed};
	names->buckets = heap_zalloc(heap, FIRST_BUCKETS, sizeof(*names->buckets));
	return names->buckets ? 0 : -ENOMEM;
}

void names_deinit(struct names *names)
{
	heap_free(names->heap, names->buckets);
	names->buckets = NULL;
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
				"byte %zu of a name is 0x%02x, which is none of A-Z a-z 0-9 _ . - /", length, c);
		digits = digits && c >= '0' && c <= '9';
	}
	if (!length)
		return npumem_error_set(error, NPUMEM_INVALID, "a name of 0 bytes");
	if (digits)
		return npumem_error_set(error, NPUMEM_INVALID,
					"name %s is digits alone: it would read as a number", name);
	return 0;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply and fold 8 bytes at a time, as wyhash does. `name` is filled up with zeros. */
static size_t bucket_of(const struct names *names, size_t n_buckets, uint32_t uid, const char *name)
{
	uint64_t hash = mix(names->seed ^ uid, 0x9e3779b97f4a7c15u), word;

	for (size_t i = 0; i <= NPUMEM_NAME_BYTES_MAX && name[i]; i += sizeof(word)) {
		memcpy(&word, name + i, sizeof(word));
		hash = mix(hash ^ word, names->seed | 1);
	}
	return mix(hash, 0x9e3779b97f4a7c15u) & (n_buckets - 1);
}

struct record *names_find(const struct names *names, uint32_t uid, const char *name)
{
	char padded[NPUMEM_NAME_BYTES_MAX + 1] = {0};
	size_t length = strnlen(name, sizeof(padded));
	struct record *record;

	if (!length || length == sizeof(padded))
		return NULL;
	memcpy(padded, name, length);
	record = names->buckets[bucket_of(names, names->n_buckets, uid, padded)];
	while (record && (record->uid != uid || memcmp(record->name, padded, sizeof(padded)) != 0))
		record = record->next_name;
	return record;
}

static void grow(struct names *names)
{
	size_t n_buckets = 2 * names->n_buckets;
	struct record **buckets = heap_zalloc(names->heap, n_buckets, sizeof(*buckets));

	if (!buckets)
		return;
	for (size_t i = 0; i < names->n_buckets; i++)
		while (names->buckets[i]) {
			struct record *record = names->buckets[i];
			struct record **bucket = &buckets[bucket_of(names, n_buckets, record->uid, record->name)];

			names->buckets[i] = record->next_name;
			record->next_name = *bucket;
			*bucket = record;
		}
	heap_free(names->heap, names->buckets);
	names->buckets = buckets;
	names->n_buckets = n_buckets;
}

void names_add(struct names *names, struct record *record)
{
	struct record **bucket;

	if (names->n == names->n_buckets)
		grow(names);
	bucket = &names->buckets[bucket_of(names, names->n_buckets, record->uid, record->name)];
	record->next_name = *bucket;
	*bucket = record;
	names->n++;
}

void names_remove(struct names *names, struct record *record)
{
	struct record **at = &names->buckets[bucket_of(names, names->n_buckets, record->uid, record->name)];

	while (*at != record)
		at = &(*at)->next_name;
	*at = record->next_name;
	record->next_name = NULL;
	names->n--;
}
