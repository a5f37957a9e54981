/* The random test's traces, its worlds and its oracles, with a fuzzer in the place of the dice: requests of
 * several clients and uids, on threads that end in any order, against one client after the other. */
#include "tests/fuzz/fuzz.h"
#include "tests/random/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct trace trace;
	static struct run run;

	trace_read(bytes, n, &trace);
	run_trace(&trace, &run);
	if (!run_has_failed(&run) && trace.mode == TRACE_CHURN)
		run_check_owners(&run);
	else if (!run_has_failed(&run))
		run_compare(&run);
	if (run_has_failed(&run))
		fuzz_fail("%s: %s", trace_mode_name(trace.mode), run.wrong);
	run_free(&run);
	return 0;
}
