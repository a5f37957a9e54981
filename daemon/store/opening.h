/* A state that is being opened: what the files of the store need to know of each other until it is. */
#ifndef STORE_OPENING_H
#define STORE_OPENING_H

#include <sys/stat.h>

#include "daemon/store/internal.h"

struct opening {
	const struct store_options *options;
	struct store *store;
	struct store_report *report;
	char *error;
	int directory; /* -1: of none */
	uint8_t boot[FORMAT_ID_BYTES];
	uint64_t bytes[FORMAT_FILES]; /* that the files have */
	struct format_identity identities[FORMAT_FILES];
	uint32_t epoch; /* the state was found at */
	bool turning;	/* to it */
	bool is_copy;
};

extern const char *const opening_names[FORMAT_FILES];

/* Writes the line of a failure, begun with the file it is about, and returns `status`. */
int opening_refuse(const struct opening *opening, enum format_file file, int status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same of what the state was found to be: sets the report's verdict and returns its status. */
int opening_judge(const struct opening *opening, enum format_file file, enum store_verdict verdict,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds a line to the report; what is too much is left out. */
void opening_tell(const struct opening *opening, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
