/* Statuses, element types, layouts and the error object, for clients and the daemon. Enum values are the numbers
 * on the wire. 0 is no value of an enum but npumem_status: in a struct it means the default. */
#ifndef NPUMEM_TYPES_H
#define NPUMEM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum npumem_status {
#define STATUS(NAME, number, meaning) NPUMEM_##NAME = number,
#include <npumem/status.def>
#undef STATUS
};

enum npumem_dtype {
#define DTYPE(NAME, name, number, bytes, low, high, fixed) NPUMEM_##NAME = number,
#include <npumem/dtypes.def>
#undef DTYPE
};

enum npumem_layout {
#define LAYOUT(NAME, name, number) NPUMEM_##NAME = number,
#include <npumem/layouts.def>
#undef LAYOUT
};

enum npumem_mode {
#define MODE(NAME, name, number, lanes, bytes, fp32) NPUMEM_MODE_##NAME = number,
#include <npumem/modes.def>
#undef MODE
};

enum npumem_rounding {
	NPUMEM_CONVERGENT = 1, /* half to even */
	NPUMEM_UP = 2,	       /* half toward +infinity */
	NPUMEM_NEAREST = 3,    /* half away from zero */
};

/* Whether an allocation may lie in empty blocks of other tensors. */
enum npumem_reuse {
	NPUMEM_NEVER = 1,
	NPUMEM_IF_SAFE = 2,   /* if no kernel can destroy data of either tensor */
	NPUMEM_UNCHECKED = 3, /* if the daemon allows it; kernels may destroy the data */
};

/* The answer to an operation that uses bytes that were never written. */
enum npumem_uninitialized {
	NPUMEM_REFUSE = 1,
	NPUMEM_WARN = 2,
	NPUMEM_ALLOW = 3,
};

enum {
	NPUMEM_FRAC_BITS_MAX = 127,
	NPUMEM_NAME_BYTES_MAX = 63, /* of a tensor's name, without the final 0 */
	NPUMEM_MESSAGE_BYTES = 512,
	NPUMEM_FIELDS_MAX = 20,
	NPUMEM_FIELD_KEY_BYTES = 24,
	NPUMEM_FIELD_TEXT_BYTES = 104,
};

/* One fact of a refusal, for programs: `text` if `is_text`, else `number`. */
struct npumem_field {
	char key[NPUMEM_FIELD_KEY_BYTES];
	bool is_text;
	int64_t number;
	char text[NPUMEM_FIELD_TEXT_BYTES];
};

/* The reason of a refusal: a line for people, fields for programs. It owns nothing and may be copied.
 *
 * Functions that open a connection or take one (struct npumem *) clear it first, so it needs no initial value. The
 * functions of layout.h, numeric.h, kernels.h and npumem_replay_* do not: clear it before with npumem_error_clear,
 * or the first refusal stays in it. */
struct npumem_error {
	int status; /* enum npumem_status; 0: no refusal */
	char message[NPUMEM_MESSAGE_BYTES];
	unsigned n_fields;
	struct npumem_field fields[NPUMEM_FIELDS_MAX];
};

/* Clears `error`, whatever it holds. */
void npumem_error_clear(struct npumem_error *error);

/* Sets status and message (as printf; cut at NPUMEM_MESSAGE_BYTES), unless `error` has a status or is NULL.
 * Returns `status`, so that a check can end in `return npumem_error_set(...)`. */
int npumem_error_set(struct npumem_error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a field, unless `error` has a field `key` or NPUMEM_FIELDS_MAX fields, or is NULL. */
void npumem_error_number(struct npumem_error *error, const char *key, int64_t number);
void npumem_error_text(struct npumem_error *error, const char *key, const char *text);

/* The number of the field `key`; `fallback` if there is none. */
int64_t npumem_error_find(const struct npumem_error *error, const char *key, int64_t fallback);

/* Between enum values and their names on the command line and in JSON. NULL or 0: there is no such value. */
const char *npumem_status_name(int status);
const char *npumem_dtype_name(int dtype);
const char *npumem_layout_name(int layout);
const char *npumem_mode_name(int mode);
const char *npumem_rounding_name(int rounding);
const char *npumem_reuse_name(int reuse);
const char *npumem_uninitialized_name(int policy);
int npumem_dtype_parse(const char *name);
int npumem_layout_parse(const char *name);
int npumem_mode_parse(const char *name);
int npumem_rounding_parse(const char *name);
int npumem_reuse_parse(const char *name);
int npumem_uninitialized_parse(const char *name);

/* Parses "65536", "64K" or "64KiB", also with M, MiB, G and GiB; K is 1024. False: `text` is no such number, or it
 * has more than 63 bits. */
bool npumem_bytes_parse(const char *text, int64_t *bytes);
/* Writes a number of bytes exactly: "300 MiB", "1536". Returns `text`. */
enum { NPUMEM_BYTES_TEXT_BYTES = 32 };
const char *npumem_bytes_text(uint64_t bytes, char text[NPUMEM_BYTES_TEXT_BYTES]);

/* Bytes of one element; 0: there is no such type. */
unsigned npumem_dtype_bytes(int dtype);
/* True for fx8 and fx16, which have frac_bits. */
bool npumem_dtype_is_fixed(int dtype);
/* The range of a type's container; false for fp32 and for types that do not exist. */
bool npumem_dtype_range(int dtype, int64_t *low, int64_t *high);

/* The costs of an operation, computed from shapes and places. */
struct npumem_costs {
	int64_t macs;	       /* as a run counts them: without taps in the padding */
	int64_t dma_bytes;     /* bytes that a write, read, fill or copy moves */
	int64_t read_bytes;    /* of local memory; each operand's elements count once */
	int64_t written_bytes; /* of local memory */
	int64_t npus;	       /* NPUs that hold elements of the first output, or of the tensor that DMA moves */
	int64_t lanes;	       /* EU lanes that hold elements of the first output; 0 for DMA */
};

#ifdef __cplusplus
}
#endif
#endif
