// What a GPU has and a processor has not: barriers, copies past the registers, sums over a warp, quick roots.
// Tests put their own in place of it, and run the rest on a processor.

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
