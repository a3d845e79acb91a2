/* The active-set method of active_set.py for small dense programs, without interpreter overhead.
 *
 * min ½ yᵀQy + qᵀy, some entries ≥ 0 with sum 1, all between lower and upper. See active_set.py for the method. Loops run
 * down columns, so that compilers vectorize them without reordering sums.
 *
 * All arrays are contiguous in one block of `qp_doubles(n)` numbers, in the order of `qp_solve`. Consecutive programs with the
 * same matrix can reuse the factor: see Kept.
 */

#include <math.h>
#include <string.h>

#include "variant.h"

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver hypot,hypot@GLIBC_2.2.5"); /* the newer version, which differs in errno only, requires glibc 2.35 */
#endif

#define FLOOR 1e-13
#define REFINEMENTS 3
#define POLISHED 1e-4 /* the fraction of the tolerance below which another step is not worthwhile */

#define BLOCKED 48 /* from this number of rows on LAPACK's factorization is faster */

enum { FREE = 0, LOW = 1, HIGH = 2, SEEN = 3 };

/* LAPACK's dpotrf: triangle, order, matrix by columns, leading dimension, 0 or which pivot is not positive. */
typedef void (*Factorize)(char *, int *, double *, int *, int *);

/* The factor of the free entries of an earlier program, which are identified by the places of their rows. */
typedef struct {
    long count, leading;
    long *places, *lookup;     /* lookup has an entry for every place; −1 between searches */
    double *factor, sigma;
} Kept;

typedef struct {
    long n, simplex, count;
    const double *Q;                                  /* input: a column starts every `stride` numbers */
    long stride;
    double *q, *lower, *upper, *y;                    /* input; y is the start and the solution */
    double *scale, *diagonal, *ceiling, *slope, *excess, *start;
    double *row, *down, *along, *factor;              /* of the free entries, in the order in which they were added */
    long leading;                                     /* the leading dimension of the factor */
    double *near;                                     /* slopes of the free entries, always up to date */
    double *below, *ones;                             /* L⁻¹ times `near` and times `row`, updated with each change */
    int solved;                                       /* whether `below` and `ones` are valid */
    int careful;                                      /* recompute everything instead of updating it */
    double *owed;                                     /* changes of the entries since all slopes were last computed */
    long *free_entries;
    char *state;
    char *joined;                                     /* input: 1 for the `simplex` entries of the simplex */
    const double *fixed_row;                               /* the part of q from a row whose weight is always 1, or NULL */
    double square;                                    /* the squared length of that row */
    double sigma;
    Factorize factorize;                              /* NULL if not available */
    Kept *kept;                                       /* NULL if no factor is reused */
    const long *places;                               /* of the entries, if a factor is reused */
    int rough, recalled;                              /* the factor belongs to a slightly different matrix; was reused */
} Search;

static long qp_doubles(long n) { return 2 * n * n + 21 * n; }

/* Four numbers at a time, whatever the registers, so that the order of summation is the same on all processors. */
typedef double Four __attribute__((vector_size(32)));

static inline Four four(const double *from) {
    Four loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

static inline double sum_of(Four parts) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }

static double dot(const double *a, const double *b, long n) {
    Four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
    long i = 0;
    for (; i + 8 <= n; i += 8) {
        even += four(a + i) * four(b + i);
        odd += four(a + i + 4) * four(b + i + 4);
    }
    if (i + 4 <= n) { even += four(a + i) * four(b + i); i += 4; }
    double sum = sum_of(even + odd);
    for (; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add(double *restrict to, double weight, const double *restrict from, long n) {
    for (long i = 0; i < n; i++) to[i] += weight * from[i];
}

/* Add four weighted columns, so that the target is read and written once. */
static void add_four(double *restrict to, const double *weight, const double *restrict a, const double *restrict b,
                     const double *restrict c, const double *restrict d, long n) {
    double w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];
    for (long i = 0; i < n; i++) to[i] += (w0 * a[i] + w1 * b[i]) + (w2 * c[i] + w3 * d[i]);
}

static double clipped(double value, double lower, double upper) {
    return value < lower ? lower : value > upper ? upper : value;
}

/* Clip y to the box and scale it to the simplex; 0 if that is not possible. */
static int make_feasible(const Search *s, double *y) {
    double total = 0;
    for (long i = 0; i < s->n; i++) {
        if (!isfinite(y[i])) return 0;
        y[i] = clipped(y[i], s->lower[i], s->upper[i]);
        if (s->joined[i]) total += y[i];
    }
    if (!s->simplex) return 1;
    if (!(total > 0)) return 0;
    for (long i = 0; i < s->n; i++) if (s->joined[i]) y[i] /= total;
    return 1;
}

static void multiply(const Search *s, const double *y, double *product) {
    memset(product, 0, s->n * sizeof(double));
    for (long j = 0; j < s->n; j++)
        if (y[j] != 0) add(product, y[j], s->Q + j * s->stride, s->n);
}

/* The square root of the objective, from yᵀQy and q·y, to which errors are relative. */
static double size_of(const Search *s, const double *y, double square, double linear) {
    if (s->fixed_row) { /* the combined gradient is often much shorter than its parts */
        double pulled = dot(s->fixed_row, y, s->n);
        square += 2.0 * pulled + s->square;
        linear -= pulled;
    }
    return sqrt(square > 0 ? square : 0) + sqrt(fabs(linear));
}

/* Program.residual. Uses `down` and `along` as scratch space. */
static double residual_of(Search *s, const double *y) {
    long n = s->n;
    double *product = s->down, *slope = s->along, largest = 0, rounding = 0;
    multiply(s, y, product);
    for (long i = 0; i < n; i++) {
        slope[i] = product[i] + s->q[i];
        if (s->scale[i] > largest) largest = s->scale[i];
    }
    if (s->simplex) {
        double share = 0;
        for (long i = 0; i < n; i++) if (s->joined[i]) share += y[i] * slope[i];
        for (long i = 0; i < n; i++) if (s->joined[i]) slope[i] -= share;
    }
    double size = size_of(s, y, dot(y, product, n), dot(s->q, y, n)), error = 0;
    for (long i = 0; i < n; i++) {
        double upper = s->joined[i] ? INFINITY : s->upper[i]; /* the sum bounds these */
        double moved = clipped(y[i] - slope[i] / (s->scale[i] * s->scale[i]), s->lower[i], upper);
        if (s->simplex == 1 && s->joined[i]) moved = y[i];
        double way = fabs(y[i] - moved) * s->scale[i];
        if (way > error || isnan(way)) error = way;
    }
    for (long i = 0; i < n; i++) product[i] = s->fixed_row ? fabs(s->fixed_row[i]) : 0.0;
    for (long j = 0; j < n; j++) {
        double weight = fabs(y[j]);
        if (weight != 0)
            for (long i = 0; i < n; i++) product[i] += weight * fabs(s->Q[j * s->stride + i]);
    }
    for (long i = 0; i < n; i++) {
        double here = product[i] / s->scale[i];
        if (here > rounding || isnan(here)) rounding = here;
        if (isnan(rounding)) break;
    }
    rounding *= 1e-14;
    if (rounding < 1e-25 * largest) rounding = 1e-25 * largest;
    if (!isfinite(error) || !isfinite(rounding)) return INFINITY;
    double floor_ = size + rounding > 1e-300 ? size + rounding : 1e-300;
    return error > rounding ? (error - rounding) / floor_ : 0.0;
}

/* ---- the factor: L by columns, leading dimension n ---- */

/* Four columns at a time; one at a time, each would wait for the previous one to be written. */
static void solve_lower(const Search *s, double *x) {
    long n = s->leading, count = s->count, j = 0;
    for (; j + 4 <= count; j += 4) {
        const double *a = s->factor + j * n, *b = a + n, *c = b + n, *d = c + n;
        double weight[4];
        x[j] /= a[j];
        x[j + 1] = (x[j + 1] - a[j + 1] * x[j]) / b[j + 1];
        x[j + 2] = (x[j + 2] - (a[j + 2] * x[j] + b[j + 2] * x[j + 1])) / c[j + 2];
        x[j + 3] = (x[j + 3] - (a[j + 3] * x[j] + b[j + 3] * x[j + 1] + c[j + 3] * x[j + 2])) / d[j + 3];
        for (int k = 0; k < 4; k++) weight[k] = -x[j + k];
        add_four(x + j + 4, weight, a + j + 4, b + j + 4, c + j + 4, d + j + 4, count - j - 4);
    }
    for (; j < count; j++) {
        const double *column = s->factor + j * n;
        x[j] /= column[j];
        add(x + j + 1, -x[j], column + j + 1, count - j - 1);
    }
}

static void solve_upper(const Search *s, double *x) {
    long n = s->leading, count = s->count, j = count;
    for (; j % 4; j--) {
        const double *column = s->factor + (j - 1) * n;
        x[j - 1] = (x[j - 1] - dot(column + j, x + j, count - j)) / column[j - 1];
    }
    for (j -= 4; j >= 0; j -= 4) {
        const double *a = s->factor + j * n, *b = a + n, *c = b + n, *d = c + n;
        Four p0 = {0, 0, 0, 0}, p1 = p0, p2 = p0, p3 = p0;
        long i = j + 4;
        for (; i + 4 <= count; i += 4) {
            Four here = four(x + i);
            p0 += four(a + i) * here; p1 += four(b + i) * here; p2 += four(c + i) * here; p3 += four(d + i) * here;
        }
        double s0 = sum_of(p0), s1 = sum_of(p1), s2 = sum_of(p2), s3 = sum_of(p3);
        for (; i < count; i++) { s0 += a[i] * x[i]; s1 += b[i] * x[i]; s2 += c[i] * x[i]; s3 += d[i] * x[i]; }
        x[j + 3] = (x[j + 3] - s3) / d[j + 3];
        x[j + 2] = (x[j + 2] - s2 - c[j + 3] * x[j + 3]) / c[j + 2];
        x[j + 1] = (x[j + 1] - s1 - (b[j + 2] * x[j + 2] + b[j + 3] * x[j + 3])) / b[j + 1];
        x[j] = (x[j] - s0 - (a[j + 1] * x[j + 1] + a[j + 2] * x[j + 2] + a[j + 3] * x[j + 3])) / a[j];
    }
}

static double entry_of(const Search *s, long a, long b) {
    double value = a == b ? s->diagonal[a] : s->Q[a * s->stride + b];
    return s->joined[a] && s->joined[b] ? value + s->sigma : value;
}

static void rebuild(Search *s) {
    long count = s->count;
    for (double ridge = FLOOR; ridge < 1.0; ridge *= 100.0) {
        int failed = 0;
        s->rough = ridge > FLOOR;
        for (long j = 0; j < count; j++)
            for (long i = j; i < count; i++) s->factor[j * s->leading + i] = entry_of(s, s->free_entries[j], s->free_entries[i]);
        for (long j = 0; j < count; j++) s->factor[j * s->leading + j] *= 1.0 + ridge;
        if (s->factorize && count >= BLOCKED) {
            int order = (int)count, leading = (int)s->leading;
            s->factorize("L", &order, s->factor, &leading, &failed);
            if (failed) continue;
            return;
        }
        for (long j = 0; j < count && !failed; j++) {
            double *column = s->factor + j * s->leading;
            if (!(column[j] > 0)) { failed = 1; break; }
            double pivot = sqrt(column[j]);
            for (long i = j; i < count; i++) column[i] /= pivot;
            column[j] = pivot;
            for (long k = j + 1; k < count; k++) add(s->factor + k * s->leading + k, -column[k], column + k, count - k);
        }
        if (!failed) return;
    }
    s->rough = 1;
    for (long j = 0; j < count; j++) { /* the program is not convex, so any direction is acceptable */
        double square = fabs(entry_of(s, s->free_entries[j], s->free_entries[j]));
        memset(s->factor + j * s->leading, 0, count * sizeof(double));
        s->factor[j * s->leading + j] = sqrt(square > 1e-300 ? square : 1e-300);
    }
}

static void enter(Search *s, long entry) {
    long count = s->count;
    double *column = s->down;
    for (long i = 0; i < count; i++) column[i] = entry_of(s, s->free_entries[i], entry);
    solve_lower(s, column);
    double square = entry_of(s, entry, entry), rest = square - dot(column, column, count);
    if (rest < FLOOR * square) rest = FLOOR * square;
    for (long j = 0; j < count; j++) s->factor[j * s->leading + count] = column[j];
    double pivot = sqrt(rest > 1e-300 ? rest : 1e-300);
    s->factor[count * s->leading + count] = pivot;
    s->free_entries[count] = entry;
    s->row[count] = s->joined[entry];
    s->near[count] = s->slope[entry];
    if (s->solved) {
        s->below[count] = (s->near[count] - dot(column, s->below, count)) / pivot;
        s->ones[count] = (s->row[count] - dot(column, s->ones, count)) / pivot;
    }
    s->state[entry] = FREE;
    s->count = count + 1;
}

/* Remove a row of a factor; rotations of neighboring columns restore the triangle below it. Two vectors that are multiplied with
 * the inverse of the factor are updated too, if given. */
static void delete_row(double *factor, long leading, long count, long position, double *one, double *other) {
    for (long j = position; j < count - 1; j++) {
        double *left = factor + j * leading, *right = left + leading;
        double a = left[j + 1], b = right[j + 1], length = hypot(a, b);
        double cosine = length > 0 ? a / length : 1.0, sine = length > 0 ? b / length : 0.0;
        for (long i = j + 1; i < count; i++) {
            double x = left[i], z = right[i];
            left[i - 1] = cosine * x + sine * z;
            right[i] = cosine * z - sine * x;
        }
        if (one) {
            double a1 = one[j], b1 = one[j + 1], a2 = other[j], b2 = other[j + 1];
            one[j] = cosine * a1 + sine * b1; one[j + 1] = cosine * b1 - sine * a1;
            other[j] = cosine * a2 + sine * b2; other[j + 1] = cosine * b2 - sine * a2;
        }
    }
    for (long j = 0; j < position; j++) {
        double *column = factor + j * leading;
        memmove(column + position, column + position + 1, (count - 1 - position) * sizeof(double));
    }
}

/* Remove an entry from the free ones. */
static void drop(Search *s, long position) {
    long count = s->count;
    delete_row(s->factor, s->leading, count, position, s->solved ? s->below : NULL, s->ones);
    memmove(s->free_entries + position, s->free_entries + position + 1, (count - 1 - position) * sizeof(long));
    memmove(s->row + position, s->row + position + 1, (count - 1 - position) * sizeof(double));
    memmove(s->near + position, s->near + position + 1, (count - 1 - position) * sizeof(double));
    s->count = count - 1;
}

static void hold(Search *s, long position, int low) {
    long entry = s->free_entries[position];
    s->y[entry] = low ? s->lower[entry] : s->ceiling[entry];
    s->state[entry] = low ? LOW : HIGH;
    drop(s, position);
}

/* The slopes of the free entries. */
static void look_near(Search *s) {
    for (long i = 0; i < s->count; i++) s->near[i] = s->slope[s->free_entries[i]];
}

/* ---- reuse of a factor ---- */

/* Drop the row in a place. */
static void forget(Kept *kept, long place) {
    for (long i = 0; i < kept->count; i++) {
        if (kept->places[i] != place) continue;
        delete_row(kept->factor, kept->leading, kept->count, i, NULL, NULL);
        memmove(kept->places + i, kept->places + i + 1, (kept->count - 1 - i) * sizeof(long));
        kept->count--;
        return;
    }
}

/* Store the free entries in their order. */
static void collect(Search *s) {
    s->count = 0;
    for (long i = 0; i < s->n; i++) {
        if (s->state[i] != FREE) continue;
        s->row[s->count] = s->joined[i];
        s->free_entries[s->count++] = i;
    }
    look_near(s);
}

/* Start with the factor of the previous program; 0 if the free entries differ too much. */
static int recall(Search *s) {
    Kept *kept = s->kept;
    long wanted = 0, common = 0, on_simplex = 0;
    if (!kept || !kept->count || kept->count > s->n) return 0;
    for (long i = 0; i < s->n; i++) {
        kept->lookup[s->places[i]] = i;
        wanted += s->state[i] == FREE;
    }
    for (long i = 0; i < kept->count; i++) {
        long entry = kept->lookup[kept->places[i]];
        s->free_entries[i] = entry;
        common += entry >= 0 && s->state[entry] == FREE;
    }
    for (long i = 0; i < s->n; i++) kept->lookup[s->places[i]] = -1;
    if (4 * ((wanted - common) + (kept->count - common)) > wanted + 8) return 0;
    s->count = kept->count;
    for (long i = s->count - 1; i >= 0; i--) {
        long entry = s->free_entries[i];
        if (entry < 0 || s->state[entry] != FREE) drop(s, i);
    }
    for (long i = 0; i < s->count; i++) {
        long entry = s->free_entries[i];
        s->row[i] = s->joined[entry];
        on_simplex += s->joined[entry];
        s->state[entry] = SEEN;
    }
    if (on_simplex) s->sigma = kept->sigma; /* the factor includes it */
    for (long i = 0; i < s->n; i++) {
        if (s->state[i] == FREE) enter(s, i);
        else if (s->state[i] == SEEN) s->state[i] = FREE;
    }
    look_near(s);
    return 1;
}

static void keep(Search *s, int good) {
    Kept *kept = s->kept;
    if (!kept) return;
    kept->count = good && !s->rough ? s->count : 0;
    kept->sigma = s->sigma;
    for (long i = 0; i < kept->count; i++) kept->places[i] = s->places[s->free_entries[i]];
}

/* ---- the search ---- */

/* Recompute all slopes from y, because their updates drift. */
static void refresh(Search *s) {
    multiply(s, s->y, s->slope);
    for (long i = 0; i < s->n; i++) s->slope[i] += s->q[i];
    memset(s->owed, 0, s->n * sizeof(double));
    look_near(s);
    s->solved = 0;
}

/* Update all slopes with the changes since they were last computed. */
static void settle(Search *s) {
    const double *columns[4];
    double weights[4];
    long moved = 0;
    int held = 0;
    for (long i = 0; i < s->n; i++) moved += s->owed[i] != 0;
    if (s->n - s->count < moved && !s->careful) { /* few entries are not free, and the slopes of the free ones are up to date */
        for (long i = 0; i < s->n; i++)
            if (s->state[i] != FREE) s->slope[i] += dot(s->Q + i * s->stride, s->owed, s->n);
        for (long i = 0; i < s->count; i++) s->slope[s->free_entries[i]] = s->near[i];
        memset(s->owed, 0, s->n * sizeof(double));
        return;
    }
    for (long i = 0; i < s->n; i++) {
        if (s->owed[i] == 0) continue;
        columns[held] = s->Q + i * s->stride;
        weights[held++] = s->owed[i];
        s->owed[i] = 0;
        if (held < 4) continue;
        add_four(s->slope, weights, columns[0], columns[1], columns[2], columns[3], s->n);
        held = 0;
    }
    for (int k = 0; k < held; k++) add(s->slope, weights[k], columns[k], s->n);
    look_near(s);
}

/* If gradients are nearly dependent, rounding changes the sum: restore it. `along` is scratch space. */
static void keep_sum(const Search *s, double *down, double *along) {
    double sum = 0, sizes = 0;
    for (long i = 0; i < s->count; i++) { sum += s->row[i] * down[i]; sizes += s->row[i] * fabs(down[i]); }
    if (!(fabs(sum) > 1e-13 * sizes)) return;
    memcpy(along, s->ones, s->count * sizeof(double));
    solve_upper(s, along);
    double steepness = dot(s->row, along, s->count);
    if (steepness > 0) add(down, -sum / steepness, along, s->count);
}

/* Move toward the minimum over the free entries; 1 if a bound stopped the step. */
static int advance(Search *s) {
    long count = s->count, position = -1;
    if (!count) { settle(s); return 0; }
    double *down = s->down, *along = s->along, *below = s->below, *ones = s->ones, share = 0, first = INFINITY;
    if (!s->solved || s->careful) {
        memcpy(below, s->near, count * sizeof(double));
        solve_lower(s, below);
        memcpy(ones, s->row, count * sizeof(double));
        if (s->simplex) solve_lower(s, ones); /* otherwise it is not needed */
        s->solved = 1;
    }
    if (s->simplex) { /* the common slope on the simplex is the multiplier of its sum */
        double steepness = dot(ones, ones, count);
        share = steepness > 0 ? dot(ones, below, count) / steepness : 0.0;
        for (long i = 0; i < count; i++) down[i] = share * ones[i] - below[i];
    } else {
        for (long i = 0; i < count; i++) down[i] = -below[i];
    }
    solve_upper(s, down);
    if (s->simplex) keep_sum(s, down, along);
    for (long i = 0; i < count; i++) {
        long entry = s->free_entries[i];
        if (down[i] == 0) continue;
        double room = ((down[i] < 0 ? s->lower[entry] : s->ceiling[entry]) - s->y[entry]) / down[i];
        if (room < first) { first = room; position = i; }
    }
    double length = first < 0 ? 0 : first > 1 ? 1 : first;
    for (long i = 0; i < count; i++) {
        double way = length * down[i];
        s->y[s->free_entries[i]] += way;
        s->owed[s->free_entries[i]] += way;
        s->near[i] += length * (share * s->row[i] - s->near[i]); /* at the end of the full step they equal `share` */
        below[i] += length * (share * ones[i] - below[i]);
    }
    if (first < 1.0) {
        hold(s, position, down[position] < 0);
        return 1;
    }
    settle(s);
    return 0;
}

/* Check the slopes: which entry points most strongly away from its bound, and how far those of free entries are from 0. */
typedef struct {
    double wrong, unsolved, allowed, weighted;
    long worst;
} Faults;

static Faults faults_of(Search *s, double enough) {
    double share = 0, total = 0;
    Faults found = {.wrong = -INFINITY};
    for (long i = 0; i < s->n; i++)
        if (s->joined[i]) { share += s->y[i] * s->slope[i]; total += s->y[i]; }
    if (s->simplex) share /= total;
    for (long i = 0; i < s->n; i++) {
        double excess = (s->slope[i] - (s->joined[i] ? share : 0.0)) / s->scale[i];
        double here = s->state[i] == LOW ? -excess : s->state[i] == HIGH ? excess : 0.0;
        if (here > found.wrong) { found.wrong = here; found.worst = i; }
        if (s->state[i] == FREE && fabs(excess) > found.unsolved) found.unsolved = fabs(excess);
        found.weighted += s->scale[i] * fabs(s->y[i]);
    }
    double linear = dot(s->q, s->y, s->n), square = dot(s->slope, s->y, s->n) - linear;
    found.allowed = enough * size_of(s, s->y, square, linear);
    return found;
}

static double larger(double a, double b) { return a > b ? a : b; }

static double middle_of(double *values, long count) { /* the median; sorts */
    for (long i = 1; i < count; i++) {
        double value = values[i];
        long j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
    if (!count) return 0.0;
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static void prepare(Search *s, int anew) {
    long n = s->n, chosen = 0;
    double largest = 0, reach = 1.0;
    for (long i = 0; i < n; i++) {
        double square = s->Q[i * s->stride + i], root = sqrt(square > 0 ? square : 0);
        s->scale[i] = root > 1e-150 ? root : 1.0;
        if (square > largest) largest = square;
        if (fabs(s->y[i]) > reach) reach = fabs(s->y[i]);
    }
    for (long i = 0; i < n; i++) {
        double least = 1e-20 * (largest > 0 ? largest : 1.0), square = s->Q[i * s->stride + i];
        s->diagonal[i] = square > least ? square : least;
    }
    memcpy(s->start, s->y, n * sizeof(double));
    for (long i = 0; i < n; i++) {
        if (s->y[i] <= s->lower[i] + 1e-9 * reach) s->y[i] = s->lower[i];
        else if (s->y[i] >= s->upper[i] - 1e-9 * reach) s->y[i] = s->upper[i];
    }
    if (!make_feasible(s, s->y)) memcpy(s->y, s->start, n * sizeof(double));
    s->sigma = 0;
    if (s->simplex) {
        largest = 0;
        for (long i = 0; i < n; i++) if (s->joined[i] && s->diagonal[i] > largest) largest = s->diagonal[i];
        for (long i = 0; i < n; i++)
            if (s->joined[i] && s->diagonal[i] > 1e-12 * largest) s->excess[chosen++] = s->diagonal[i];
        s->sigma = middle_of(s->excess, chosen);
    }
    for (long i = 0; i < n; i++) {
        s->ceiling[i] = s->joined[i] ? INFINITY : s->upper[i]; /* the sum bounds these */
        s->state[i] = s->y[i] <= s->lower[i] ? LOW : s->y[i] >= s->ceiling[i] ? HIGH : FREE;
    }
    s->rough = 0;
    s->count = 0;
    if (s->kept) { s->factor = s->kept->factor; s->leading = s->kept->leading; }
    refresh(s);
    s->recalled = !anew && recall(s);
    if (s->recalled) return;
    collect(s);
    rebuild(s);
}

/* Lay out the arrays of a search after the matrix, q, lower, upper and y; returns the end. */
static double *lay_out(Search *s, double *next) {
    long n = s->n;
    double **parts[] = {&s->q, &s->lower, &s->upper, &s->y, &s->scale, &s->diagonal, &s->ceiling, &s->slope, &s->excess,
                        &s->start, &s->row, &s->down, &s->along, &s->near, &s->owed, &s->below, &s->ones};
    for (unsigned long i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) { *parts[i] = next; next += n; }
    s->factor = next; next += n * n;
    s->leading = n;
    s->free_entries = (long *)next; next += n;  /* a long is at most as long as a double */
    s->state = (char *)next; next += n;
    s->joined = (char *)next;
    return next + n;
}

/* Search from a feasible y; the solution is left in y. Returns its residual. */
static double search(Search *s, long rounds, double enough, int anew) {
    long n = s->n;
    prepare(s, anew);
    int refinements = 0, fresh = 1;
    for (long round = 0; round < rounds; round++) {
        if (advance(s)) { refinements = 0; fresh = 0; continue; }
        Faults f = faults_of(s, enough);
        if (larger(f.wrong, f.unsolved) <= f.allowed || !(f.wrong > 1e-15 * f.weighted)) {
            if (fresh || refinements > REFINEMENTS) break;
            refresh(s);
            f = faults_of(s, enough);
            if (larger(f.wrong, f.unsolved) <= POLISHED * f.allowed) break; /* another step would change nothing */
            if (refinements) rebuild(s); /* the factor drifts too */
            refinements++; fresh = 1;
        } else if (f.unsolved > larger(f.allowed, f.wrong) && refinements < REFINEMENTS) {
            refinements++;
            s->solved = 0; /* solve with the slopes themselves this time */
        } else {
            enter(s, f.worst);
            refinements = 0; fresh = 0;
        }
    }
    double residual = make_feasible(s, s->y) ? residual_of(s, s->y) : INFINITY;
    if (residual > enough) {
        double before = residual_of(s, s->start);
        if (!(residual <= before)) { memcpy(s->y, s->start, n * sizeof(double)); residual = before; }
    }
    return residual;
}

/* Solve, leaving the solution in y. Returns its residual, or −1 if the start y cannot be made feasible. */
static double run(Search *s, long rounds, double enough) {
    s->count = 0;
    if (!make_feasible(s, s->y)) return -1.0;
    double residual = search(s, rounds, enough, 0);
    if (!(residual <= enough)) { /* the reused factor or the updates may be the cause: try again without them */
        s->careful = 1;
        memcpy(s->y, s->start, s->n * sizeof(double));
        residual = search(s, rounds, enough, 1);
    }
    keep(s, residual <= enough);
    return residual;
}

/* `memory` contains the matrix, q, lower, upper and y, with room for `qp_doubles(n)` numbers in all. */
double qp_solve(double *memory, long n, long simplex, long rounds, double enough, void *factorize, const double *fixed_row,
                double square) {
    Search s = {.n = n, .simplex = simplex, .stride = n, .Q = memory, .factorize = (Factorize)factorize, .fixed_row = fixed_row,
                .square = square};
    lay_out(&s, memory + n * n);
    for (long i = 0; i < n; i++) s.joined[i] = i < simplex; /* the first ones */
    return run(&s, rounds, enough);
}
