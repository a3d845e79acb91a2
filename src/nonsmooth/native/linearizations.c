/* Linearization errors. */

#include <math.h>
#include <string.h>

#include "variant.h"

/* How far value + row·(x − point) lies from the true value at x, or locality·|x − point|² if that is larger; see
 * LinearizationTable.errors. `true_values` has one value for each row; if it is NULL, all have `true_value`. */
void rows_errors(const double *points, const double *rows, const double *values, long count, long n, const double *x,
                 const double *true_values, double true_value, double locality, double *errors) {
    for (long i = 0; i < count; i++) {
        const double *point = points + i * n, *row = rows + i * n;
        double a0 = 0, a1 = 0, s0 = 0, s1 = 0;
        long j = 0;
        for (; j + 2 <= n; j += 2) {
            double d0 = x[j] - point[j], d1 = x[j + 1] - point[j + 1];
            a0 += row[j] * d0; a1 += row[j + 1] * d1;
            s0 += d0 * d0; s1 += d1 * d1;
        }
        if (j < n) { double d = x[j] - point[j]; a0 += row[j] * d; s0 += d * d; }
        double apart = fabs((true_values ? true_values[i] : true_value) - values[i] - (a0 + a1)), least = locality * (s0 + s1);
        errors[i] = apart >= least || isnan(apart) ? apart : least;
    }
}
