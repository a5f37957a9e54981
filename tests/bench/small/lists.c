/* A list keeps the daemon's and the device's tensors apart, with the same bytes. */
#include "tests/bench/small/lists.h"

void list_init(struct list *list, struct inside *inside, struct remote *remote, const char *const *texts,
	       unsigned n_texts, unsigned n, bool chained)
{
	*list = (struct list){.remote = remote, .n_placed = n_texts, .n = n};
	for (unsigned i = 0; i < n_texts; i++) {
		bool first = !chained || i == 0;
		call_parse(&list->calls[i], texts[i]);
		inside_place(inside, &list->calls[i],
			     first ? NULL : inside_out(&list->inside[i - 1], &list->calls[i - 1]),
			     &list->inside[i]);
		remote_place(remote, &list->calls[i], first ? NULL : remote_out(&list->ops[i - 1]), &list->ops[i]);
	}
	for (unsigned i = 0; i < n; i++)
		list->operations[i] = remote_operation(&list->ops[i % n_texts]);
}

void list_deinit(struct list *list)
{
	for (unsigned i = 0; i < list->n_placed; i++) {
		inside_drop(&list->inside[i]);
		remote_drop(&list->ops[i]);
	}
}

void list_submit(void *context)
{
	struct list *list = context;
	const struct npumem_submitted *submitted;
	remote_expect(list->remote, npumem_submit(list->remote->npumem, list->operations, list->n, &submitted,
						  &list->remote->error));
	npumem_release(submitted);
}

void list_inside(void *context)
{
	struct list *list = context;
	for (unsigned i = 0; i < list->n; i++)
		inside_run(&list->inside[i % list->n_placed]);
}
