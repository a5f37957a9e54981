/* JSON values under way. Where a part is NULL, as its text is no UTF-8, the whole becomes NULL, and stays so: only
 * the end of it is to be asked. Each takes over the value that is added. */
#ifndef CTL_CORE_JSONS_H
#define CTL_CORE_JSONS_H

#include <stdint.h>

#include <jansson.h>

void jsons_append(json_t **array, json_t *value);
void jsons_put(json_t **object, const char *key, json_t *value);
/* All members of `more`. */
void jsons_merge(json_t **object, json_t *more);

/* null for NULL and "", for NPUMEM_ANY, and for what is not finite. */
json_t *jsons_text(const char *text);
json_t *jsons_integer(int64_t value);
json_t *jsons_real(double value);

/* A member of an object that is there: "" or 0 where it has none of this type. */
const char *jsons_string(const json_t *object, const char *key);
json_int_t jsons_number(const json_t *object, const char *key);

#endif
