/* Features as text. Every n looks like the first but for its number, so that few of them are enough. */
#include "client/ctl/core/pictures/picture_features.h"

#include <inttypes.h>

enum { FEATURES_LINES = 64, FEATURES_LEFT = 4, FEATURES_WIDTH = 80 };

static int digits(int64_t value)
{
	return snprintf(NULL, 0, "%" PRId64, value);
}

static void features_row(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
			 int64_t n, int64_t row, int64_t n_npus, int cell)
{
	char text[64];
	fprintf(out, "%*s", FEATURES_LEFT, "");
	for (int64_t npu = 0; npu < n_npus; npu++) {
		int64_t c = row * geometry->n_npus + npu - p->start_npu;
		snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64, n, c);
		fprintf(out, "%-*s", npu + 1 < n_npus ? cell : 0, c < 0 || c >= p->shape.c ? "." : text);
	}
	fputc('\n', out);
}

void picture_features(FILE *out, const struct npumem_geometry *geometry, const struct npumem_place *p,
		      unsigned width)
{
	int cell = digits(p->shape.n - 1) + digits(p->shape.c - 1) + 3;
	int64_t room = ((int64_t)(width ? width : FEATURES_WIDTH) - FEATURES_LEFT) / cell;
	int64_t n_npus = geometry->n_npus < room ? geometry->n_npus : room < 1 ? 1 : room, lines = 0;
	fprintf(out, "n,c: a feature   . : an empty block\n");
	if (n_npus < geometry->n_npus)
		fprintf(out, "NPU 0 to %" PRId64 " of %" PRId64 "\n", n_npus - 1, geometry->n_npus);
	fputs("NPU ", out);
	for (int64_t npu = 0; npu < n_npus; npu++)
		fprintf(out, "%-*" PRId64, npu + 1 < n_npus ? cell : 0, npu);
	fputc('\n', out);
	for (int64_t n = 0; n < p->shape.n; n++)
		for (int64_t row = 0; row < p->channels_per_npu; row++) {
			if (lines++ >= FEATURES_LINES) {
				fprintf(out, "and so on, to n %" PRId64 "\n", p->shape.n - 1);
				return;
			}
			features_row(out, geometry, p, n, row, n_npus, cell);
		}
}
