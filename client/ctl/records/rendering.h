/* A record, of a file or of what is going on, as another file. */
#ifndef CTL_RENDERING_H
#define CTL_RENDERING_H

#include <stdio.h>

#include "client/ctl/core/words/args.h"
#include "client/ctl/ctl.h"

/* RECORD OUT, or OUT with --live, which records until it is interrupted. */
extern const struct option rendering_options[];
/* `write` puts a chronicle (core/report/chronicle.h) into OUT, or on stdout where that is "-"; false: it could not
 * be written. CTL_OK, CTL_FAILED, CTL_USAGE. */
int rendering_run(struct ctl *ctl, const struct args *args, bool (*write)(FILE *out, const json_t *chronicle));

#endif
