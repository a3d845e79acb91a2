/* The workspace of models: gradients as rows G, their products with the inverse Hessian H, and the matrix G·H·Gᵀ.
 *
 * From one model to the next most rows stay. While H is unchanged, their products are reused, and only new ones are computed.
 * Each row has a place; when a row is removed, the last one moves to its place, so that the first `total` places are in use. H
 * is a matrix, possibly only its upper triangle, or γI + Σ (suᵀ + usᵀ). Stored with a row g is H·g, or its products with all s
 * and u.
 */

#include <stdint.h>
#include <stdlib.h>

#include "active_set.c"
#include "linearizations.c"

typedef void (*Gemm)(char *, char *, int *, int *, int *, double *, const double *, int *, const double *, int *, double *,
                     double *, int *);
typedef void (*Symm)(char *, char *, int *, int *, double *, const double *, int *, const double *, int *, double *, double *,
                     int *);

typedef void (*Syrk)(char *, char *, int *, int *, double *, const double *, int *, double *, double *, int *);
typedef void (*Syr2k)(char *, char *, int *, int *, double *, const double *, int *, const double *, int *, double *, double *,
                      int *);

enum { FULL_MATRIX = 0, UPPER_TRIANGLE = 1, LOW_RANK = 2 };

#define THIN 8 /* a row with at most one nonzero in this many entries is stored as a sparse row */
#define FEW_NEW 4 /* if more than one row in this many is new, all products are recomputed by BLAS */
#define TILE 16
#define NOWHERE INT64_MIN /* no point has this key */
#define ONE_BY_ONE 4 /* up to this many rows are multiplied one by one */

typedef struct {
    int kind;
    long version;              /* unique to this state of the matrix */
    const double *matrix;      /* n × n, or s and u alternating, one row each */
    double gamma;
    long pairs;
} Metric;

typedef struct {
    /* by places */
    long n, room, total, wide; /* wide: the length of a row of T */
    double *G, *T, *Q;         /* Q: room × room */
    long *thin, *entries;      /* the number of nonzeros, or −1 for a dense row; their indices */
    int64_t *keys;
    double *levels;            /* linearization errors at x of rows from other points, valid while x is unchanged */
    int64_t *levels_at;
    /* by rows of the model */
    long cuts, own, further, equalities;
    long *places;
    double *errors, *hints, *values, *signs, *start;
    long *owners;
    int64_t *wanted;
    Metric metric;
    Kept kept;
    double *memory;            /* for quadratic programs */
    double *scratch;           /* three rows for each place */
    double *square;            /* as large as Q */
    long *map, *table, slots;  /* table: a hash table from keys to places */
    Factorize factorize;
    Gemm gemm;
    Symm symm;
    Syrk syrk;
    Syr2k syr2k;
} Workspace;

static void *grown(void *old, long count, size_t size, int *failed) {
    void *fresh = realloc(old, (size_t)(count > 0 ? count : 1) * size);
    if (!fresh) { *failed = 1; return old; }
    return fresh;
}

/* Enlarge a square matrix. */
static double *widened(double *old, long count, long before, long after, int *failed) {
    double *fresh = malloc((size_t)(after * after) * sizeof(double));
    if (!fresh) { *failed = 1; return old; }
    for (long i = 0; i < count; i++) memcpy(fresh + i * after, old + i * before, count * sizeof(double));
    free(old);
    return fresh;
}

/* Make room for a number of rows, keeping existing data; 0 if there is not enough memory. */
static int enlarge(Workspace *b, long rows) {
    if (rows <= b->room) return 1;
    long before = b->room, room = rows + rows / 2 + 8, n = b->n;
    int failed = 0;
    b->Q = widened(b->Q, b->total, before, room, &failed);
    b->kept.factor = widened(b->kept.factor, b->kept.count, before, room, &failed);
    if (failed) { b->total = b->kept.count = b->room = 0; return 0; } /* some arrays may still have their old size */
    b->G = grown(b->G, room * n, sizeof(double), &failed);
    b->T = grown(b->T, room * n, sizeof(double), &failed);
    b->square = grown(b->square, room * room, sizeof(double), &failed);
    b->scratch = grown(b->scratch, 3 * room * n, sizeof(double), &failed);
    b->memory = grown(b->memory, qp_doubles(room) + 6 * room, sizeof(double), &failed);
    b->entries = grown(b->entries, room * (n / THIN + 1), sizeof(long), &failed);
    double **numbers[] = {&b->levels, &b->errors, &b->hints, &b->values, &b->signs, &b->start};
    long **indices[] = {&b->thin, &b->places, &b->owners, &b->map, &b->kept.places, &b->kept.lookup};
    int64_t **names[] = {&b->keys, &b->levels_at, &b->wanted};
    for (int i = 0; i < 6; i++) *numbers[i] = grown(*numbers[i], room, sizeof(double), &failed);
    for (int i = 0; i < 6; i++) *indices[i] = grown(*indices[i], room, sizeof(long), &failed);
    for (int i = 0; i < 3; i++) *names[i] = grown(*names[i], room, sizeof(int64_t), &failed);
    for (b->slots = 16; b->slots < 4 * room; b->slots *= 2);
    b->table = grown(b->table, b->slots, sizeof(long), &failed);
    b->room = failed ? 0 : room;
    if (failed) { b->total = b->kept.count = 0; return 0; }
    for (long i = 0; i < room; i++) b->kept.lookup[i] = -1;
    b->kept.leading = room;
    return 1;
}

void workspace_free(Workspace *b) {
    void *parts[] = {b->G, b->T, b->Q, b->square, b->scratch, b->memory, b->kept.factor, b->entries, b->levels, b->errors,
                     b->hints, b->values, b->signs, b->start, b->thin, b->places, b->owners, b->map, b->kept.places,
                     b->kept.lookup, b->keys, b->levels_at, b->wanted, b->table, b};
    for (unsigned long i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) free(parts[i]);
}

/* A workspace for rows of n numbers; NULL if there is not enough memory. */
Workspace *workspace_new(long n, void *factorize, void *gemm, void *symm, void *syrk, void *syr2k) {
    Workspace *b = calloc(1, sizeof(Workspace));
    if (!b) return NULL;
    b->n = n;
    b->factorize = (Factorize)factorize; b->gemm = (Gemm)gemm; b->symm = (Symm)symm;
    b->syrk = (Syrk)syrk; b->syr2k = (Syr2k)syr2k;
    b->metric.version = -1;
    if (!enlarge(b, 16)) { workspace_free(b); return NULL; }
    return b;
}

/* ---- single rows ---- */

static const long *entries_of(const Workspace *b, long place) { return b->entries + place * (b->n / THIN + 1); }

static void put(Workspace *b, long place, const double *row, int64_t key) {
    long n = b->n, found = 0, most = n / THIN, *entries = b->entries + place * (n / THIN + 1);
    memcpy(b->G + place * n, row, n * sizeof(double));
    for (long i = 0; i < n && found <= most; i++)
        if (row[i] != 0) { if (found < most) entries[found] = i; found++; }
    b->thin[place] = found <= most ? found : -1;
    b->keys[place] = key;
    b->levels_at[place] = NOWHERE;
}

/* The product of a row with a vector. */
static double along(const Workspace *b, long place, const double *vector) {
    const double *row = b->G + place * b->n;
    if (b->thin[place] < 0) return dot(row, vector, b->n);
    const long *entries = entries_of(b, place);
    double sum = 0;
    for (long k = 0; k < b->thin[place]; k++) sum += row[entries[k]] * vector[entries[k]];
    return sum;
}

static void add_row(const Workspace *b, double *to, double weight, long place) {
    const double *row = b->G + place * b->n;
    if (b->thin[place] < 0) { add(to, weight, row, b->n); return; }
    const long *entries = entries_of(b, place);
    for (long k = 0; k < b->thin[place]; k++) to[entries[k]] += weight * row[entries[k]];
}

/* Compute the data of a single row. */
static void image(Workspace *b, long place) {
    const Metric *h = &b->metric;
    const double *row = b->G + place * b->n;
    double *to = b->T + place * b->n;
    long n = b->n, thin = b->thin[place];
    if (h->kind == LOW_RANK) {
        for (long r = 0; r < b->wide; r++) to[r] = along(b, place, h->matrix + r * n);
        return;
    }
    memset(to, 0, n * sizeof(double));
    const long *entries = entries_of(b, place);
    for (long k = 0; k < (thin < 0 ? n : thin); k++) {
        long j = thin < 0 ? k : entries[k];
        double weight = row[j];
        const double *line = h->matrix + j * n;
        if (h->kind == FULL_MATRIX) { add(to, weight, line, n); continue; }
        if (thin >= 0) { /* column j of the part above the diagonal, then its row */
            for (long i = 0; i < j; i++) to[i] += weight * h->matrix[i * n + j];
            add(to + j, weight, line + j, n - j);
        } else { /* each entry of the triangle is read once and used for both symmetric positions */
            add(to + j, weight, line + j, n - j);
            to[j] += dot(line + j + 1, row + j + 1, n - j - 1);
        }
    }
}

/* The product of two rows in the metric. */
static double product(const Workspace *b, long one, long other) {
    long n = b->n;
    if (b->thin[one] < 0 && b->thin[other] >= 0) { long swap = one; one = other; other = swap; }
    if (b->metric.kind != LOW_RANK) return along(b, one, b->T + other * n);
    const double *left = b->T + one * n, *right = b->T + other * n;
    double sum = b->metric.gamma * along(b, one, b->G + other * n), even = 0, odd = 0;
    for (long r = 0; r < b->wide; r += 2) { even += left[r] * right[r + 1]; odd += left[r + 1] * right[r]; }
    return sum + (even + odd);
}

/* ---- all rows at once ---- */

/* Copy the dense rows of G or T contiguously to `to`, with their places in map; returns their number. */
static long gathered(Workspace *b, const double *from, double *to) {
    long count = 0;
    for (long i = 0; i < b->total; i++) {
        if (b->thin[i] >= 0) continue;
        memcpy(to + count * b->n, from + i * b->n, b->n * sizeof(double));
        b->map[count++] = i;
    }
    return count;
}

static void all_images(Workspace *b) {
    Metric *h = &b->metric;
    double one = 1, zero = 0, *dense = b->scratch, *found = b->scratch + b->room * b->n;
    int n = (int)b->n, count = (int)gathered(b, b->G, dense), wide = (int)b->wide;
    for (long i = 0; i < b->total; i++)
        if (b->thin[i] >= 0 || count <= ONE_BY_ONE) image(b, i);
    if (count <= ONE_BY_ONE || !wide) return;
    if (h->kind == FULL_MATRIX) b->gemm("N", "N", &n, &count, &n, &one, h->matrix, &n, dense, &n, &zero, found, &n);
    else if (h->kind == UPPER_TRIANGLE) b->symm("L", "L", &n, &count, &one, h->matrix, &n, dense, &n, &zero, found, &n);
    else b->gemm("T", "N", &wide, &count, &n, &one, h->matrix, &n, dense, &n, &zero, found, &wide);
    for (long i = 0; i < count; i++) memcpy(b->T + b->map[i] * n, found + i * wide, wide * sizeof(double));
}

static void all_products(Workspace *b) {
    long n = b->n, total = b->total, room = b->room, wide = b->wide, low_rank = b->metric.kind == LOW_RANK;
    double one = 1, zero = 0, *dense = b->scratch, *images = b->scratch + room * n, *steps = images, *others = images + room * n;
    int count = (int)gathered(b, b->G, dense), width = (int)n, leading = (int)room, all = (int)total, pairs = (int)b->metric.pairs;
    for (long i = 0; i < total; i++)
        for (long j = 0; j <= i; j++)
            if (count <= ONE_BY_ONE || b->thin[i] >= 0 || b->thin[j] >= 0) {
                long sparse = b->thin[i] >= 0 ? i : j, against = sparse == i ? j : i;
                b->Q[i * room + j] = low_rank ? b->metric.gamma * along(b, sparse, b->G + against * n) : product(b, i, j);
            }
    if (count > ONE_BY_ONE) {
        if (low_rank) {
            b->syrk("U", "T", &count, &width, &b->metric.gamma, dense, &width, &zero, b->square, &leading);
        } else {
            gathered(b, b->T, images);
            b->gemm("T", "N", &count, &count, &width, &one, images, &width, dense, &width, &zero, b->square, &leading);
        }
        for (long i = 0; i < count; i++)
            for (long j = 0; j <= i; j++) b->Q[b->map[i] * room + b->map[j]] = b->square[i * room + j];
    }
    if (low_rank && wide) {
        for (long i = 0; i < total; i++)
            for (long r = 0; r < pairs; r++) {
                steps[i * pairs + r] = b->T[i * n + 2 * r];
                others[i * pairs + r] = b->T[i * n + 2 * r + 1];
            }
        b->syr2k("U", "T", &all, &pairs, &one, steps, &pairs, others, &pairs, &zero, b->square, &leading);
        for (long i = 0; i < total; i++) add(b->Q + i * room, 1.0, b->square + i * room, i + 1);
    }
    for (long corner = 0; corner < total; corner += TILE) /* the other triangle, in tiles that fit into the cache */
        for (long i = corner; i < total; i++)
            for (long j = corner; j < i && j < corner + TILE; j++) b->Q[j * room + i] = b->Q[i * room + j];
}

/* ---- from one model to the next ---- */

typedef struct {
    long count;
    const double *points, *rows, *values;
    const int64_t *keys;
    const double *weights;
} Lines;

/* The source of row i of the new model. */
static const double *source(const Workspace *b, const double *gradient, const Lines *cuts, const double *jacobian,
                            const Lines *further, long i) {
    if (i == 0) return gradient;
    if (i < b->cuts) return cuts->rows + (i - 1) * b->n;
    if (i < b->cuts + b->own) return jacobian + (i - b->cuts) * b->n;
    return further->rows + (i - b->cuts - b->own) * b->n;
}

static long first_slot(const Workspace *b, int64_t key) {
    uint64_t mixed = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return (long)(mixed >> 20) & (b->slots - 1);
}

/* The slot of a key in the hash table, or the free slot for it. */
static long slot_of(const Workspace *b, const int64_t *keys, int64_t key) {
    long slot = first_slot(b, key);
    while (b->table[slot] >= 0 && keys[b->table[slot]] != key) slot = (slot + 1) & (b->slots - 1);
    return slot;
}

static void note(Workspace *b, const int64_t *keys, long count) {
    memset(b->table, -1, b->slots * sizeof(long));
    for (long i = 0; i < count; i++) b->table[slot_of(b, keys, keys[i])] = i;
}

/* Remove a row; the last one moves to its place. */
static void take_away(Workspace *b, long place) {
    long last = --b->total, n = b->n, room = b->room, most = n / THIN + 1;
    forget(&b->kept, place);
    if (place == last) return;
    for (long i = 0; i < b->kept.count; i++) if (b->kept.places[i] == last) b->kept.places[i] = place;
    memcpy(b->G + place * n, b->G + last * n, n * sizeof(double));
    memcpy(b->T + place * n, b->T + last * n, n * sizeof(double));
    memcpy(b->entries + place * most, b->entries + last * most, most * sizeof(long));
    b->thin[place] = b->thin[last];
    b->keys[place] = b->keys[last];
    b->levels[place] = b->levels[last];
    b->levels_at[place] = b->levels_at[last];
    double own = b->Q[last * room + last];
    memcpy(b->Q + place * room, b->Q + last * room, b->total * sizeof(double));
    b->Q[place * room + place] = own;
    for (long i = 0; i < b->total; i++) b->Q[i * room + place] = b->Q[place * room + i];
}

/* Remove the rows that the new model does not need; returns the number of rows that are missing. */
static long clear_away(Workspace *b, long wanted) {
    long found = 0;
    note(b, b->wanted, wanted);
    for (long place = b->total - 1; place >= 0; place--) {
        if (b->table[slot_of(b, b->wanted, b->keys[place])] < 0) take_away(b, place);
        else found++;
    }
    return wanted - found;
}

/* Append the missing rows; 0 if two rows have the same key. */
static int put_new_rows(Workspace *b, const double *gradient, const Lines *cuts, const double *jacobian, const Lines *further,
                        long wanted) {
    long room = b->room;
    note(b, b->keys, b->total);
    memset(b->map, 0, b->total * sizeof(long)); /* which places are in use */
    for (long i = 0; i < wanted; i++) {
        long known = b->table[slot_of(b, b->keys, b->wanted[i])];
        if (known >= 0) {
            if (b->map[known]) return 0;
            b->map[known] = 1;
            b->places[i] = known;
            continue;
        }
        long place = b->total++;
        put(b, place, source(b, gradient, cuts, jacobian, further, i), b->wanted[i]);
        b->places[i] = place;
        image(b, place);
        for (long j = 0; j <= place; j++) b->Q[place * room + j] = b->Q[j * room + place] = product(b, place, j);
    }
    return 1;
}

/* Linearization errors at x (identified by a key) of the rows from other points, from `first` on. */
static void find_levels(Workspace *b, const Lines *lines, long first, const double *x, int64_t key, const double *values,
                        double value, double locality, double *found) {
    for (long i = 0; i < lines->count; i++) {
        long place = b->places[first + i];
        if (b->levels_at[place] != key) {
            rows_errors(lines->points + i * b->n, lines->rows + i * b->n, lines->values + i, 1, b->n, x,
                        values ? values + i : NULL, value, locality, b->levels + place);
            b->levels_at[place] = key;
        }
        found[i] = b->levels[place];
    }
}

/* Build the model at x: its own cut, `kept` cuts from other points, the constraints, and `further` rows of single constraints,
 * whose values are those of their constraints at x minus the linearization errors. 0 if there is not enough memory. */
int workspace_build(Workspace *b, long version, long kind, const double *matrix, double gamma, long pairs,
                const double *x, double f, const double *gradient, int64_t key,
                long kept, const double *points, const double *slopes, const double *levels, const int64_t *keys,
                const double *weights,
                long own, long equalities, const double *c, const double *jacobian, int64_t first_key,
                const double *multipliers,
                long further, const double *far_points, const double *far_rows, const double *far_levels,
                const int64_t *far_keys, const double *extra_weights, const long *owners, const double *signs,
                double locality) {
    Lines cuts = {kept, points, slopes, levels, keys, weights};
    Lines lines = {further, far_points, far_rows, far_levels, far_keys, extra_weights};
    long wanted = 1 + kept + own + further;
    if (!enlarge(b, wanted)) return 0;
    b->cuts = 1 + kept; b->own = own; b->further = further; b->equalities = equalities;
    b->wanted[0] = key;
    if (kept) memcpy(b->wanted + 1, keys, kept * sizeof(int64_t));
    for (long i = 0; i < own; i++) b->wanted[b->cuts + i] = first_key + i;
    if (further) memcpy(b->wanted + b->cuts + own, far_keys, further * sizeof(int64_t));
    int anew = b->metric.version != version || b->metric.gamma != gamma || !b->total;
    if (!anew) {
        long fresh = clear_away(b, wanted);
        anew = fresh > 1 && fresh * FEW_NEW > wanted;
    }
    b->metric = (Metric){(int)kind, version, matrix, gamma, pairs};
    b->wide = kind == LOW_RANK ? 2 * pairs : b->n;
    if (!anew) anew = !put_new_rows(b, gradient, &cuts, jacobian, &lines, wanted) || b->total != wanted;
    if (anew) {
        b->kept.count = 0;
        b->total = wanted;
        for (long i = 0; i < wanted; i++) {
            put(b, i, source(b, gradient, &cuts, jacobian, &lines, i), b->wanted[i]);
            b->places[i] = i;
        }
        all_images(b);
        all_products(b);
    }
    b->errors[0] = 0;
    find_levels(b, &cuts, 1, x, key, NULL, f, locality, b->errors + 1);
    double sum = 0;
    for (long i = 0; i < kept; i++) { b->start[1 + i] = b->hints[1 + i] = weights[i]; sum += weights[i]; }
    b->hints[0] = 1.0 - sum > 1e-3 ? 1.0 - sum : 1e-3;
    b->start[0] = 1.0 - sum > 0 ? 1.0 - sum : 0.0;
    for (long i = 0; i < own; i++) {
        b->values[i] = c[i];
        b->start[b->cuts + i] = multipliers ? multipliers[i] : 0.0;
    }
    double *here = b->values + own, *errors = b->start + b->cuts + own; /* the latter is overwritten after its use */
    for (long i = 0; i < further; i++) {
        b->owners[i] = owners[i];
        b->signs[i] = signs[i];
        here[i] = signs[i] * c[owners[i]];
    }
    find_levels(b, &lines, b->cuts + own, x, key, here, 0.0, locality, errors);
    for (long i = 0; i < further; i++) { here[i] -= errors[i]; errors[i] = extra_weights[i]; }
    return 1;
}
