/* A state that is being opened: shared by the files of the store until it is open. */
#ifndef STORE_OPENING_H
#define STORE_OPENING_H

#include <sys/stat.h>

#include "daemon/store/internal.h"

struct opening {
	const struct store_options *options;
	struct store *store;
	struct store_report *report;
	char *error;
	int directory; /* -1: none */
	uint8_t boot[FORMAT_ID_BYTES];
	uint64_t bytes[FORMAT_FILES]; /* lengths of the files */
	struct format_identity identities[FORMAT_FILES];
	uint32_t version, epoch; /* found in the journal */
	bool turning;		 /* the journal had FORMAT_TURNING */
	bool is_copy;
};

extern const char *const opening_names[FORMAT_FILES];

/* Writes the line of a failure, which begins with the file's name, and returns `status`. */
int opening_refuse(const struct opening *opening, enum format_file file, int status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a verdict on the state: sets the report's verdict and returns its status. */
int opening_judge(const struct opening *opening, enum format_file file, enum store_verdict verdict,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds a line to the report; lines beyond STORE_LINES_MAX are left out. */
void opening_tell(const struct opening *opening, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
