/* What became of the state that the daemon started from, for as long as it runs. */
#ifndef SERVICE_RECOVERED_H
#define SERVICE_RECOVERED_H

#include <stdbool.h>
#include <stdint.h>

enum { RECOVERED_LINES_MAX = 24, RECOVERED_LINE_BYTES = 512 };

struct recover_report {
	uint32_t n_tensors, n_views, n_sessions, n_results; /* kept */
	uint32_t n_ended;   /* unnamed tensors whose session had no token, or tensors that were freed */
	uint32_t n_damaged; /* cells of tensors that cannot be read */
	uint32_t n_refused; /* tensors that cannot be what their cells say */
	uint32_t n_cut;	    /* tensors of which data is lost */
};

struct recovered {
	uint64_t at_ns; /* 0: there was no state, or nobody knows the time */
	bool was_clean; /* the process before had closed it */
	struct recover_report report;
	unsigned n_lines;
	char lines[RECOVERED_LINES_MAX][RECOVERED_LINE_BYTES]; /* for people; what is too much is left out */
};

#endif
