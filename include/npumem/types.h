/* The vocabulary that users, client and daemon share: statuses, element types, layouts, and the error object.
 * Every enum value is the number the wire carries (proto/ asserts it). 0 is never a valid value, so that a
 * zeroed struct asks for the default. */
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

/* How far an allocation may enter other tensors' empty blocks. */
enum npumem_reuse {
	NPUMEM_NEVER = 1,
	NPUMEM_IF_SAFE = 2,
	NPUMEM_UNCHECKED = 3,
};

/* What becomes of an operation that would use bytes never written. */
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

/* One fact of a refusal, for programs: a number, or a text where `is_text`. */
struct npumem_field {
	char key[NPUMEM_FIELD_KEY_BYTES];
	bool is_text;
	int64_t number;
	char text[NPUMEM_FIELD_TEXT_BYTES];
};

/* Why something was refused: one line for people, fields for programs. Owns nothing; may be copied.
 * Set by the first refusal only: the functions below leave an error that is already set as it is. */
struct npumem_error {
	int status; /* enum npumem_status; 0 while nothing is wrong */
	char message[NPUMEM_MESSAGE_BYTES];
	unsigned n_fields;
	struct npumem_field fields[NPUMEM_FIELDS_MAX];
};

/* Clears `error`, which need not have been set before. */
void npumem_error_clear(struct npumem_error *error);

/* Sets status and message (printf style; cut at NPUMEM_MESSAGE_BYTES). Returns `status`, so that a check
 * can end in `return npumem_error_set(...)`. `error` may be NULL. */
int npumem_error_set(struct npumem_error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a field; beyond NPUMEM_FIELDS_MAX it is dropped. `error` may be NULL. */
void npumem_error_number(struct npumem_error *error, const char *key, int64_t number);
void npumem_error_text(struct npumem_error *error, const char *key, const char *text);

/* The number of field `key`, or `fallback`. */
int64_t npumem_error_find(const struct npumem_error *error, const char *key, int64_t fallback);

/* Names as the command line and JSON have them; NULL or 0 for a value that does not exist. */
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

/* "65536", "64K" or "64KiB"; likewise M, MiB, G and GiB, of 1024. False where `text` is no such number of 63 bits.
 */
bool npumem_bytes_parse(const char *text, int64_t *bytes);
/* The other way round, exactly: "300 MiB", "1536". Returns `text`. */
enum { NPUMEM_BYTES_TEXT_BYTES = 32 };
const char *npumem_bytes_text(uint64_t bytes, char text[NPUMEM_BYTES_TEXT_BYTES]);

/* Bytes of one element; 0 for a value that does not exist. */
unsigned npumem_dtype_bytes(int dtype);
/* True for fx8 and fx16, the types that carry frac_bits. */
bool npumem_dtype_is_fixed(int dtype);
/* The container's range; false for fp32 and unknown types, which have none. */
bool npumem_dtype_range(int dtype, int64_t *low, int64_t *high);

/* What an operation would cost: facts of shapes and places. */
struct npumem_costs {
	int64_t macs;	    /* as a run counts them: without padded taps */
	int64_t dma_bytes;  /* that a write, read, fill or copy moves */
	int64_t read_bytes; /* of local memory, each operand's elements once */
	int64_t written_bytes;
	int64_t npus;  /* that hold elements of the first output, or of what DMA moves */
	int64_t lanes; /* EU lanes that do; of DMA 0 */
};

#ifdef __cplusplus
}
#endif
#endif
