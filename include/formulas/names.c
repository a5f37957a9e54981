/* Names of the enumerations, and what is fixed about each element type: the rows of the .def files as tables.
 * A value without a row has no name, no size and no range. */
#include <string.h>

#include <npumem/types.h>

struct name {
	int number;
	const char *text;
};

static const struct name status_names[] = {
#define STATUS(NAME, number, meaning) {number, #NAME},
#include <npumem/status.def>
#undef STATUS
};
static const struct name dtype_names[] = {
#define DTYPE(NAME, name, number, bytes, low, high, fixed) {number, name},
#include <npumem/dtypes.def>
#undef DTYPE
};
static const struct name layout_names[] = {
#define LAYOUT(NAME, name, number) {number, #name},
#include <npumem/layouts.def>
#undef LAYOUT
};
static const struct name mode_names[] = {
#define MODE(NAME, name, number, lanes, bytes, fp32) {number, name},
#include <npumem/modes.def>
#undef MODE
};
static const struct name rounding_names[] = {
	{NPUMEM_CONVERGENT, "convergent"},
	{NPUMEM_UP, "up"},
	{NPUMEM_NEAREST, "nearest"},
};
static const struct name reuse_names[] = {
	{NPUMEM_NEVER, "never"},
	{NPUMEM_IF_SAFE, "if-safe"},
	{NPUMEM_IF_SAFE, "if_safe"}, /* as the enumerator is written */
	{NPUMEM_UNCHECKED, "unchecked"},
};
static const struct name uninitialized_names[] = {
	{NPUMEM_REFUSE, "refuse"},
	{NPUMEM_WARN, "warn"},
	{NPUMEM_ALLOW, "allow"},
};

static const char *text_of(const struct name *names, size_t n, int number)
{
	for (size_t i = 0; i < n; i++) {
		if (names[i].number == number)
			return names[i].text;
	}
	return NULL;
}

static int number_of(const struct name *names, size_t n, const char *text)
{
	for (size_t i = 0; text && i < n; i++) {
		if (!strcmp(names[i].text, text))
			return names[i].number;
	}
	return 0;
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *npumem_status_name(int status)
{
	return text_of(status_names, COUNT(status_names), status);
}

const char *npumem_dtype_name(int dtype)
{
	return text_of(dtype_names, COUNT(dtype_names), dtype);
}

const char *npumem_layout_name(int layout)
{
	return text_of(layout_names, COUNT(layout_names), layout);
}

const char *npumem_mode_name(int mode)
{
	return text_of(mode_names, COUNT(mode_names), mode);
}

const char *npumem_rounding_name(int rounding)
{
	return text_of(rounding_names, COUNT(rounding_names), rounding);
}

const char *npumem_reuse_name(int reuse)
{
	return text_of(reuse_names, COUNT(reuse_names), reuse);
}

const char *npumem_uninitialized_name(int policy)
{
	return text_of(uninitialized_names, COUNT(uninitialized_names), policy);
}

int npumem_dtype_parse(const char *name)
{
	return number_of(dtype_names, COUNT(dtype_names), name);
}

int npumem_layout_parse(const char *name)
{
	return number_of(layout_names, COUNT(layout_names), name);
}

int npumem_mode_parse(const char *name)
{
	return number_of(mode_names, COUNT(mode_names), name);
}

int npumem_rounding_parse(const char *name)
{
	return number_of(rounding_names, COUNT(rounding_names), name);
}

int npumem_reuse_parse(const char *name)
{
	return number_of(reuse_names, COUNT(reuse_names), name);
}

int npumem_uninitialized_parse(const char *name)
{
	return number_of(uninitialized_names, COUNT(uninitialized_names), name);
}

struct dtype_row {
	unsigned bytes;
	int64_t low, high;
	bool fixed;
};

static const struct dtype_row dtype_rows[] = {
#define DTYPE(NAME, name, number, bytes, low, high, fixed) [number] = {bytes, low, high, fixed},
#include <npumem/dtypes.def>
#undef DTYPE
};

/* 0 is no type's number: its row has nothing. */
static const struct dtype_row *dtype_row(int dtype)
{
	return &dtype_rows[dtype > 0 && (size_t)dtype < COUNT(dtype_rows) ? dtype : 0];
}

unsigned npumem_dtype_bytes(int dtype)
{
	return dtype_row(dtype)->bytes;
}

bool npumem_dtype_is_fixed(int dtype)
{
	return dtype_row(dtype)->fixed;
}

bool npumem_dtype_range(int dtype, int64_t *low, int64_t *high)
{
	const struct dtype_row *row = dtype_row(dtype);
	if (row->low == row->high)
		return false;
	*low = row->low;
	*high = row->high;
	return true;
}
