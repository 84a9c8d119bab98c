// What a GPU has and a processor has not: barriers, copies past the registers, sums over a warp, quick roots.
// Tests put their own in place of it, and run the rest on a processor.

#ifndef TF32
#define TF32 0
#endif
#ifndef ON_CPU
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define THREAD (int)threadIdx.x
#define BLOCK (int)blockIdx.x
#define SHARED(name) extern __shared__ float4 name##_memory[]; real* name = reinterpret_cast<real*>(name##_memory)
#if CLUSTER > 1
#define CLUSTERED __cluster_dims__(CLUSTER, 1, 1)
#else
#define CLUSTERED
#endif
typedef float real;
typedef float4 real4;

DEVICE void barrier() { __syncthreads(); }
DEVICE void cluster_arrive() {
    if (CLUSTER > 1) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
DEVICE void cluster_wait() {
    if (CLUSTER > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEVICE void copy_four(real* shared, const real* global) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(global) : "memory");
}
DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// every lane gets the sums over the warp of all N numbers
template <int N>
DEVICE void warp_sums(real (&values)[N]) {
    UNROLL for (int far = 16; far > 0; far /= 2) {
        UNROLL for (int j = 0; j < N; j++) values[j] += __shfl_xor_sync(0xffffffffu, values[j], far);
    }
}
// every lane gets the numbers of the first N lanes
template <int N>
DEVICE void spread(real (&values)[N], real own) {
    UNROLL for (int j = 0; j < N; j++) values[j] = __shfl_sync(0xffffffffu, own, j);
}

DEVICE real from_lane(real own, int lane) { return __shfl_sync(0xffffffffu, own, lane); }

// to 10 bits of mantissa, the nearest, of two the one farther from 0; NaN stays NaN
DEVICE real ten_bits(real v) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return __uint_as_float(r);
}
// the same number, of which the compiler knows nothing: what follows from it is not kept for long, for want of registers
DEVICE int anew(int v) {
    asm volatile("" : "+r"(v));
    return v;
}
// four numbers at once, which compilers take apart where the registers do not lie side by side
DEVICE real4 four_of(const real* global) {
    real4 v;
    asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(__cvta_generic_to_global(global)) : "memory");
    return v;
}
DEVICE void put_out(real* global, real4 v) {
    asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};"
        ::"l"(__cvta_generic_to_global(global)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
DEVICE void put_in(real* shared, real4 v) {
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};"
        ::"r"((unsigned)__cvta_generic_to_shared(shared)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
DEVICE real lowest() { return __int_as_float(0xff800000); }
// every lane gets the sums over the lanes of its column, that is with the same remainder by 4
template <int N>
DEVICE void column_sums(real (&values)[N]) {
    UNROLL for (int far = 16; far > 2; far /= 2) {
        UNROLL for (int j = 0; j < N; j++) values[j] += __shfl_xor_sync(0xffffffffu, values[j], far);
    }
}
// four matrices of 8 rows of 4 numbers from shared memory, of which each lane names one row: the first eight those of the first
// matrix. Every lane gets the number lane % 4 of the row lane / 4 of each
DEVICE void four_by_eight(real (&values)[4], const real* row) {
    unsigned v[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");
    UNROLL for (int i = 0; i < 4; i++) values[i] = __uint_as_float(v[i]);
}
// C += A B of 16×8 and 8×8 numbers that are rounded already. Of lane 4g + t are the rows g and g + 8 of A and of C, the column g of
// B, the terms t and t + 4, and the columns 2t and 2t + 1 of C
DEVICE void multiply(real* c, real a0, real a1, real a2, real a3, real b0, real b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

DEVICE void read_again() { asm volatile("" ::: "memory"); }  // nothing is read ahead, or kept, for want of registers

DEVICE real exact_root(real v) { return sqrtf(v); }
// an optimizer's step is far smaller than the weight it moves: two units in its last place are none in the weight's
DEVICE real root(real v) {
    real r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
DEVICE real quotient(real a, real b) { return __fdividef(a, b); }
DEVICE real exponential(real v) { return expf(v); }
DEVICE real logarithm(real v) { return logf(v); }
DEVICE double power(double a, double b) { return pow(a, b); }
DEVICE double double_root(double v) { return sqrt(v); }
#endif
