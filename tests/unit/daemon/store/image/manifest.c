/* A manifest that does not tell of the files beside it: the snapshot is refused with a line that says why, and
 * stays as it is. What bits flipped in its files is tests/integration/test_snapshot.py's. */
#include "daemon/store/image/manifest.h"

#include <errno.h>

#include "daemon/store/image/image.h"
#include "tests/unit/daemon/store/state.h"

/* A checksum more than there are parts. */
static union {
	struct manifest manifest;
	uint8_t bytes[4096];
} whole, changed;
static size_t whole_bytes;
static char copy[80];

static void keep_piece(const struct store_piece *piece)
{
	int fd = open(state_path_in(copy, piece->file), O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)piece->file_bytes), 0);
	ck_assert_int_eq(pwrite(fd, piece->data, piece->bytes, (off_t)piece->off), (ssize_t)piece->bytes);
	close(fd);
}

/* A snapshot in `copy`, which the state's options are of from here on. */
static void set_up(void)
{
	struct store_piece piece = {.is_last = false};
	state_set_up();
	state_open();
	state_put(STORE_TENSORS, 3, "three");
	snprintf(copy, sizeof(copy), "%s-copy", state.directory);
	ck_assert_int_eq(mkdir(copy, 0700), 0);
	ck_assert_int_eq(store_image_begin(state.store), 0);
	while (!piece.is_last) {
		store_image_next(state.store, &piece);
		keep_piece(&piece);
	}
	store_image_end(state.store);
	state_close(true);
	char *text = state_read(state_path_in(copy, MANIFEST_NAME), &whole_bytes);
	ck_assert_uint_le(whole_bytes + sizeof(uint32_t), sizeof(whole.bytes));
	memcpy(whole.bytes, text, whole_bytes);
	free(text);
	changed = whole;
	state.options.directory = copy;
}

static void tear_down(void)
{
	state_tear_down();
	unlink(state_path_in(copy, MANIFEST_NAME));
	state_remove(copy);
}

static void put(const void *bytes, size_t n)
{
	const char *path = state_path_in(copy, MANIFEST_NAME);
	ck_assert_int_eq(unlink(path), 0);
	state_write(path, bytes, n, 0);
}

/* And with what it was before, the snapshot is whole. */
static void check_refused(size_t n, const char *words)
{
	put(changed.bytes, n);
	state_refused(-EINVAL, words);
	ck_assert_int_eq(access(state_path_in(copy, MANIFEST_NAME), F_OK), 0);
	changed = whole;
	put(whole.bytes, whole_bytes);
}

static void check_whole(void)
{
	state_open();
	ck_assert(state_has(STORE_TENSORS, 3, "three"));
	ck_assert_int_ne(access(state_path_in(copy, MANIFEST_NAME), F_OK), 0);
	state_close(true);
}

TEST(it_is_none)
{
	check_refused(10, "manifest: is not the manifest of a snapshot");
	check_refused(0, "manifest: is not the manifest of a snapshot");
	changed.manifest.magic[0]++;
	check_refused(whole_bytes, "manifest: is not the manifest of a snapshot");
	changed.manifest.version++;
	manifest_close(&changed.manifest);
	check_refused(whole_bytes, "manifest: is of another version");
	check_whole();
}

TEST(it_is_damaged)
{
	check_refused(whole_bytes - 1, "manifest: is damaged");
	check_refused(whole_bytes + 1, "manifest: is damaged");
	changed.bytes[whole_bytes - 1] ^= 1;
	check_refused(whole_bytes, "manifest: is damaged");
	changed.manifest.n_parts = UINT32_MAX;
	check_refused(whole_bytes, "manifest: is damaged");
	check_whole();
}

TEST(it_is_of_other_files)
{
	changed.manifest.bytes[FORMAT_MEMORY] += 4096;
	manifest_close(&changed.manifest);
	check_refused(whole_bytes, "not the");
	changed.manifest.n_parts++;
	manifest_close(&changed.manifest);
	check_refused(whole_bytes + sizeof(uint32_t), "manifest: is damaged");
	manifest_crcs(&changed.manifest)[0] ^= 1;
	manifest_close(&changed.manifest);
	check_refused(whole_bytes, "its bytes from 0 to ");
	check_whole();
}

TEST(it_is_no_file_or_too_long)
{
	const char *path = state_path_in(copy, MANIFEST_NAME);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	state_refused(-EINVAL, "manifest: is not the manifest of a snapshot");
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("memory", path), 0);
	state_refused(-ELOOP, "manifest: ");
	ck_assert_int_eq(unlink(path), 0);
	/* Sparse, of more bytes than are read. */
	state_write(path, whole.bytes, whole_bytes, 0);
	ck_assert_int_eq(truncate(path, ((off_t)1 << 26) + 1), 0);
	state_refused(-EINVAL, "manifest: is not the manifest of a snapshot");
	put(whole.bytes, whole_bytes);
	check_whole();
}

FIXTURE(set_up, tear_down)
