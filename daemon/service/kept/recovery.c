/* Cells and sessions as all parts of a recovery find them, and what it says. */
#include "daemon/service/kept/recovery.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/service/kept/tensor_cell.h"

void recovery_say(const struct recovery *recovery, bool is_loss, const char *format, ...)
{
	char line[RECOVERY_LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	recovery->host->say(recovery->host->ctx, is_loss, line);
}

void recovery_drop(struct recovery *recovery, enum store_table table, uint32_t cell, uint64_t stamp)
{
	persist_make_room(recovery->service, 1);
	store_drop(recovery->store, table, cell, stamp);
}

bool recovery_drop_damaged(struct recovery *recovery, enum store_table table, uint32_t cell)
{
	if (!store_is_lost(recovery->store, table, cell))
		return false;
	recovery_drop(recovery, table, cell, 0);
	return true;
}

bool recovery_is_replay(const struct recovery *recovery)
{
	return recovery->service->persist.is_replay;
}

int recovery_by_id(const void *a, const void *b)
{
	const struct recovery_session *one = a, *other = b;

	return one->id < other->id ? -1 : one->id > other->id;
}

struct session *recovery_session(const struct recovery *recovery, uint64_t id)
{
	const struct recovery_session *found =
		recovery->n_sessions
			? bsearch(&(struct recovery_session){.id = id}, recovery->sessions, recovery->n_sessions,
				  sizeof(struct recovery_session), recovery_by_id)
			: NULL;

	return found ? found->session : NULL;
}

bool recovery_tensor(const struct recovery *recovery, uint32_t slot, struct persist_tensor *kept)
{
	size_t bytes;
	const uint8_t *cell = store_cell(recovery->store, STORE_TENSORS, slot, &bytes);

	return cell && tensor_cell_unpack(cell, bytes, slot, kept);
}
