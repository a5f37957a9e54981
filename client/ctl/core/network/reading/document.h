/* The JSON of a network as it is written: one operation after another, a list of them, or an object with tensors
 * and operations. */
#ifndef CTL_CORE_NETWORK_DOCUMENT_H
#define CTL_CORE_NETWORK_DOCUMENT_H

#include <jansson.h>
#include <stdio.h>

#include <npumem/types.h>

struct document {
	json_t *root;	    /* has all */
	json_t *whole;	    /* the object with "operations"; NULL: there is none */
	json_t *operations; /* an array */
	int *lines;	    /* where each operation begins; NULL: they are of one list */
};

/* Reads `file` to its end. 0; INVALID (line and column of the error in the JSON); RESOURCE_EXHAUSTED: it is too
 * large.
 */
int document_read(FILE *file, struct document *document, struct npumem_error *error);

#endif
