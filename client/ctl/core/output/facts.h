/* What the daemon and its device are, for programs. */
#ifndef CTL_CORE_FACTS_H
#define CTL_CORE_FACTS_H

#include <jansson.h>

#include <npumem/client.h>

/* A new object; NULL without memory. */
json_t *facts_object(const struct npumem_info *info);
/* The part that has this geometry; NULL: none has. */
const char *facts_chip(const struct npumem_geometry *geometry);
/* A name, or "unknown" for NULL. */
const char *facts_name(const char *name);

#endif
