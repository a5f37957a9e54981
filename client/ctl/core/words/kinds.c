/* A file's kind is that of its first bytes. */
#include "client/ctl/core/words/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { KINDS_BYTES = 16 };

static const struct kind {
	const char *magic; /* NULL: of no file */
	const char *needed, *is, *takers;
} kinds[] = {
	{"\x93NUMPY", "a NumPy array", "a NumPy array", ", which npumemctl load, write, diff and numeric take"},
	{"npumem record", "a recording", "a recording", ", which npumemctl replay, report and trace take"},
	{"{", "a network", "JSON", ", which npumemctl plan, submit and check take"},
	{"[", "a network", "JSON", ", which npumemctl plan, submit and check take"},
	{NULL, "a file of golden vectors", "JSON", "conform"},
	{"<", "a report", "XML", ", which npumemctl merge takes"},
	{"PK\3\4", NULL, "a zip archive", ", of which npumemctl load and write take an array as FILE.npz:NAME"},
	{"\x8", NULL, "an ONNX model", ", which npumem-import takes"},
	{"\x89PNG", NULL, "a PNG picture", ""},
	{NULL, "a state directory", "a directory", "state"},
};
static const struct kind empty = {NULL, NULL, "an empty file", ""}, folder = {NULL, NULL, "a directory", ""},
			 other = {NULL, NULL, "a file of another kind", ""};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const struct kind *kind_of_command(const char *command)
{
	for (unsigned i = 0; i < N_KINDS; i++)
		if (kinds[i].needed && strstr(kinds[i].takers, command))
			return &kinds[i];
	return NULL;
}

/* NULL: it cannot be read. A pipe is not opened, as that waits for its writer. */
static const struct kind *kind_of_file(const char *path)
{
	char text[KINDS_BYTES + 1] = "";
	const char *begin = text;
	struct stat about;
	if (stat(path, &about) || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)))
		return NULL;
	FILE *file = fopen(path, "rb");
	size_t n = file ? fread(text, 1, KINDS_BYTES, file) : 0;
	if (file)
		fclose(file);
	if (!n)
		return S_ISDIR(about.st_mode) ? &folder : file ? &empty : NULL;
	while (isspace((unsigned char)*begin))
		begin++;
	for (unsigned i = 0; i < N_KINDS; i++)
		if (kinds[i].magic && !strncmp(begin, kinds[i].magic, strlen(kinds[i].magic)))
			return &kinds[i];
	return &other;
}

void kinds_explain(const char *command, const char *path, struct npumem_error *error)
{
	const struct kind *needed = kind_of_command(command), *kind;
	size_t n = strlen(path);
	if (!needed || strncmp(error->message, path, n) || error->message[n] != ':' ||
	    !(kind = kind_of_file(path)) || !strcmp(kind->is, needed->is) || strstr(kind->takers, command))
		return;
	int status = error->status;
	npumem_error_clear(error);
	npumem_error_set(error, status, "%.200s is not %s: it is %s%s", path, needed->needed, kind->is,
			 kind->takers);
}
