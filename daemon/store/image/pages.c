/* A page is in place until it was read, or until a thread that is about to change it has copied it. Meanwhile
 * another thread waits for the copy of that one page. Invariant: while there is an image no thread changes a page
 * that is in place. */
#include "daemon/store/image/pages.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "daemon/store/files/calls.h"

enum { IN_PLACE, BUSY, SAVED, GONE /* read, or zero */ };

static bool is_zero(const uint8_t *page)
{
	uint64_t words[8], any = 0;

	for (size_t i = 0; i < FORMAT_PAGE_BYTES && !any; i += sizeof(words)) {
		memcpy(words, page + i, sizeof(words));
		for (unsigned k = 0; k < 8; k++)
			any |= words[k];
	}
	return !any;
}

/* True: this thread copies the page. False: the page is no longer in place. */
static bool claim(_Atomic uint8_t *state)
{
	uint8_t found = IN_PLACE;

	if (atomic_compare_exchange_strong_explicit(state, &found, BUSY, memory_order_acquire,
						    memory_order_acquire))
		return true;
	while (atomic_load_explicit(state, memory_order_acquire) == BUSY)
		sched_yield();
	return false;
}

static void save(struct store *store, enum format_file file, uint64_t page, const uint8_t *from)
{
	struct image_file *kept = &store->image.files[file];
	bool is_kept = !is_zero(from);

	if (is_kept) {
		memcpy(kept->saved + page * FORMAT_PAGE_BYTES, from, FORMAT_PAGE_BYTES);
		atomic_fetch_add_explicit(&store->image.n_saved, 1, memory_order_relaxed);
	}
	atomic_store_explicit(&kept->states[page], is_kept ? SAVED : GONE, memory_order_release);
}

void image_before(struct store *store, enum format_file file, uint64_t off, uint64_t bytes)
{
	struct image_file *kept = &store->image.files[file];
	uint64_t end = off + bytes < kept->bytes ? off + bytes : kept->bytes;
	uint64_t below = atomic_load_explicit(&kept->below, memory_order_acquire);
	uint64_t page = (off > below ? off : below) / FORMAT_PAGE_BYTES;

	for (; page * FORMAT_PAGE_BYTES < end; page++)
		if (atomic_load_explicit(&kept->states[page], memory_order_acquire) < SAVED &&
		    claim(&kept->states[page]))
			save(store, file, page, store->maps[file].at + page * FORMAT_PAGE_BYTES);
}

void image_before_cell(struct store *store, enum store_table table, uint32_t index)
{
	uint64_t bytes = store->cell_bytes[table];

	if (image_is_on(&store->image))
		image_before(store, format_file_of(table), FORMAT_PAGE_BYTES + index * bytes, bytes);
}

void image_replace(struct store *store, enum format_file file, uint64_t off, const void *from, uint64_t bytes)
{
	struct image_file *kept = &store->image.files[file];

	for (uint64_t done = 0; done < bytes; done += FORMAT_PAGE_BYTES) {
		if (from)
			save(store, file, (off + done) / FORMAT_PAGE_BYTES, (const uint8_t *)from + done);
		else
			atomic_store_explicit(&kept->states[(off + done) / FORMAT_PAGE_BYTES], GONE,
					      memory_order_relaxed);
	}
}

bool image_take(struct store *store, enum format_file file, uint64_t off, uint8_t *to)
{
	struct image_file *kept = &store->image.files[file];
	_Atomic uint8_t *state = &kept->states[off / FORMAT_PAGE_BYTES];
	bool is_there;

	if (claim(state)) {
		is_there = !is_zero(store->maps[file].at + off);
		if (is_there)
			memcpy(to, store->maps[file].at + off, FORMAT_PAGE_BYTES);
		atomic_store_explicit(state, GONE, memory_order_release);
		return is_there;
	}
	is_there = atomic_load_explicit(state, memory_order_acquire) == SAVED;
	if (!is_there)
		return false;
	memcpy(to, kept->saved + off, FORMAT_PAGE_BYTES);
	atomic_fetch_sub_explicit(&store->image.n_saved, 1, memory_order_relaxed);
	return true;
}

/* ---- room ---- */

static uint64_t states_bytes(uint64_t bytes)
{
	return (bytes / FORMAT_PAGE_BYTES + FORMAT_PAGE_BYTES) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1);
}

static void unmap(struct image_file *kept)
{
	if (kept->saved)
		munmap(kept->saved, kept->room + states_bytes(kept->room));
	*kept = (struct image_file){0};
}

int image_keep(struct store *store, enum format_file file, uint64_t bytes)
{
	struct image_file *kept = &store->image.files[file];
	void *at;

	if (kept->room < bytes) {
		unmap(kept);
		int status = calls_map_own(store->hooks, bytes + states_bytes(bytes), &at);
		if (status)
			return status;
		kept->saved = at;
		kept->room = bytes;
		kept->states = (_Atomic uint8_t *)(kept->saved + bytes);
	}
	kept->bytes = bytes;
	return 0;
}

/* The states stay, so that no thread saves one of these pages again. */
void image_told(struct store *store, enum format_file file, uint64_t off, uint64_t bytes)
{
	struct image_file *kept = &store->image.files[file];

	atomic_store_explicit(&kept->below, off + bytes, memory_order_release);
	(void)madvise(kept->saved + off, bytes, MADV_DONTNEED);
}

/* The kernel makes the pages zero; if that fails, at least the states must be. */
void image_give_back(struct store *store, enum format_file file)
{
	struct image_file *kept = &store->image.files[file];

	if (kept->saved && madvise(kept->saved, kept->room + states_bytes(kept->room), MADV_DONTNEED))
		memset((void *)kept->states, 0, states_bytes(kept->room));
	atomic_store(&kept->below, 0);
}

void image_deinit(struct store *store)
{
	for (enum format_file file = 0; file < FORMAT_FILES; file++)
		unmap(&store->image.files[file]);
}
