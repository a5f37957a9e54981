/* What a device holds while a record runs. */
#ifndef CTL_CORE_REPORT_MEMORY_H
#define CTL_CORE_REPORT_MEMORY_H

#include <jansson.h>

/* An array: {"at": ns, "data", "dummy", "padding", "empty": bytes of all NPUs} after each request that changed
 * them, the first of what was there before the record. */
json_t *memory_of(const json_t *entries);

#endif
