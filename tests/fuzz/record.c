/* Files of records: what replay, report and trace read. One that is accepted can be told as JSON, as a page and as
 * a trace; a replay of it fails at its first connection, as there is none here. */
#include <stdio.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/report/report.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

static int nobody(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	(void)ctx;
	(void)uid;
	*out = NULL;
	error->status = NPUMEM_UNAVAILABLE;
	snprintf(error->message, sizeof(error->message), "nobody is there");
	return NPUMEM_UNAVAILABLE;
}

static void replay(const char *path)
{
	struct npumem_error error = {.status = 0};
	const struct npumem_replay_result *result;
	struct npumem_replay *record;

	if (npumem_replay_open(path, &record, &error)) {
		if (!error.message[0])
			fuzz_fail("a record is refused without a reason");
		return;
	}
	if (!npumem_replay_run(record, 0, nobody, NULL, &result, &error))
		fuzz_fail("a replay with nobody");
	npumem_replay_close(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct npumem_error error = {.status = 0};
	const char *path = file_of(bytes, n);
	json_t *chronicle = chronicle_read(path, &error);
	static FILE *nowhere;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (!chronicle && !error.message[0])
		fuzz_fail("a record is refused without a reason");
	if (chronicle && (!page_write(nowhere, chronicle) || !trace_write(nowhere, chronicle)))
		fuzz_fail("a record that cannot be shown");
	memory_end();
	replay(path);
	return 0;
}
