/* Places and tensors as JSON and as text, the same wherever they are shown. */
#ifndef CTL_CORE_OUTPUT_PRESENT_H
#define CTL_CORE_OUTPUT_PRESENT_H

#include <stdio.h>

#include <jansson.h>
#include <npumem/client.h>

enum { PRESENT_TEXT_BYTES = 128 };

/* A new object with the fields of plan and alloc. What does not apply is null. */
json_t *present_place(const struct npumem_place *place);
/* Adds the members of a tensor in the output of ls: name, uid, shape, dtype and others. */
void present_tensor(json_t **object, const struct npumem_tensor *tensor);
/* Both. */
json_t *present_whole(const struct npumem_tensor *tensor);
/* A new array of them. */
json_t *present_tensors(const struct npumem_tensor *const *list, unsigned n);
/* What an operation did. */
json_t *present_done(const struct npumem_done *done);

/* "[1,2,3,4]"; a matrix is "2 x 40, w 8". Returns `text`, PRESENT_TEXT_BYTES long. */
const char *present_shape(const struct npumem_place *place, char *text);
/* "fx8 Q.7" where there are frac_bits. */
const char *present_dtype(const struct npumem_place *place, char *text);
/* Its name, else its label. */
static inline const char *present_called(const struct npumem_tensor *tensor)
{
	return tensor->name[0] ? tensor->name : tensor->label;
}

/* "user:x" for another's, "(label)" for one with a label alone, "-" for one with neither. */
const char *present_name(const struct npumem_tensor *tensor, uint32_t uid, char *text);
/* The s of a plural: "%zu element%s". */
static inline const char *present_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}
/* Bytes over all NPUs. */
int64_t present_bytes(const struct npumem_place *place);

/* A line "  label    value" of a description; printf style. */
void present_line(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A line of text. On a terminal both are broken at blanks into lines of its width. */
void present_text(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The lines of a place: where it lies, strides, sizes, blocks. */
void present_lines(FILE *out, const struct npumem_place *place, const struct npumem_geometry *geometry);

/* What the daemon and its device are, for programs. */

/* A new object. */
json_t *facts_object(const struct npumem_info *info);
/* The part that has this geometry; NULL: none has. */
const char *facts_chip(const struct npumem_geometry *geometry);
/* A name, or "unknown" for NULL. */
const char *facts_name(const char *name);

#endif
