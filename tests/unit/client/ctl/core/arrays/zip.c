#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/arrays/stream.h"
#include "tests/support/test.h"

enum { DATA_BYTES = 6 };

static void put(uint8_t **at, uint32_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		*(*at)++ = i < 4 ? (uint8_t)(value >> 8 * i) : 0;
}

static void put_text(uint8_t **at, const char *text, size_t n)
{
	memcpy(*at, text, n);
	*at += n;
}

/* An archive of one stored member, a.npy with "abcdef". Returns its bytes. */
static size_t archive(uint8_t *to)
{
	uint8_t *at = to;
	put_text(&at, "PK\3\4", 4);
	put(&at, 0, 14);
	put(&at, DATA_BYTES, 4);
	put(&at, DATA_BYTES, 4);
	put(&at, 5, 2);
	put(&at, 0, 2);
	put_text(&at, "a.npyabcdef", 11);
	uint32_t directory = (uint32_t)(at - to);
	put_text(&at, "PK\1\2", 4);
	put(&at, 0, 16);
	put(&at, DATA_BYTES, 4);
	put(&at, DATA_BYTES, 4);
	put(&at, 5, 2);
	put(&at, 0, 16);
	put_text(&at, "a.npy", 5);
	uint32_t end = (uint32_t)(at - to);
	put_text(&at, "PK\5\6", 4);
	put(&at, 0, 4);
	put(&at, 1, 2);
	put(&at, 1, 2);
	put(&at, end - directory, 4);
	put(&at, directory, 4);
	put(&at, 0, 2);
	return (size_t)(at - to);
}

/* Opens the bytes as an archive; what was found is compared with the data. */
static int open_bytes(uint8_t *bytes, size_t n, const char *name, bool *same)
{
	char found[DATA_BYTES] = {0};
	struct npumem_error error = {0};
	FILE *file = fmemopen(bytes, n, "rb"), *member;
	int status = zip_open(file, name, &member, &error);
	*same = false;
	if (!status) {
		*same = fread(found, 1, sizeof(found), member) == DATA_BYTES &&
			!memcmp(found, "abcdef", DATA_BYTES);
		fclose(member);
	} else {
		ck_assert(error.message[0]);
	}
	fclose(file);
	return status;
}

TEST(a_member)
{
	uint8_t bytes[256];
	size_t n = archive(bytes);
	bool same;
	ck_assert_int_eq(open_bytes(bytes, n, NULL, &same), 0);
	ck_assert(same);
	ck_assert_int_eq(open_bytes(bytes, n, "a", &same), 0);
	ck_assert(same);
	ck_assert_int_eq(open_bytes(bytes, n, "a.npy", &same), 0);
	ck_assert(same);
	ck_assert_int_eq(open_bytes(bytes, n, "b", &same), NPUMEM_INVALID);
	ck_assert_int_eq(open_bytes(bytes, n, "a.np", &same), NPUMEM_INVALID);
	for (size_t cut = 1; cut < n; cut++)
		ck_assert_int_eq(open_bytes(bytes, cut, NULL, &same), NPUMEM_INVALID);
}

/* Whatever one byte becomes, it is refused or something of the archive is read: the sanitizers say more. */
TEST(every_byte_changed)
{
	uint8_t bytes[256], good[256];
	size_t n = archive(good);
	unsigned n_refused = 0;
	bool same;
	for (size_t i = 0; i < n; i++) {
		for (unsigned value = 0; value < 256; value += i % 3 ? 5 : 17) {
			memcpy(bytes, good, n);
			bytes[i] = (uint8_t)value;
			n_refused += open_bytes(bytes, n, NULL, &same) != 0;
		}
	}
	ck_assert_uint_gt(n_refused, 1000);
}

TEST(what_is_not_read)
{
	uint8_t bytes[256];
	size_t n = archive(bytes), entry = 41;
	bool same;
	ck_assert_mem_eq(bytes + entry, "PK\1\2", 4);
	bytes[entry + 8] = 1; /* encrypted */
	ck_assert_int_eq(open_bytes(bytes, n, NULL, &same), NPUMEM_INVALID);
	archive(bytes);
	bytes[entry + 10] = 12; /* bzip2 */
	ck_assert_int_eq(open_bytes(bytes, n, NULL, &same), NPUMEM_INVALID);
	archive(bytes);
	memset(bytes + entry + 20, 0x7f, 8); /* 2 GiB */
	ck_assert_int_eq(open_bytes(bytes, n, NULL, &same), NPUMEM_INVALID);
	archive(bytes);
	bytes[entry + 10] = 8; /* deflated, which the data are not */
	ck_assert_int_eq(open_bytes(bytes, n, NULL, &same), NPUMEM_INVALID);
}
