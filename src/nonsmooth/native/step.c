/* The step of a model in one call: solve the quadratic program and compute the step from it. model.py does the same in Python.
 *
 *   out: y, direction, gradient, objective gradient (the part of the cuts), one multiplier for each constraint at x,
 *        then the change of f, the violation, the error, the residual, and the seconds spent in the program
 */

#define _POSIX_C_SOURCE 199309L /* for clock_gettime */

#include "workspace.c"

#include <time.h>

#define MAX_UNSCREENED_CUTS 12   /* up to this number of cuts none is screened out */
#define SEARCH_RESIDUAL 1e-9   /* the residual at which the search ends */
#define TRUSTED_RESIDUAL 1e-7  /* the largest residual of an accepted solution */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Select the entries that may be active for this weight; their number. See Model._session for why the others cannot be. */
static long choose(const Workspace *b, double weight, long *kept, double *weights) {
    long count = 0, cuts = b->cuts, room = b->room, rows = b->own + b->further;
    if (cuts > MAX_UNSCREENED_CUTS) {
        double here = b->Q[b->places[0] * (room + 1)], hinted = 0, lowest = 0.5 * here, square = 0, error = 0, violation = 0;
        memset(weights, 0, b->total * sizeof(double));
        for (long i = 0; i < cuts; i++) { hinted += b->hints[i]; weights[b->places[i]] = b->hints[i]; }
        for (long i = 0; i < cuts; i++) {
            if (b->hints[i] == 0) continue;
            square += b->hints[i] * dot(b->Q + b->places[i] * room, weights, b->total);
            error += b->hints[i] * b->errors[i];
        }
        double bound = 0.5 * square / (hinted * hinted) + error / hinted;
        if (bound < lowest) lowest = bound;
        for (long i = 0; i < rows; i++)
            violation += i < b->equalities ? fabs(b->values[i]) : b->values[i] > 0 ? b->values[i] : 0;
        bound = 2.0 * ((lowest > 0 ? lowest : 0) + weight * violation);
        double length = sqrt(bound), slack = bound + (rows ? length * sqrt(here > 0 ? here : 0) : 0.0);
        for (long i = 0; i < cuts; i++) {
            double own = b->Q[b->places[i] * (room + 1)];
            if (b->errors[i] <= 1.001 * (length * sqrt(own > 0 ? own : 0) + slack)) kept[count++] = i;
        }
    } else {
        for (long i = 0; i < cuts; i++) kept[count++] = i;
    }
    for (long i = cuts; i < b->total; i++) kept[count++] = i;
    return count;
}

static double lower_of(const Workspace *b, long i, double weight) {
    return i >= b->cuts && i < b->cuts + b->equalities ? -weight : 0.0;
}

static double slope_of(const Workspace *b, long i) {
    return i < b->cuts ? b->errors[i] : -b->values[i - b->cuts];
}

static double between(const Workspace *b, long one, long other) { return b->Q[b->places[one] * b->room + b->places[other]]; }

/* Solve the program over the first `count` entries in `chosen`, starting from y; the solution is left in y. Returns its residual,
 * or −1 if the solution cannot be trusted. */
static double program(Workspace *b, double weight, double *y, long *chosen, long count, double *memory) {
    long simplex = 0, total = b->total, room = b->room;
    while (simplex < count && chosen[simplex] < b->cuts) simplex++;
    if (count - simplex <= 1 && simplex == 1) { /* at most one entry is free */
        double free_value = 0;
        if (count > 1) {
            long last = chosen[1];
            double slope = slope_of(b, last) + between(b, chosen[0], last), steepness = between(b, last, last);
            double target = slope == 0 ? 0 : steepness > 0 ? -slope / steepness : slope > 0 ? -INFINITY : INFINITY;
            free_value = clipped(target, lower_of(b, last, weight), weight);
            if (isnan(free_value)) return -1.0;
        }
        memset(y, 0, total * sizeof(double));
        y[chosen[0]] = 1.0;
        if (count > 1) y[chosen[1]] = free_value;
        return 0.0;
    }
    long alone = simplex == 1 ? chosen[0] : -1; /* its weight is 1, and the rest is a program over the box */
    long n = count - (alone >= 0), *places = (long *)memory, *rows = places + total, first, in_place;
    memory += 2 * total;
    /* Entries in the order of their places: if the places are contiguous, the matrix is used without copying. */
    for (long i = 0; i < total; i++) rows[i] = -1;
    for (long i = 0; i < count; i++) if (chosen[i] != alone) rows[b->places[chosen[i]]] = chosen[i];
    for (first = 0; first < total && rows[first] < 0;) first++;
    double weights = 0;
    for (long i = 0; i < simplex; i++) weights += y[chosen[i]];
    if (simplex && !(weights > 0)) y[chosen[0]] = 1.0; /* every cut with a weight has been removed */
    long kept = 0;
    for (long place = first; place < total; place++)
        if (rows[place] >= 0) { places[kept] = place; rows[kept++] = rows[place]; }
    if (kept != n) return -1.0; /* impossible: two rows in one place */
    in_place = places[n - 1] - first == n - 1;
    Search s = {.n = n, .simplex = alone >= 0 ? 0 : simplex, .factorize = b->factorize, .kept = &b->kept, .places = places};
    double *fixed_row = memory;
    memory += n;
    double *part = lay_out(&s, memory);
    if (alone >= 0) { s.fixed_row = fixed_row; s.square = between(b, alone, alone); }
    s.Q = in_place ? b->Q + first * (room + 1) : part;
    s.stride = in_place ? room : n;
    for (long i = 0; i < n; i++) {
        long entry = rows[i];
        s.joined[i] = alone < 0 && entry < b->cuts;
        fixed_row[i] = alone >= 0 ? between(b, alone, entry) : 0.0;
        s.q[i] = slope_of(b, entry) + fixed_row[i];
        s.lower[i] = lower_of(b, entry, weight);
        s.upper[i] = entry < b->cuts ? 1.0 : weight;
        s.y[i] = y[entry];
        if (in_place) continue;
        for (long j = 0; j < n; j++) part[i * n + j] = b->Q[places[i] * room + places[j]];
    }
    double residual = run(&s, 20 + 10 * n, SEARCH_RESIDUAL);
    if (!(residual >= 0 && residual <= TRUSTED_RESIDUAL)) return -1.0;
    memset(y, 0, total * sizeof(double));
    if (alone >= 0) y[alone] = 1.0;
    for (long i = 0; i < n; i++) y[rows[i]] = s.y[i];
    return residual;
}

static void combine(const Workspace *b, double *sum, const double *weights, long first, long last) {
    for (long i = first; i < last; i++)
        if (weights[i] != 0) add_row(b, sum, weights[i], b->places[i]);
}

/* direction = −H·r for the combination r of the rows from `first` on. */
static void direct(const Workspace *b, double *direction, const double *combined, const double *y, long first, double *memory) {
    long n = b->n;
    const Metric *h = &b->metric;
    memset(direction, 0, n * sizeof(double));
    if (h->kind == LOW_RANK) { /* the products of r with all s and u are combinations of those of its rows */
        memset(memory, 0, b->wide * sizeof(double));
        for (long i = first; i < b->total; i++)
            if (y[i] != 0) add(memory, y[i], b->T + b->places[i] * n, b->wide);
        add(direction, -h->gamma, combined, n);
        for (long r = 0; r < b->wide; r++) add(direction, -memory[r % 2 ? r - 1 : r + 1], h->matrix + r * n, n);
        return;
    }
    for (long i = first; i < b->total; i++)
        if (y[i] != 0) add(direction, -y[i], b->T + b->places[i] * n, n);
}

/* The sum of violations after a step. If `multipliers` is given, sum up the multipliers of each constraint there. */
static double violation_of(const Workspace *b, const double *direction, const double *y, double *multipliers, double *parts) {
    double violation = 0;
    for (long i = 0; i < b->own + b->further; i++) {
        double here = b->values[i] + along(b, b->places[b->cuts + i], direction);
        if (i < b->own) {
            parts[i] = i < b->equalities ? fabs(here) : here > 0 || isnan(here) ? here : 0.0;
            if (multipliers) multipliers[i] = y[b->cuts + i];
        } else {
            long owner = b->owners[i - b->own];
            if (here > parts[owner] || isnan(here)) parts[owner] = here;
            if (multipliers) multipliers[owner] += b->signs[i - b->own] * y[b->cuts + i];
        }
    }
    for (long i = 0; i < b->own; i++) violation += parts[i];
    return violation;
}

/* Compute everything after y in `out`. */
static void describe(const Workspace *b, double *out, double *memory) {
    long n = b->n, cuts = b->cuts;
    double *y = out, *direction = y + b->total, *gradient = direction + n, *objective = gradient + n;
    double *multipliers = objective + n, *predictions = multipliers + b->own;
    memset(objective, 0, n * sizeof(double));
    combine(b, objective, y, 0, cuts);
    memcpy(gradient, objective, n * sizeof(double));
    combine(b, gradient, y, cuts, b->total);
    direct(b, direction, gradient, y, 0, memory);
    double change = -INFINITY, error = 0;
    for (long i = 0; i < cuts; i++) {
        double here = along(b, b->places[i], direction) - b->errors[i];
        if (here > change || isnan(here)) change = here;
        if (isnan(change)) break;
    }
    for (long i = 0; i < cuts; i++) error += y[i] * b->errors[i];
    predictions[0] = change;
    predictions[1] = violation_of(b, direction, y, multipliers, memory);
    predictions[2] = error;
}

/* The start of a program: entries at the old limit move to the new one. */
static void begin(const Workspace *b, const double *start, double limit, double weight, double *y) {
    for (long i = 0; i < b->total; i++) {
        int limited = i >= b->cuts && fabs(start[i]) >= limit;
        y[i] = limited ? (start[i] > 0 ? weight : start[i] < 0 ? -weight : 0.0) : start[i];
    }
}

/* 1 if the step was computed; 0 if the program could not be solved accurately. `start` is a solution for the weight `limit`, or
 * NULL for the first program. */
int workspace_step(Workspace *b, const double *start, double limit, double weight, double *out) {
    double *y = out, *predictions = out + b->total + 3 * b->n + b->own, *memory = b->memory + b->total, begun = now();
    long *chosen = (long *)b->memory;
    begin(b, start ? start : b->start, limit, weight, y);
    long count = choose(b, weight, chosen, memory);
    double residual = count && chosen[0] < b->cuts ? program(b, weight, y, chosen, count, memory) : -1.0;
    predictions[4] = now() - begun;
    if (residual < 0) return 0;
    predictions[3] = residual;
    describe(b, out, b->scratch);
    return 1;
}

/* The predicted sum of violations of the step that minimizes the violation alone; −1 if the program could not be solved
 * accurately. */
double workspace_reference(Workspace *b, const double *start, double limit, double weight) {
    double *y = b->memory + b->total, *memory = y + b->total, *combined = b->scratch, *direction = combined + b->n;
    long *chosen = (long *)b->memory, count = b->own + b->further;
    begin(b, start ? start : b->start, limit, weight, y);
    for (long i = 0; i < count; i++) chosen[i] = b->cuts + i;
    if (!(program(b, weight, y, chosen, count, memory) >= 0)) return -1.0;
    memset(combined, 0, b->n * sizeof(double));
    combine(b, combined, y, b->cuts, b->total);
    direct(b, direction, combined, y, b->cuts, direction + b->n);
    return violation_of(b, direction, NULL, NULL, direction + b->n);
}
