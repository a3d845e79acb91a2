/* On x86-64 the sources are compiled twice: for all processors, and for those with AVX2. The functions of the second build get
 * names of their own; `use_avx2` in library.c says which ones to call. Both round alike: no sum is reordered, and no product is
 * fused with a sum. */

#ifdef NONSMOOTH_AVX2
#define bench_build bench_build_avx2
#define bench_free bench_free_avx2
#define bench_new bench_new_avx2
#define bench_reference bench_reference_avx2
#define bench_step bench_step_avx2
#define qp_solve qp_solve_avx2
#define rows_errors rows_errors_avx2
#endif
