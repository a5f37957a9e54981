/* Typed looks into a JSON object. Invariant: every refusal says where, which key, what it is and what it should
 * be. */
#include "client/ctl/core/network/reading/load.h"

#include <string.h>

#include "client/ctl/core/words/words.h"

static const char *type_text(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a real number";
	case JSON_NULL:
		return "null";
	default:
		return "true or false";
	}
}

int keys_expected(struct keys *keys, const char *key, const char *expected)
{
	const json_t *value = json_object_get(keys->object, key);
	if (keys->status)
		return keys->status;
	if (!value)
		return keys->status = npumem_error_set(keys->error, NPUMEM_INVALID, "%s: \"%.40s\" is missing: %s",
						       keys->where, key, expected);
	return keys->status = npumem_error_set(keys->error, NPUMEM_INVALID, "%s: \"%.40s\" is %s; %s is expected",
					       keys->where, key, type_text(value), expected);
}

int keys_string(struct keys *keys, const char *key, const char **value)
{
	const json_t *json = json_object_get(keys->object, key);
	if (keys->status || !json)
		return keys->status;
	if (!json_is_string(json) || !*json_string_value(json))
		return keys_expected(keys, key, "a string that is not empty");
	*value = json_string_value(json);
	return 0;
}

int keys_needs(struct keys *keys, const char *key, const char **value)
{
	*value = NULL;
	return keys_string(keys, key, value) || *value ? keys->status : keys_expected(keys, key, "a string");
}

int keys_bool(struct keys *keys, const char *key, bool *value)
{
	const json_t *json = json_object_get(keys->object, key);
	if (keys->status || !json)
		return keys->status;
	if (!json_is_boolean(json))
		return keys_expected(keys, key, "true or false");
	*value = json_is_true(json);
	return 0;
}

int keys_count(struct keys *keys, const char *key, int64_t *value)
{
	const json_t *json = json_object_get(keys->object, key);
	if (keys->status || !json)
		return keys->status;
	if (!json_is_integer(json) || json_integer_value(json) < 0)
		return keys_expected(keys, key, "an integer from 0 on");
	*value = json_integer_value(json);
	return 0;
}

int keys_dims(struct keys *keys, const char *key, struct npumem_dims *value)
{
	const json_t *json = json_object_get(keys->object, key);
	int64_t numbers[4];
	if (keys->status || !json)
		return keys->status;
	if (json_is_array(json) && json_array_size(json) != 4)
		return keys->status = npumem_error_set(
			       keys->error, NPUMEM_INVALID, "%s: \"%.40s\" has %zu number%s; N,C,H,W are four",
			       keys->where, key, json_array_size(json), json_array_size(json) == 1 ? "" : "s");
	if (!json_is_array(json))
		return keys_expected(keys, key, "[N,C,H,W], a list of four integers");
	for (size_t i = 0; i < 4; i++) {
		const json_t *number = json_array_get(json, i);
		numbers[i] = json_integer_value(number);
		if (!json_is_integer(number) || numbers[i] < 0)
			return keys_expected(keys, key, "[N,C,H,W], four integers from 0 on,");
	}
	*value = (struct npumem_dims){numbers[0], numbers[1], numbers[2], numbers[3]};
	return 0;
}

int keys_name(struct keys *keys, const char *key, const char *what, int (*parse)(const char *),
	      const char *(*name)(int), int *value)
{
	const char *text = NULL;
	struct npumem_error why = {.status = 0};
	if (keys_string(keys, key, &text) || !text)
		return keys->status;
	*value = parse(text);
	if (*value)
		return 0;
	spec_no_such_name(what, text, name, &why);
	return keys->status =
		       npumem_error_set(keys->error, NPUMEM_INVALID, "%s: %.300s", keys->where, why.message);
}

int keys_check(struct keys *keys, const char *list, const char *more)
{
	char first[200], second[100];
	if (keys->status)
		return keys->status;
	json_t *object = (json_t *)(uintptr_t)keys->object;
	for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		char nearest[SUGGEST_TEXT_BYTES];
		struct suggest suggest;
		struct lists_word word;
		if (lists_find(list, key, true, &word) || lists_has(more, key))
			continue;
		suggest_init(&suggest, key);
		suggest_offer_list(&suggest, list);
		suggest_offer_list(&suggest, more);
		if (suggest.best[0])
			return keys->status =
				       npumem_error_set(keys->error, NPUMEM_INVALID, "%s: no key \"%.40s\"%s",
							keys->where, key, suggest_text(&suggest, nearest));
		return keys->status = npumem_error_set(
			       keys->error, NPUMEM_INVALID, "%s: no key \"%.40s\"; it takes %s%s%s", keys->where,
			       key, lists_text(list, ", ", "", first, sizeof(first)), *list && *more ? ", " : "",
			       lists_text(more, ", ", "", second, sizeof(second)));
	}
	return 0;
}
