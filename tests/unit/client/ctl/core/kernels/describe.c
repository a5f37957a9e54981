#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "tests/support/test.h"

static const char *shape(const char *kernel, const char *role)
{
	static char text[DESCRIBE_SHAPE_BYTES];
	return describe_shape(npumem_kernel_by_name(kernel), role, text);
}

TEST(every_kernel_has_its_provenance)
{
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		const struct describe_provenance *from = describe_provenance(&npumem_kernel_rows[i]);
		ck_assert_msg(from && *from->rounding && *from->source, "%s has no row in provenance.def",
			      npumem_kernel_rows[i].name);
	}
}

TEST(shapes)
{
	ck_assert_str_eq(shape("conv2d", "weights"), "[I,O,kh,kw]");
	ck_assert_str_eq(shape("conv2d", "out"), "[N,O,Ho,Wo]");
	ck_assert_str_eq(shape("lstm_cell", "prev_out"), "[1,M,1,1]");
	ck_assert_str_eq(shape("lstm_cell", "out"), "[T,M,1,1] or [1,M,1,1]");
	ck_assert_str_eq(shape("lstm_cell", "weights"), "[4,M,1,K+M]");
	ck_assert_str_eq(shape("rnn_dense", "weights"), "[K,M,1,1]");
	ck_assert_str_eq(shape("relu", "in"), "");
}

TEST(for_programs)
{
	json_t *object = describe_object(npumem_kernel_by_name("lstm_cell"));
	json_t *act = NULL, *param;
	size_t i;
	json_array_foreach(json_object_get(object, "parameters"), i,
			   param) if (!strcmp(json_string_value(json_object_get(param, "name")), "act")) act =
		param;
	ck_assert(act && json_is_null(json_object_get(act, "default")));
	ck_assert_uint_eq(json_array_size(json_object_get(act, "choices")), 3);
	ck_assert_uint_eq(json_array_size(json_object_get(object, "roles")), 9);
	json_decref(object);
}

/* No line is longer than asked for, where no word is; nothing is lost. */
TEST(lines)
{
	char *text = NULL;
	size_t bytes = 0;
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		FILE *out = open_memstream(&text, &bytes);
		describe_print(out, &npumem_kernel_rows[i], 50);
		fclose(out);
		ck_assert(strstr(text, npumem_kernel_rows[i].name) && strstr(text, "rounding"));
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			ck_assert_msg(strlen(line) <= 50, "%s", line);
		free(text);
	}
}
