/* Functions that the loader calls first. */

#ifndef SOURCE_DIGEST
#error "compile with -DSOURCE_DIGEST=\"…\", as hatch_build.py does"
#endif

/* The digest of the sources that the library was built from, as native/sources.py computes it. */
const char *source_digest(void) { return SOURCE_DIGEST; }

/* Whether to call the functions whose names end in `_avx2`. */
int use_avx2(void) {
#ifdef WITH_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}
