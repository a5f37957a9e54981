/* Reads a NumPy array file (format 1.0) of the simple kinds that the demo ships: C order, little-endian, at most
 * four dimensions. It does not write, and knows no structured types. */
#ifndef DEMO_NPY_H
#define DEMO_NPY_H

#include <stddef.h>

enum { NPY_DIMS_MAX = 4 };

struct npy {
	char type[4]; /* NumPy's letters without the byte order: "i1", "i2", "u1", "f4" */
	unsigned n_dims;
	size_t dims[NPY_DIMS_MAX]; /* those beyond n_dims are 1 */
	size_t n_elements;
	size_t bytes;
	void *data; /* dense, row-major */
};

/* Reads the file at `path`, which must hold elements of `type`. 0; or -1, with one line on stderr. */
int npy_read(const char *path, const char *type, struct npy *npy);
void npy_deinit(struct npy *npy);

#endif
