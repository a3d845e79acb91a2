/* On x86-64 the sources are compiled twice: for all processors, and for those with AVX2. The functions of the second build get
 * separate names; `use_avx2` in library.c selects the build to call. Both give identical results: no sum is reordered, and no
 * product is fused with a sum. */

#ifdef NONSMOOTH_AVX2
#define workspace_build workspace_build_avx2
#define workspace_free workspace_free_avx2
#define workspace_new workspace_new_avx2
#define workspace_reference workspace_reference_avx2
#define workspace_step workspace_step_avx2
#define qp_solve qp_solve_avx2
#define rows_errors rows_errors_avx2
#endif
