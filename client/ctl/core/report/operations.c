/* Names are followed through the record as the daemon knew them when it answered, so that a row says handles
 * alone. */
#include "client/ctl/core/report/report.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <npumem/kernels.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/output/output.h"

enum { LOOK_BACK = 512 /* rows, for what was waited for */ };

struct reading {
	json_t *rows;
	json_t *handles; /* "uid:name" to handle */
	json_t *names;	 /* handle to name */
	json_t *sizes;	 /* handle to bytes of data */
	const json_t *entry;
};

/* ---- names ---- */

static void learn(const struct reading *reading, const json_t *tensor)
{
	char key[160];
	const json_t *place = json_object_get(tensor, "place");
	json_object_set_new(reading->sizes, jsons_string(tensor, "handle"),
			    json_integer(jsons_number(json_object_get(place, "blocks"), "data")));
	if (!*jsons_string(tensor, "name")) {
		if (*jsons_string(tensor, "label"))
			json_object_set_new(reading->names, jsons_string(tensor, "handle"),
					    json_string(jsons_string(tensor, "label")));
		return;
	}
	snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT ":%.120s", jsons_number(tensor, "uid"),
		 jsons_string(tensor, "name"));
	json_object_set_new(reading->handles, key, json_string(jsons_string(tensor, "handle")));
	json_object_set_new(reading->names, jsons_string(tensor, "handle"),
			    json_string(jsons_string(tensor, "name")));
}

static void learn_all(const struct reading *reading, const json_t *answer)
{
	const json_t *tensor;
	size_t i;
	json_array_foreach(json_object_get(json_object_get(answer, "allocated"), "tensors"), i, tensor)
		learn(reading, tensor);
	if (json_is_true(json_object_get(reading->entry, "before")))
		json_array_foreach(json_object_get(json_object_get(answer, "list"), "tensors"), i, tensor)
			learn(reading, tensor);
	tensor = json_object_get(answer, "tensor");
	if (tensor)
		learn(reading, tensor);
}

static const char *handle_of(const struct reading *reading, const json_t *ref)
{
	char key[160];
	const char *name = jsons_string(ref, "name");
	if (*jsons_string(ref, "handle"))
		return jsons_string(ref, "handle");
	if (strchr(name, ':'))
		snprintf(key, sizeof(key), "%.150s", name);
	else
		snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT ":%.120s", jsons_number(reading->entry, "uid"),
			 name);
	return jsons_string(reading->handles, key);
}

/* ---- rows ---- */

static void add_tensor(const struct reading *reading, json_t *tensors, const char *role, const json_t *ref,
		       bool writes)
{
	const char *handle = ref ? handle_of(reading, ref) : "";
	if (ref)
		json_array_append_new(tensors, json_pack("[s, s, b, s]", role, handle, writes,
							 jsons_string(reading->names, handle)));
}

static void kernel_name(const char *enumerator, char name[64])
{
	size_t n = 0;
	for (; enumerator[n] && n < 63; n++)
		name[n] = (char)tolower((unsigned char)enumerator[n]);
	name[n] = '\0';
}

static const char *fill_run(const struct reading *reading, const json_t *run, json_t *tensors, char name[64])
{
	const struct npumem_kernel_row *row;
	const json_t *operand;
	size_t i;
	kernel_name(jsons_string(run, "kernel"), name);
	row = npumem_kernel_by_name(name);
	json_array_foreach(json_object_get(run, "operands"), i, operand)
	{
		const char *role = jsons_string(operand, "role");
		add_tensor(reading, tensors, role, json_object_get(operand, "tensor"),
			   row && roles_is_output(row, role));
	}
	return name;
}

/* The name of what this request, or this operation of a list, is; NULL: none that runs. */
static const char *fill(const struct reading *reading, const json_t *message, json_t *tensors, char name[64])
{
	static const char *const names[] = {"write", "read", "fill"};
	const json_t *copy = json_object_get(message, "copy"), *run = json_object_get(message, "run");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const json_t *one = json_object_get(message, names[i]);
		if (one) {
			add_tensor(reading, tensors, "tensor", json_object_get(one, "tensor"), i != 1);
			return names[i];
		}
	}
	if (copy) {
		add_tensor(reading, tensors, "source", json_object_get(copy, "source"), false);
		add_tensor(reading, tensors, "destination", json_object_get(copy, "destination"), true);
		return "copy";
	}
	return run ? fill_run(reading, run, tensors, name) : NULL;
}

static void set_done(json_t *row, const json_t *done)
{
	static const char *const counts[] = {"saturated", "wrapped", "macs", "divided_by_zero"};
	const json_t *destroyed;
	json_int_t bytes = 0;
	size_t i;
	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (jsons_number(done, counts[i]))
			json_object_set_new(row, counts[i], json_integer(jsons_number(done, counts[i])));
	json_array_foreach(json_object_get(done, "destroyed"), i, destroyed) bytes +=
		jsons_number(destroyed, "total_bytes");
	if (bytes)
		json_object_set_new(row, "destroyed", json_integer(bytes));
	if (*jsons_string(done, "warning"))
		json_object_set_new(row, "warning", json_string(jsons_string(done, "warning")));
	if (jsons_number(done, "end_ns")) {
		json_object_set_new(row, "start", json_integer(jsons_number(done, "start_ns")));
		json_object_set_new(row, "end", json_integer(jsons_number(done, "end_ns")));
	}
}

/* What its DMA moves: inline data, or all of its first tensor. Of a part of one, to or from a segment, the record
 * has no type. */
static void set_bytes(const struct reading *reading, json_t *row, const json_t *message, const json_t *tensors)
{
	const json_t *write = json_object_get(message, "write"), *read = json_object_get(message, "read");
	json_int_t bytes = jsons_number(write, "data");
	const char *handle = json_string_value(json_array_get(json_array_get(tensors, 0), 1));
	if (!bytes && !json_object_get(message, "run") && !jsons_number(write, "count") &&
	    !jsons_number(read, "count"))
		bytes = jsons_number(reading->sizes, handle ? handle : "");
	if (bytes)
		json_object_set_new(row, "bytes", json_integer(bytes));
}

/* An operation that ran; done == NULL: the answer has no result of it. */
static void add_row(const struct reading *reading, const json_t *message, int index, const json_t *done)
{
	char name[64];
	json_t *tensors = json_array(), *row = json_object();
	const char *what = fill(reading, message, tensors, name);
	if (!what)
		return;
	json_object_set_new(row, "request", json_integer(jsons_number(reading->entry, "number")));
	json_object_set_new(row, "index", json_integer(index));
	json_object_set_new(row, "session", json_integer(jsons_number(reading->entry, "session")));
	json_object_set_new(row, "uid", json_integer(jsons_number(reading->entry, "uid")));
	json_object_set_new(row, "pid", json_integer(jsons_number(reading->entry, "pid")));
	json_object_set_new(row, "queue", json_string(json_object_get(message, "run") ? "kernel" : "dma"));
	json_object_set_new(row, "name", json_string(what));
	set_bytes(reading, row, message, tensors);
	if (*jsons_string(message, "label"))
		json_object_set_new(row, "label", json_string(jsons_string(message, "label")));
	json_object_set_new(row, "tensors", tensors);
	json_object_set_new(row, "came", json_integer(jsons_number(reading->entry, "came_ns")));
	set_done(row, done);
	json_array_append_new(reading->rows, row);
}

/* Only what ran: a Done each. */
static void add_list(const struct reading *reading, const json_t *submit, const json_t *submitted)
{
	const json_t *operations = json_object_get(submit, "operations"), *done;
	size_t i;
	json_array_foreach(json_object_get(submitted, "done"), i, done)
	{
		json_int_t at = jsons_number(done, "operation");
		const json_t *operation = json_array_get(operations, at >= 0 ? (size_t)at : 0);
		if (operation)
			add_row(reading, operation, (int)at, done);
	}
}

/* ---- what was waited for ---- */

static bool conflict(const json_t *a, const json_t *b)
{
	const json_t *x, *y;
	size_t i, j;
	json_array_foreach(json_object_get(a, "tensors"), i, x)
	{
		json_array_foreach(json_object_get(b, "tensors"), j, y)
		{
			const char *handle = json_string_value(json_array_get(x, 1));
			if (*handle && !strcmp(handle, json_string_value(json_array_get(y, 1))) &&
			    (json_is_true(json_array_get(x, 2)) || json_is_true(json_array_get(y, 2))))
				return true;
		}
	}
	return false;
}

/* The latest to end while this one waited; one that it conflicts with before one of its queue. */
static void find_waited_for(const struct reading *reading, size_t at)
{
	json_t *row = json_array_get(reading->rows, at);
	json_int_t came = jsons_number(row, "came"), start = jsons_number(row, "start"), best = 0;
	size_t found = at;
	bool conflicts = false;
	for (size_t n = 1; came && start > came && n <= LOOK_BACK && n <= at; n++) {
		const json_t *other = json_array_get(reading->rows, at - n);
		json_int_t end = jsons_number(other, "end");
		bool shares = end > came && end <= start && conflict(row, other);
		if (end <= came || end > start ||
		    (!shares && strcmp(jsons_string(row, "queue"), jsons_string(other, "queue"))))
			continue;
		if (found == at || (shares && !conflicts) || (shares == conflicts && end > best)) {
			found = at - n;
			best = end;
			conflicts = shares;
		}
	}
	if (found == at)
		return;
	json_object_set_new(row, "waited_for", json_integer((json_int_t)found));
	json_object_set_new(row, "why", json_string(conflicts ? "tensor" : "queue"));
}

json_t *operations_of(const json_t *entries)
{
	struct reading reading = {
		.rows = json_array(), .handles = json_object(), .names = json_object(), .sizes = json_object()};
	const json_t *request, *answer;
	size_t i;
	/* A tensor that was there at the beginning may be named in an entry behind requests that use it. */
	json_array_foreach(entries, i, reading.entry) if (json_is_true(json_object_get(reading.entry, "before")))
		learn_all(&reading, json_object_get(reading.entry, "answer"));
	json_array_foreach(entries, i, reading.entry)
	{
		request = json_object_get(reading.entry, "request");
		answer = json_object_get(reading.entry, "answer");
		if (json_object_get(request, "submit"))
			add_list(&reading, json_object_get(request, "submit"),
				 json_object_get(answer, "submitted"));
		else if (!*jsons_string(reading.entry, "status"))
			add_row(&reading, request, -1, json_object_get(answer, "done"));
		if (!json_is_true(json_object_get(reading.entry, "before")))
			learn_all(&reading, answer);
	}
	for (i = 0; i < json_array_size(reading.rows); i++)
		find_waited_for(&reading, i);
	return reading.rows;
}
