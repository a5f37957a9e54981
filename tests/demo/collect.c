/* The demo's last program: merges what the workers wrote, draws the confusion of the first format, and ends with
 * the accuracies of float and of both formats. A digit that is missing, doubled or unknown is an error: an
 * accuracy is never one over fewer digits. Needs no daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/demo/model.h"
#include "tests/demo/reference.h"

enum { FORMATS = 2 };
static const char *const formats[FORMATS] = {"fx8", "fx16"};

struct tally {
	bool *seen; /* by digit */
	unsigned n_seen, n_right;
	unsigned confusion[MODEL_CLASSES][MODEL_CLASSES]; /* [label][predicted] */
};

static int line_take(const char *line, const struct model_digits *digits, struct tally tallies[FORMATS])
{
	unsigned label, predicted;
	char format[8];
	size_t digit;

	if (strcmp(line, "ready\n") == 0)
		return 0;
	if (sscanf(line, "%7s %zu %u %u", format, &digit, &label, &predicted) != 4 || digit >= digits->n ||
	    predicted >= MODEL_CLASSES || label != ((const uint8_t *)digits->labels.data)[digit])
		return -1;
	for (unsigned i = 0; i < FORMATS; i++) {
		struct tally *tally = &tallies[i];

		if (strcmp(format, formats[i]) != 0)
			continue;
		if (tally->seen[digit])
			return -1;
		tally->seen[digit] = true;
		tally->n_seen++;
		tally->n_right += label == predicted;
		tally->confusion[label][predicted]++;
		return 0;
	}
	return -1;
}

static int file_take(const char *path, const struct model_digits *digits, struct tally tallies[FORMATS])
{
	FILE *file = fopen(path, "r");
	char line[256];
	int result = 0;

	if (!file) {
		perror(path);
		return -1;
	}
	while (result == 0 && fgets(line, sizeof(line), file)) {
		result = line_take(line, digits, tallies);
		if (result != 0)
			fprintf(stderr, "%s: a result that does not fit: %s", path, line);
	}
	fclose(file);
	return result;
}

static void confusion_print(const char *format, const struct tally *tally)
{
	printf("confusion of %s: a row per true digit, a column per answer\n       ", format);
	for (unsigned i = 0; i < MODEL_CLASSES; i++)
		printf("%4u", i);
	printf("\n");
	for (unsigned label = 0; label < MODEL_CLASSES; label++) {
		printf("  %4u ", label);
		for (unsigned i = 0; i < MODEL_CLASSES; i++) {
			if (tally->confusion[label][i] != 0)
				printf("%4u", tally->confusion[label][i]);
			else
				printf("   .");
		}
		printf("\n");
	}
}

static void accuracy_print(const char *what, unsigned n_right, size_t n)
{
	printf("accuracy %s: %.2f %%\n", what, 100.0 * n_right / (double)n);
}

static int collect(const char *directory, char **paths, int n_paths, const struct model_digits *digits,
		   struct tally tallies[FORMATS])
{
	unsigned n_right;

	for (int i = 0; i < n_paths; i++)
		if (file_take(paths[i], digits, tallies) != 0)
			return -1;
	for (unsigned i = 0; i < FORMATS; i++) {
		if (tallies[i].n_seen != digits->n) {
			fprintf(stderr, "demo_collect: %u of %zu digits were classified in %s\n",
				tallies[i].n_seen, digits->n, formats[i]);
			return -1;
		}
	}
	if (reference_run(directory, digits, &n_right) != 0)
		return -1;
	confusion_print(formats[0], &tallies[0]);
	printf("%zu digits that the training never saw\n", digits->n);
	accuracy_print("float", n_right, digits->n);
	for (unsigned i = 0; i < FORMATS; i++)
		accuracy_print(formats[i], tallies[i].n_right, digits->n);
	return 0;
}

int main(int argc, char **argv)
{
	static struct tally tallies[FORMATS];
	struct model_digits digits;
	int result = -1;

	if (argc < 3) {
		fprintf(stderr, "usage: demo_collect MODEL_DIRECTORY RESULTS…\n");
		return 2;
	}
	if (model_digits_read(argv[1], &digits) != 0)
		return 1;
	for (unsigned i = 0; i < FORMATS; i++)
		tallies[i].seen = calloc(digits.n, sizeof(*tallies[i].seen));
	if (tallies[0].seen && tallies[1].seen)
		result = collect(argv[1], argv + 2, argc - 2, &digits, tallies);
	else
		fprintf(stderr, "demo_collect: out of memory\n");
	for (unsigned i = 0; i < FORMATS; i++)
		free(tallies[i].seen);
	model_digits_deinit(&digits);
	return result != 0;
}
