/* The daemon's counters for programs: as JSON, and in Prometheus' text exposition format. */
#ifndef CTL_CORE_METRICS_H
#define CTL_CORE_METRICS_H

#include <jansson.h>
#include <stdio.h>

#include <npumem/client.h>

/* A new object with everything. */
json_t *metrics_json(const struct npumem_details *details);

/* Version 0.0.4 of the format: HELP and TYPE once per metric, its samples together. */
void metrics_prometheus(FILE *out, const struct npumem_details *details);

/* 1 - largest free extent / free bytes, both of one NPU; 0 where nothing is free. */
double metrics_fragmentation(const struct npumem_details *details);

/* Answers of one kind in all, and the refused ones among them. */
uint64_t metrics_answers(const struct npumem_call_stat *call);
uint64_t metrics_refusals(const struct npumem_call_stat *call);
/* A time in us that this part (0.5: the median) of the answers did not reach: the bound of its bucket; a HUGE_VAL
 * where that is the last one. */
double metrics_quantile(const struct npumem_call_stat *call, double part);

#endif
