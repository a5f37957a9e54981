#include "client/ctl/core/output/output.h"

#include <math.h>

#include <npumem/layout.h>

/* jansson takes NULL as what cannot be added to, or added. */
static void keep(json_t **whole, int failed)
{
	if (!failed)
		return;
	json_decref(*whole);
	*whole = NULL;
}

void jsons_append(json_t **array, json_t *value)
{
	keep(array, json_array_append_new(*array, value));
}

void jsons_put(json_t **object, const char *key, json_t *value)
{
	keep(object, json_object_set_new(*object, key, value));
}

void jsons_merge(json_t **object, json_t *more)
{
	keep(object, json_object_update(*object, more));
	json_decref(more);
}

json_t *jsons_text(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

json_t *jsons_integer(int64_t value)
{
	return value == NPUMEM_ANY ? json_null() : json_integer(value);
}

json_t *jsons_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

const char *jsons_string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

json_int_t jsons_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}
