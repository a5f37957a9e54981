/* Prometheus' text of many devices as one: a metric once, its samples together, each with a label device=NAME. */
#ifndef CTL_CORE_DEVICES_LABELS_H
#define CTL_CORE_DEVICES_LABELS_H

#include <stdio.h>

struct labelled {
	const char *device;
	const char *text; /* what metrics_prometheus wrote; NULL: it did not answer */
};

/* npumem_up says of each whether it answered. */
void labels_print(FILE *out, const struct labelled *list, unsigned n);

#endif
