// Runs the training kernel on a processor, statement by statement as a GPU would: each thread of a cluster is a coroutine,
// which goes on until it waits for others. The order in which they take turns is the caller's, so that a barrier that is
// missing gives other numbers in another order. Copies past the registers are made at once where threads go from the first, and
// otherwise as late as they may be: when their thread waits for them.

#define ON_CPU
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <ucontext.h>
#include <utility>
#include <vector>

typedef REAL real;
struct alignas(4 * sizeof(real)) real4 {
    real x, y, z, w;
};
#define DEVICE inline
#define UNROLL
#define CLUSTERED
#define __global__
#define __launch_bounds__(...)

constexpr int TURNS = 256 * CLUSTER, STACK_BYTES = 256 * 1024;

static long moves;  // arrivals at barriers, of whoever
struct Meeting {    // a barrier that can be used again
    int count = 0, times = 0;
    bool arrive(int wanted) {
        moves++;
        if (++count < wanted) return false;
        count = 0;
        times++;
        return true;
    }
};
struct Coroutine {
    ucontext_t context;
    bool over = false;
    int thread = 0, block = 0, local = 0, awaited = 0;
    std::vector<std::pair<real*, const real*>> copies;
};

static ucontext_t scheduler;
static std::vector<Coroutine> turns(TURNS);
static Coroutine* current;
static bool late;
static std::vector<real> memory[CLUSTER];
static Meeting blocks[CLUSTER], warps[CLUSTER][8], together;
static real slots[CLUSTER][8][32][64];

static void others_first() { swapcontext(&current->context, &scheduler); }
static void meet(Meeting& here, int wanted) {
    const int before = here.times;
    here.arrive(wanted);
    while (here.times == before) others_first();
}

#define THREAD (current->thread)
#define BLOCK (current->block)
#define SHARED(name) real* name = memory[current->local].data()

inline void barrier() { meet(blocks[current->local], 256); }
inline void cluster_arrive() {
    if (CLUSTER == 1) return;
    current->awaited = together.times + 1;
    together.arrive(TURNS);
}
inline void cluster_wait() {
    while (CLUSTER > 1 && together.times < current->awaited) others_first();
}
inline void copy_four(real* shared, const real* global) {
    if (late) current->copies.emplace_back(shared, global);
    else std::memcpy(shared, global, 4 * sizeof(real));
}
inline void copies_done() {
    for (const auto& [shared, global] : current->copies) std::memcpy(shared, global, 4 * sizeof(real));
    current->copies.clear();
}

template <int N>
inline void warp_sums(real (&values)[N]) {
    const int warp = current->thread / 32, lane = current->thread % 32;
    auto& own = slots[current->local][warp];
    std::memcpy(own[lane], values, sizeof(values));
    meet(warps[current->local][warp], 32);
    for (int j = 0; j < N; j++) {
        real sums[32];
        for (int i = 0; i < 32; i++) sums[i] = own[i][j];
        for (int far = 16; far > 0; far /= 2) for (int i = 0; i < far; i++) sums[i] += sums[i + far];
        values[j] = sums[0];
    }
    meet(warps[current->local][warp], 32);
}
template <int N>
inline void spread(real (&values)[N], real one) {
    const int warp = current->thread / 32, lane = current->thread % 32;
    auto& own = slots[current->local][warp];
    own[lane][0] = one;
    meet(warps[current->local][warp], 32);
    for (int j = 0; j < N; j++) values[j] = own[j][0];
    meet(warps[current->local][warp], 32);
}

template <int N>
inline void column_sums(real (&values)[N]) {
    const int warp = current->thread / 32, lane = current->thread % 32;
    auto& own = slots[current->local][warp];
    std::memcpy(own[lane], values, sizeof(values));
    meet(warps[current->local][warp], 32);
    for (int j = 0; j < N; j++) {
        real sums[8];
        for (int i = 0; i < 8; i++) sums[i] = own[4 * i + lane % 4][j];
        for (int far = 4; far > 0; far /= 2) for (int i = 0; i < far; i++) sums[i] += sums[i + far];
        values[j] = sums[0];
    }
    meet(warps[current->local][warp], 32);
}
// as `cvt.rna.tf32` rounds, or not at all, so that everything else can be held against float64
inline real ten_bits(real v) {
    if (!ROUNDED || !std::isfinite(v) || v == 0) return v;
    int power;
    const real part = std::frexp(v, &power);  // 0.5 to 1: the first of the 11 digits is not stored
    return std::ldexp(std::round(part * 2048), power - 11);  // halves go away from 0
}
inline void four_by_eight(real (&values)[4], const real* row) {
    const int warp = current->thread / 32, lane = current->thread % 32;
    auto& own = slots[current->local][warp];
    std::memcpy(own[lane], row, 4 * sizeof(real));
    meet(warps[current->local][warp], 32);
    for (int i = 0; i < 4; i++) values[i] = own[8 * i + lane / 4][lane % 4];
    meet(warps[current->local][warp], 32);
}
// as PTX lays out the tiles of `mma.m16n8k8`: every lane puts its part down, and takes its sums from what the others have put
inline void multiply(real* c, real a0, real a1, real a2, real a3, real b0, real b1) {
    const int warp = current->thread / 32, lane = current->thread % 32, g = lane / 4, t = lane % 4;
    auto& own = slots[current->local][warp];
    const real parts[6] = {a0, a1, a2, a3, b0, b1};
    std::memcpy(own[lane], parts, sizeof(parts));
    meet(warps[current->local][warp], 32);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 8; k++) {
            const real a = own[4 * g + k % 4][i / 2 + 2 * (k / 4)], b = own[4 * (2 * t + i % 2) + k % 4][4 + k / 4];
            c[i] += a * b;
        }
    }
    meet(warps[current->local][warp], 32);
}

inline int anew(int v) { return v; }
inline real4 four_of(const real* global) { return *reinterpret_cast<const real4*>(global); }
inline void put_out(real* global, real4 v) { *reinterpret_cast<real4*>(global) = v; }
inline void put_in(real* shared, real4 v) { *reinterpret_cast<real4*>(shared) = v; }
inline real lowest() { return -INFINITY; }

inline real from_lane(real one, int lane) {
    const int warp = current->thread / 32;
    auto& own = slots[current->local][warp];
    own[current->thread % 32][0] = one;
    meet(warps[current->local][warp], 32);
    const real value = own[lane][0];
    meet(warps[current->local][warp], 32);
    return value;
}

inline void read_again() {}
inline real exact_root(real v) { return std::sqrt(v); }
inline real root(real v) { return std::sqrt(v); }
inline real quotient(real a, real b) { return a / b; }
inline real exponential(real v) { return std::exp(v); }
inline real logarithm(real v) { return std::log(v); }
inline double power(double a, double b) { return std::pow(a, b); }
inline double double_root(double v) { return std::sqrt(v); }

#include KERNEL

static void* const* arguments;
static void body() {
    void* const* a = arguments;
    train((const int*)a[0], (real*)a[1], (real*)a[2], (real*)a[3], (real*)a[4], (const real*)a[5], (const int*)a[6],
          (const int*)a[7], (const int*)a[8], (const int*)a[9], (const real*)a[10], (const real*)a[11], (const real*)a[12],
          (real*)a[13], (real*)a[14]);
    current->over = true;
    swapcontext(&current->context, &scheduler);
}

// All members, one cluster after the other; threads take turns from the first (order 0), from the last (1), or by lot; or, from the
// last (3) or the first (4), each warp goes on as far as it can before the next one does.
// 0, or 1 where they wait for each other for ever.
extern "C" int run(void* const* given, int members, int shared_bytes, int order) {
    arguments = given;
    late = order != 0;
    std::vector<int> next(TURNS);
    for (int t = 0; t < TURNS; t++) next[t] = order == 1 || order == 3 ? TURNS - 1 - t : t;
    std::mt19937 lot(order);
    std::vector<std::vector<char>> stacks(TURNS, std::vector<char>(STACK_BYTES));
    for (int member = 0; member < members; member++) {
        for (auto& block : memory) block.assign(shared_bytes / sizeof(float), (real)NAN);  // what nobody wrote is seen
        for (int t = 0; t < TURNS; t++) {
            Coroutine& one = turns[t];
            getcontext(&one.context);
            one.context.uc_stack.ss_sp = stacks[t].data();
            one.context.uc_stack.ss_size = STACK_BYTES;
            one.context.uc_link = nullptr;
            one.over = false;
            one.thread = t % 256;
            one.local = t / 256;
            one.block = member * CLUSTER + t / 256;
            makecontext(&one.context, body, 0);
        }
        for (int left = TURNS, idle = 0; left > 0;) {
            left = 0;
            if (order == 2) std::shuffle(next.begin(), next.end(), lot);
            const int together_go = order > 2 ? 32 : TURNS;
            for (int group = 0; group < TURNS; group += together_go) {
                long before;
                do {
                    before = moves;
                    for (int t = group; t < group + together_go; t++) {
                        current = &turns[next[t]];
                        if (!current->over) swapcontext(&scheduler, &current->context);
                    }
                } while (order > 2 && moves != before);
            }
            for (const Coroutine& one : turns) left += !one.over;
            if (++idle > 100000000) return 1;
        }
    }
    return 0;
}
