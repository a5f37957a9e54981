/* The journal's epoch comes last: until then all that is there counts as nothing. */
#include "daemon/store/create.h"

#include <errno.h>

#include "daemon/store/calls.h"
#include "daemon/store/cells.h"
#include "daemon/store/identity.h"
#include "daemon/store/runs.h"
#include "daemon/store/writes.h"

static uint64_t bytes_of(const struct opening *opening, enum format_file file)
{
	if (file == FORMAT_JOURNAL)
		return FORMAT_RECORDS_OFF;
	if (file != FORMAT_MEMORY)
		return 2 * FORMAT_PAGE_BYTES;
	return FORMAT_PAGE_BYTES +
	       ((opening->options->memory_bytes + FORMAT_PAGE_BYTES - 1) & ~(uint64_t)(FORMAT_PAGE_BYTES - 1));
}

static int create_file(struct opening *opening, enum format_file file, const uint8_t *state)
{
	struct store *store = opening->store;
	uint64_t bytes = bytes_of(opening, file);
	int status = mapping_open(&store->maps[file], store->hooks, store->fds[file], 0, bytes,
				  file == FORMAT_MEMORY && opening->options->sparse);

	if (!status && file == FORMAT_JOURNAL) {
		bytes += FORMAT_RECORDS_BYTES;
		status = mapping_open(&store->journal.records, store->hooks, store->fds[file], FORMAT_RECORDS_OFF,
				      FORMAT_RECORDS_BYTES, false);
	}
	if (status)
		return opening_refuse(opening, file, status, "%llu bytes cannot be taken: %s",
				      (unsigned long long)bytes, strerror(-status));
	identity_make(opening, file, state, store_page(store, file));
	if (file >= FORMAT_TENSORS)
		cells_make(store, (enum store_table)(file - FORMAT_TENSORS));
	status = calls_sync(store->hooks, store->fds[file]);
	return status ? opening_refuse(opening, file, status, "does not reach the disk: %s", strerror(-status))
		      : 0;
}

static int create_all(struct opening *opening)
{
	struct store *store = opening->store;
	uint8_t state[FORMAT_ID_BYTES];
	int status = calls_random(store->hooks, state, sizeof(state));

	for (unsigned file = FORMAT_FILES; !status && file-- > 0;)
		status = calls_truncate(store->hooks, store->fds[file], 0);
	if (status)
		return opening_refuse(opening, FORMAT_JOURNAL, status, "a state cannot be made: %s",
				      strerror(-status));
	for (enum format_file file = 0; !status && file < FORMAT_FILES; file++)
		status = create_file(opening, file, state);
	if (status)
		return status;
	status = writes_open(opening);
	if (!status)
		status = runs_open(opening);
	if (!status)
		status = identity_begin(opening);
	return status ? opening_refuse(opening, FORMAT_JOURNAL, status, "a state cannot be made: %s",
				       strerror(-status))
		      : 0;
}

int create_state(struct opening *opening)
{
	struct store *store = opening->store;
	int status = create_all(opening);

	/* The room is given back. Of mappings of what is cut off nothing is touched any more. */
	for (unsigned file = FORMAT_FILES; status && file-- > 0;)
		(void)calls_truncate(store->hooks, store->fds[file], 0);
	return status;
}
