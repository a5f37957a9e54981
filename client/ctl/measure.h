/* Numeric questions about actual numbers: files and tensors in place of shapes, judged for each frac_bits that
 * comes into question. */
#ifndef CTL_MEASURE_H
#define CTL_MEASURE_H

#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/ctl.h"

enum { MEASURE_CANDIDATES_MAX = 12, MEASURE_TEXT_BYTES = 160 };

struct measured {
	char role[NPUMEM_FIELD_KEY_BYTES];
	char source[MEASURE_TEXT_BYTES]; /* a file or a tensor */
	struct values values;		 /* real numbers */
	int dtype;			 /* fx8, fx16 */
	int64_t frac_bits;     /* chosen: the one that is given, the tensor's, else the most without clipping */
	bool is_weights, each; /* each: as formats_weights_sum has it */
	unsigned n;
	struct formats_candidate candidates[MEASURE_CANDIDATES_MAX];
	const char *
		sums[MEASURE_CANDIDATES_MAX]; /* what the kernel's sums do then; NULL: nothing was asked of them */
};

struct measure {
	int rounding;
	unsigned n;
	struct measured list[NPUMEM_OPERANDS_MAX];
	char texts[NPUMEM_OPERANDS_MAX][MEASURE_TEXT_BYTES];
};

/* Replaces each role=FILE or role=TENSOR among the words of `advise` by its shape, format and sum of weights, in
 * `words`, which has args->n_words. Connects where a tensor is named. CTL_OK, CTL_FAILED, CTL_USAGE. */
int measure_words(struct ctl *ctl, const struct args *args, struct measure *measure, const char **words);
/* One file or tensor by itself: list[0]. */
int measure_one(struct ctl *ctl, const struct args *args, struct measure *measure);

/* What the question's sums do with each candidate, the others as they are. */
void measure_ask(struct measure *measure, struct question *question);

json_t *measure_array(const struct measure *measure);
void measure_print(const struct measure *measure);

#endif
