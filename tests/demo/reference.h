/* The model in plain float on the host: what the fixed-point accuracies are measured against. */
#ifndef DEMO_REFERENCE_H
#define DEMO_REFERENCE_H

#include "tests/demo/model.h"

/* Classifies the digits with the float weights in `directory` and counts the right answers. 0; or -1, with one
 * line on stderr. */
int reference_run(const char *directory, const struct model_digits *digits, unsigned *n_right);

#endif
