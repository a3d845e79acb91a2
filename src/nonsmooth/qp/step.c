/* The step of a model in one call: the quadratic program, and what its answer says. See model.py, which does the same.
 *
 * G holds the gradients as rows: those of the cuts, that of x itself first, then those of the constraints, then further
 * linearisations of single constraints. S holds H times each of them, Q is G·H·Gᵀ. Data lie one behind the other:
 *   data: errors of the cuts, hints about their weights, values of all constraint rows, signs of the further ones
 *   out:  y, direction, gradient, its part from the cuts, a multiplier for each own constraint,
 *         then change of f, violation, error, residual, seconds in the program
 */

#define _POSIX_C_SOURCE 199309L /* for the clock */

#include "kernel.c"
#include "rows.c"

#include <time.h>

#define FEW_CUTS 12   /* up to so many it is not worth looking for those that do not matter */
#define ENOUGH 1e-9   /* where the search for an answer ends */
#define TRUSTED 1e-7  /* what an answer must reach */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef struct {
    long n, cuts, own, equalities, rows, total;
    const long *owners; /* the constraint that each further row belongs to */
    const double *errors, *hints, *values, *signs;
    const double *Q, *G, *S;
} Model;

/* How many entries may carry a step with this weight; which they are. See Model._session for why the others cannot. */
static long choose(const Model *m, const double *asked, double weight, long *kept) {
    long count = 0, first = m->cuts;
    if (m->cuts > FEW_CUTS) {
        double hinted = 0, lowest = 0.5 * m->Q[0], square = 0, error = 0, violation = 0;
        for (long i = 0; i < m->cuts; i++) hinted += m->hints[i];
        for (long i = 0; i < m->cuts; i++) {
            if (m->hints[i] == 0) continue;
            square += m->hints[i] * dot(m->Q + i * m->total, m->hints, m->cuts);
            error += m->hints[i] * m->errors[i];
        }
        double bound = 0.5 * square / (hinted * hinted) + error / hinted;
        if (bound < lowest) lowest = bound;
        for (long i = 0; i < m->rows; i++)
            violation += i < m->equalities ? fabs(asked[i]) : asked[i] > 0 ? asked[i] : 0;
        bound = 2.0 * ((lowest > 0 ? lowest : 0) + weight * violation);
        double length = sqrt(bound), slack = bound + (m->rows ? length * sqrt(m->Q[0] > 0 ? m->Q[0] : 0) : 0.0);
        for (long i = 0; i < m->cuts; i++) {
            double own = m->Q[i * m->total + i];
            if (m->errors[i] <= 1.001 * (length * sqrt(own > 0 ? own : 0) + slack)) kept[count++] = i;
        }
    } else {
        for (long i = 0; i < m->cuts; i++) kept[count++] = i;
    }
    for (long i = first; i < m->total; i++) kept[count++] = i;
    return count;
}

static double lower_of(const Model *m, long i, double weight) {
    return i >= m->cuts && i < m->cuts + m->equalities ? -weight : 0.0;
}

static double slope_of(const Model *m, const double *asked, long i) {
    return i < m->cuts ? m->errors[i] : -asked[i - m->cuts];
}

/* The answer of the program, in y, from where y is; its residual, or −1 where there is none to be trusted. */
static double program(const Model *m, const double *asked, double weight, double *y, double *memory, void *factorise) {
    long *kept = (long *)memory, count = choose(m, asked, weight, kept), simplex = 0, total = m->total;
    memory += total;
    while (simplex < count && kept[simplex] < m->cuts) simplex++;
    if (!simplex) return -1.0; /* something is not a number */
    if (count - simplex <= 1 && simplex == 1) { /* at most one entry is free */
        double free_value = 0;
        if (count > 1) {
            long last = kept[1];
            double slope = slope_of(m, asked, last) + m->Q[kept[0] * total + last], steepness = m->Q[last * total + last];
            double target = slope == 0 ? 0 : steepness > 0 ? -slope / steepness : slope > 0 ? -INFINITY : INFINITY;
            free_value = clipped(target, lower_of(m, last, weight), weight);
            if (isnan(free_value)) return -1.0;
        }
        memset(y, 0, total * sizeof(double));
        y[kept[0]] = 1.0;
        if (count > 1) y[kept[1]] = free_value;
        return 0.0;
    }
    long skipped = simplex == 1; /* that one is a constant; what is left is a program over the box alone */
    long n = count - skipped;
    Search s = {.n = n, .simplex = skipped ? 0 : simplex, .factorise = (Factorise)factorise};
    double *rest = lay_out(&s, memory);
    if (count == total) { /* the matrix is used where it lies */
        s.Q = m->Q + skipped * (total + 1);
        s.stride = total;
    } else {
        double *part = rest;
        for (long j = 0; j < n; j++)
            for (long i = 0; i < n; i++) part[j * n + i] = m->Q[kept[j + skipped] * total + kept[i + skipped]];
        s.Q = part;
        s.stride = n;
    }
    for (long i = 0; i < n; i++) {
        long entry = kept[i + skipped];
        s.q[i] = slope_of(m, asked, entry) + (skipped ? m->Q[kept[0] * total + entry] : 0.0);
        s.lower[i] = lower_of(m, entry, weight);
        s.upper[i] = entry < m->cuts ? 1.0 : weight;
        s.y[i] = y[entry];
    }
    double residual = run(&s, 20 + 10 * n, ENOUGH);
    if (!(residual >= 0 && residual <= TRUSTED)) return -1.0;
    memset(y, 0, total * sizeof(double));
    if (skipped) y[kept[0]] = 1.0;
    for (long i = 0; i < n; i++) y[kept[i + skipped]] = s.y[i];
    return residual;
}

static void combine(double *sum, const double *rows, const double *weights, long count, long n) {
    for (long i = 0; i < count; i++)
        if (weights[i] != 0) add(sum, weights[i], rows + i * n, n);
}

/* What the answer says: everything behind y in `out`. */
static void describe(const Model *m, double *out, double *parts) {
    long n = m->n, cuts = m->cuts;
    double *y = out, *direction = y + m->total, *gradient = direction + n, *objective = gradient + n;
    double *multipliers = objective + n, *told = multipliers + m->own;
    memset(direction, 0, 3 * n * sizeof(double));
    combine(objective, m->G, y, cuts, n);
    memcpy(gradient, objective, n * sizeof(double));
    combine(gradient, m->G + cuts * n, y + cuts, m->rows, n);
    combine(direction, m->S, y, m->total, n);
    for (long i = 0; i < n; i++) direction[i] = -direction[i];
    double change = -INFINITY, violation = 0, error = 0;
    for (long i = 0; i < cuts; i++) {
        double here = dot(m->G + i * n, direction, n) - m->errors[i];
        if (here > change || isnan(here)) change = here;
        if (isnan(change)) break;
    }
    for (long i = 0; i < cuts; i++) error += y[i] * m->errors[i];
    memcpy(multipliers, y + cuts, m->own * sizeof(double));
    for (long i = 0; i < m->rows; i++) {
        double here = m->values[i] + dot(m->G + (cuts + i) * n, direction, n);
        if (i < m->own) {
            parts[i] = i < m->equalities ? fabs(here) : here > 0 || isnan(here) ? here : 0.0;
        } else {
            long owner = m->owners[i - m->own];
            if (here > parts[owner] || isnan(here)) parts[owner] = here;
            multipliers[owner] += m->signs[i - m->own] * y[cuts + i];
        }
    }
    for (long i = 0; i < m->own; i++) violation += parts[i];
    told[0] = change; told[1] = violation; told[2] = error;
}

/* How many numbers of memory a model with so many gradients needs. */
long step_doubles(long total) { return qp_doubles(total) + 3 * total; }

/* 1 if a step was found; 0 where the program is better left to others. `asked` are the values of the constraints for which
 * the program is made; `start` is where it begins, as found for the weight `limit`. */
int model_step(double *memory, const double *Q, const double *G, const double *S, const double *data, long n, long cuts,
               long own, long further, long equalities, const long *owners, const double *asked, const double *start,
               double limit, double weight, double *out, void *factorise) {
    Model m = {.n = n, .cuts = cuts, .own = own, .rows = own + further, .total = cuts + own + further,
               .equalities = equalities, .owners = owners, .Q = Q, .G = G, .S = S};
    m.errors = data; m.hints = data + m.cuts; m.values = m.hints + m.cuts; m.signs = m.values + m.rows;
    double *y = out, *told = out + m.total + 3 * m.n + m.own;
    for (long i = 0; i < m.total; i++) { /* what was at its limit is at the limit now */
        int limited = i >= m.cuts && fabs(start[i]) >= limit;
        y[i] = limited ? (start[i] > 0 ? weight : start[i] < 0 ? -weight : 0.0) : start[i];
    }
    double begun = now(), residual = program(&m, asked, weight, y, memory, factorise);
    told[4] = now() - begun;
    if (residual < 0) return 0;
    told[3] = residual;
    describe(&m, out, memory);
    return 1;
}
