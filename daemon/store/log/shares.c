/* Owns nothing. Invariant: the users of one `struct shares` differ from one another. */
#include "daemon/store/log/shares.h"

/* The user's index; n: it has nothing in the round and the list has room. */
static unsigned place_of(const struct shares *shares, const void *user)
{
	unsigned i = 0;

	while (i < shares->n && shares->users[i].user != user)
		i++;
	return i < SHARES_USERS_MAX ? i : SHARES_USERS_MAX - 1;
}

static bool has(const struct shares *shares, const void *user)
{
	unsigned i = place_of(shares, user);

	return i < shares->n && shares->users[i].user == user;
}

/* Counts users of the two rounds before, too: they wait for one of them and will soon use the next, or the one
 * after it if that begins before they come. */
static unsigned n_users(const struct shares *now, const struct shares *before, const void *user)
{
	unsigned n = now->n + !has(now, user);

	for (unsigned i = 0; i < before->n; i++)
		n += before->users[i].is_active && before->users[i].user != user &&
		     !has(now, before->users[i].user);
	return n;
}

static uint64_t share(const struct shares *now, const struct shares *before, const void *user)
{
	unsigned n = n_users(now, before, user);

	return n == 1 ? SHARES_ALONE : SHARES_TOGETHER / n;
}

bool shares_have_room(const struct shares *now, const struct shares *before, const void *user, uint64_t bytes)
{
	unsigned i = place_of(now, user);

	return i == now->n || !now->users[i].bytes || now->users[i].bytes + bytes <= share(now, before, user);
}

bool shares_have_cells(const struct shares *now, const struct shares *before, const void *user)
{
	unsigned i = place_of(now, user);

	return i == now->n || now->users[i].cells < share(now, before, user);
}

/* The user's index, a new one if it had none. */
static unsigned take_place(struct shares *now, const void *user)
{
	unsigned i = place_of(now, user);

	if (i == now->n) {
		now->users[i].user = user;
		now->users[i].bytes = now->users[i].cells = 0;
		now->n++;
	}
	now->users[i].is_active = true;
	return i;
}

void shares_add(struct shares *now, const void *user, uint64_t bytes)
{
	now->users[take_place(now, user)].bytes += bytes;
}

void shares_add_cells(struct shares *now, const void *user, uint64_t bytes)
{
	now->users[take_place(now, user)].cells += bytes;
}

/* Users stay in at most half of the list, so that the other half is free for new ones. */
void shares_next(struct shares *shares)
{
	unsigned n = 0;

	for (unsigned i = 0; i < shares->n && n < SHARES_USERS_MAX / 2; i++) {
		if (!shares->users[i].is_active)
			continue;
		shares->users[n].user = shares->users[i].user;
		shares->users[n].bytes = shares->users[n].cells = 0;
		shares->users[n++].is_active = false;
	}
	shares->n = n;
}
