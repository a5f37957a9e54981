/* Makes a snapshot in parts of a MiB, each with a checksum. Owns the manifest and the piece. The first page of
 * each file and the journal are made when the image begins, as those of a state that was closed at that moment;
 * the journal's notes of running writes are kept. */
#include "daemon/store/image/image.h"

#include <assert.h>
#include <errno.h>
#include <zlib.h>

#include "daemon/store/files/calls.h"
#include "daemon/store/files/identity.h"
#include "daemon/store/image/manifest.h"
#include "daemon/store/image/pages.h"
#include "daemon/store/log/log.h"

_Static_assert((int)STORE_PIECE_BYTES == (int)MANIFEST_PART_BYTES, "a piece is a part, or what of it is not zero");

enum { MANIFEST = FORMAT_FILES, N_FILES };
enum { TABLE_BYTES = 1 << 16 }; /* of a table at a time */
_Static_assert(MANIFEST_PART_BYTES % TABLE_BYTES == 0, "a part is summed up in whole steps");

/* The manifest comes before the journal, and has the journal's checksums as well. */
static const unsigned order[N_FILES] = {FORMAT_MEMORY,	FORMAT_TENSORS, FORMAT_SESSIONS,
					FORMAT_RESULTS, MANIFEST,	FORMAT_JOURNAL};

/* ---- the moment ---- */

static int make_room(struct store *store)
{
	struct image *image = &store->image;
	uint64_t n_parts = 0;
	int status = 0;

	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++) {
		uint64_t bytes = file == FORMAT_JOURNAL ? (uint64_t)FORMAT_RECORDS_OFF + FORMAT_RECORDS_BYTES
							: store->maps[file].bytes;
		status = image_keep(store, file, bytes);
		n_parts += manifest_parts(bytes);
	}
	if (!status && n_parts > UINT32_MAX)
		status = -EFBIG;
	if (status)
		return status;
	image->piece = heap_alloc(store->heap, STORE_PIECE_BYTES);
	image->manifest = heap_zalloc(store->heap, 1, manifest_bytes(n_parts));
	if (!image->piece || !image->manifest)
		return -ENOMEM;
	manifest_seal(image->manifest, store_page(store, FORMAT_JOURNAL)->header.state, (uint32_t)n_parts);
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		image->manifest->bytes[file] = image->files[file].bytes;
	return 0;
}

/* Keeps all notes of writes that were ever used, also free ones. */
static void keep_journal(struct store *store)
{
	const uint8_t *at = (const uint8_t *)store->writes.records;
	uint64_t notes = store->writes.n_fresh * sizeof(struct store_write);
	uint64_t end = FORMAT_PAGE_BYTES + ((notes + FORMAT_PAGE_BYTES - 1) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1));

	image_replace(store, FORMAT_JOURNAL, FORMAT_PAGE_BYTES, at, end - FORMAT_PAGE_BYTES);
	image_replace(store, FORMAT_JOURNAL, end, NULL, store->image.files[FORMAT_JOURNAL].bytes - end);
}

static void keep_first_pages(struct store *store)
{
	_Alignas(8) uint8_t bytes[FORMAT_PAGE_BYTES];

	for (enum format_file file = 0; file < FORMAT_FILES; file++) {
		memcpy(bytes, store->maps[file].at, FORMAT_RUNS_OFF);
		memset(bytes + FORMAT_RUNS_OFF, 0, FORMAT_PAGE_BYTES - FORMAT_RUNS_OFF);
		identity_close_copy(store, file, (struct format_page *)(void *)bytes);
		image_replace(store, file, 0, bytes, sizeof(bytes));
	}
}

int store_image_begin(struct store *store)
{
	struct image *image = &store->image;

	if (image_is_on(image))
		return -EBUSY;
	store_commit(store);
	/* A thread may have saved a page after the last image had ended. */
	store_image_give_back(store);
	int status = make_room(store);
	if (status) {
		store_image_end(store);
		return status;
	}
	keep_journal(store);
	keep_first_pages(store);
	image->at = 0;
	image->off = 0;
	atomic_store_explicit(&image->is_on, true, memory_order_release);
	return 0;
}

void store_image_before(struct store *store, uint64_t off, uint64_t bytes)
{
	if (image_is_on(&store->image))
		image_before(store, FORMAT_MEMORY, FORMAT_PAGE_BYTES + off, bytes);
}

/* ---- the pieces ---- */

static uint32_t *crc_at(struct store *store, unsigned file, uint64_t off)
{
	uint32_t *crc = manifest_crcs(store->image.manifest);

	for (unsigned before = 0; before < file; before++)
		crc += manifest_parts(store->image.files[before].bytes);
	return crc + off / MANIFEST_PART_BYTES;
}

/* The checksum of a part of zeros. It overwrites the piece, which is not in use then. */
static uint32_t zero_crc(struct image *image)
{
	if (!image->knows_zero) {
		memset(image->piece, 0, MANIFEST_PART_BYTES);
		image->zero_crc = (uint32_t)crc32_z(0, image->piece, MANIFEST_PART_BYTES);
		image->knows_zero = true;
	}
	return image->zero_crc;
}

/* A table may move when it grows, so its owner's thread reads it, a little at a time. */
static bool is_table(enum format_file file)
{
	return file != FORMAT_MEMORY && file != FORMAT_JOURNAL;
}

/* Reads a part, or some of one of a table, and updates its checksum; [*from, *to) of the piece are the pages that
 * are not zero. */
static void take_part(struct store *store, enum format_file file, uint64_t off, uint64_t bytes, uint64_t *from,
		      uint64_t *to)
{
	struct image *image = &store->image;

	*from = bytes;
	*to = 0;
	for (uint64_t at = 0; at < bytes; at += FORMAT_PAGE_BYTES) {
		if (!image_take(store, file, off + at, image->piece + at)) {
			memset(image->piece + at, 0, FORMAT_PAGE_BYTES);
			continue;
		}
		*from = at < *from ? at : *from;
		*to = at + FORMAT_PAGE_BYTES;
	}
	if (*from > *to)
		*from = *to = 0;
	uint32_t *crc = crc_at(store, file, off);
	if (!*to && bytes == MANIFEST_PART_BYTES)
		*crc = zero_crc(image);
	else
		*crc = (uint32_t)crc32_z(off % MANIFEST_PART_BYTES ? *crc : 0, image->piece, bytes);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Skips parts of local memory that were never touched, but not the last one. No page of these is saved. */
static uint64_t skip_holes(struct store *store, uint64_t off)
{
	struct image_file *kept = &store->image.files[FORMAT_MEMORY];
	/* The file does not know which pages of a private copy were touched. */
	uint64_t data = log_is_on(&store->log)
				? off
				: calls_find_data(store->fds[FORMAT_MEMORY], off, kept->bytes);

	for (; off + MANIFEST_PART_BYTES <= data && off + MANIFEST_PART_BYTES < kept->bytes;
	     off += MANIFEST_PART_BYTES)
		*crc_at(store, FORMAT_MEMORY, off) = zero_crc(&store->image);
	return off;
}

static void next_of_file(struct store *store, enum format_file file, struct store_piece *piece)
{
	struct image *image = &store->image;
	struct image_file *kept = &image->files[file];
	uint64_t from, to;

	/* The first piece has the first page, which is never zero. */
	if (file == FORMAT_MEMORY && image->off)
		image->off = skip_holes(store, image->off);
	uint64_t bytes = least(kept->bytes - image->off, is_table(file) ? TABLE_BYTES : MANIFEST_PART_BYTES);
	take_part(store, file, image->off, bytes, &from, &to);
	piece->file = opening_names[file];
	piece->file_bytes = kept->bytes;
	piece->off = image->off + from;
	piece->data = image->piece + from;
	piece->bytes = to - from;
	image->off += bytes;
	image_told(store, file, image->off - bytes, bytes);
	if (image->off == kept->bytes) {
		image->off = 0;
		image->at++;
	}
}

/* All of the journal is saved, so its checksums are known before it is read. */
static void sum_journal(struct store *store)
{
	const struct image_file *kept = &store->image.files[FORMAT_JOURNAL];

	for (uint64_t off = 0; off < kept->bytes; off += MANIFEST_PART_BYTES)
		*crc_at(store, FORMAT_JOURNAL, off) =
			(uint32_t)crc32_z(0, kept->saved + off, least(kept->bytes - off, MANIFEST_PART_BYTES));
}

static void next_of_manifest(struct store *store, struct store_piece *piece)
{
	struct image *image = &store->image;
	uint64_t bytes = manifest_bytes(image->manifest->n_parts), left = bytes - image->off;

	if (!image->off) {
		sum_journal(store);
		manifest_close(image->manifest);
	}
	piece->file = MANIFEST_NAME;
	piece->file_bytes = bytes;
	piece->off = image->off;
	piece->data = (const uint8_t *)image->manifest + image->off;
	piece->bytes = left < STORE_PIECE_BYTES ? left : STORE_PIECE_BYTES;
	image->off += piece->bytes;
	if (image->off == bytes) {
		image->off = 0;
		image->at++;
	}
}

void store_image_next(struct store *store, struct store_piece *piece)
{
	struct image *image = &store->image;

	assert(image_is_on(image) && image->at < N_FILES);
	if (order[image->at] == MANIFEST)
		next_of_manifest(store, piece);
	else
		next_of_file(store, (enum format_file)order[image->at], piece);
	piece->is_last = image->at == N_FILES;
}

bool store_image_is_long(const struct store *store)
{
	unsigned file = order[store->image.at];

	return file == MANIFEST || !is_table((enum format_file)file);
}

/* ---- the end ---- */

uint64_t store_image_held(const struct store *store)
{
	const struct image *image = &store->image;
	uint64_t n_saved = atomic_load_explicit(&image->n_saved, memory_order_relaxed);

	if (!image_is_on(image))
		return 0;
	return STORE_PIECE_BYTES + manifest_bytes(image->manifest->n_parts) + n_saved * FORMAT_PAGE_BYTES;
}

void store_image_end(struct store *store)
{
	struct image *image = &store->image;

	atomic_store_explicit(&image->is_on, false, memory_order_release);
	heap_free(store->heap, image->piece);
	heap_free(store->heap, image->manifest);
	image->piece = NULL;
	image->manifest = NULL;
}

void store_image_give_back(struct store *store)
{
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		image_give_back(store, file);
	atomic_store(&store->image.n_saved, 0);
}
