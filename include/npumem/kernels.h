/* The kernels and parameters: the rows of kernels.def and params.def, as tables. */
#ifndef NPUMEM_KERNELS_H
#define NPUMEM_KERNELS_H

#include <npumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum npumem_kernel_number {
#define KERNEL(name, NAME, number, roles, parameters, types, summary) NPUMEM_KERNEL_##NAME = number,
#include <npumem/kernels.def>
#undef KERNEL
};

enum npumem_param_number {
#define PARAM(NAME, name, number, least, most, choices, fallback) NPUMEM_PARAM_##NAME = number,
#include <npumem/params.def>
#undef PARAM
};

enum {
	NPUMEM_OPERANDS_MAX = 40,    /* operands of one call */
	NPUMEM_PARAMS_MAX = 40,	     /* parameter numbers are below this */
	NPUMEM_PARAM_VALUES_MAX = 4, /* values of one parameter */
};

struct npumem_kernel_row {
	const char *name;
	int number;
	const char *roles, *parameters, *types, *summary;
};

struct npumem_param_row {
	const char *name;
	int number;
	unsigned least, most;
	const char *choices;
	const char *fallback; /* the default; empty: it must be given */
};

/* Rows in the order of kernels.def and params.def. */
extern const struct npumem_kernel_row npumem_kernel_rows[];
extern const unsigned npumem_n_kernel_rows;
extern const struct npumem_param_row npumem_param_rows[];
extern const unsigned npumem_n_param_rows;

/* What its integers are, in order; empty: there is one. Two are of h and w, four of the sides of a feature. */
static inline const char *npumem_param_order(const struct npumem_param_row *row)
{
	return row->least == 4 ? "top,bottom,left,right" : row->least == 2 ? "h,w" : "";
}

/* NULL: there is none. */
const struct npumem_kernel_row *npumem_kernel_by_name(const char *name);
const struct npumem_kernel_row *npumem_kernel_by_number(int number);
const struct npumem_param_row *npumem_param_by_name(const char *name);
const struct npumem_param_row *npumem_param_by_number(int number);

/* A parameter of a call. An enumeration's value is its place in `choices`, from 1. */
struct npumem_param {
	int number;
	unsigned n_values;
	int64_t values[NPUMEM_PARAM_VALUES_MAX];
};

/* Parses a name and a text, as "stride" and "1,2", or "relu" and "gen". 0, or INVALID; the message has the
 * parameter and its values. It does not clear `error`. */
int npumem_param_parse(const char *name, const char *text, struct npumem_param *param, struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
