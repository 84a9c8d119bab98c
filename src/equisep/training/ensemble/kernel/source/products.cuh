// Products of matrices in shared memory, as a warp takes its part of them.

DEVICE real4 four(const real* p) { return *reinterpret_cast<const real4*>(p); }
DEVICE void put(real* p, real4 v) { *reinterpret_cast<real4*>(p) = v; }
DEVICE real4 zeros() { return real4{0, 0, 0, 0}; }

// where column `column` of a row stands. Rows for tensor cores are not padded but turned, so that all banks are met by 8 neighboring
// rows of four numbers, by 4 of eight, and by the rows 4i and 4i + 1 (i = 0..3) of four
DEVICE int turned(int row) { return (row & 1) << 4 | ((row ^ row >> 2) & 2) << 2 | (row & 4); }
DEVICE int place(int row, int column) { return row * LEAD + (TF32 ? column ^ turned(row) : column); }

// a factor of a product: with TF32 rounded to 10 bits
DEVICE real factor(real v) {
    if constexpr (TF32) return ten_bits(v);
    return v;
}
DEVICE real4 factors(real4 v) { return real4{factor(v.x), factor(v.y), factor(v.z), factor(v.w)}; }

// acc[j][s] += Σ_k weights[j][k] · across[k][4·lane + s] for k in [from, to) by `every`, all of them multiples of 4
template <int N>
DEVICE void product(real (&acc)[N][4], const real* across, const real* weights, int lane, int from, int to, int every) {
    for (int k = from; k < to; k += every) {
        const real4 a0 = four(across + place(k, 4 * lane)), a1 = four(across + place(k + 1, 4 * lane));
        const real4 a2 = four(across + place(k + 2, 4 * lane)), a3 = four(across + place(k + 3, 4 * lane));
        UNROLL for (int j = 0; j < N; j++) {
            const real4 w = factors(four(weights + j * STRIDE + k));
            acc[j][0] += w.x * a0.x; acc[j][1] += w.x * a0.y; acc[j][2] += w.x * a0.z; acc[j][3] += w.x * a0.w;
            acc[j][0] += w.y * a1.x; acc[j][1] += w.y * a1.y; acc[j][2] += w.y * a1.z; acc[j][3] += w.y * a1.w;
            acc[j][0] += w.z * a2.x; acc[j][1] += w.z * a2.y; acc[j][2] += w.z * a2.z; acc[j][3] += w.z * a2.w;
            acc[j][0] += w.w * a3.x; acc[j][1] += w.w * a3.y; acc[j][2] += w.w * a3.z; acc[j][3] += w.w * a3.w;
        }
    }
}

// acc[j][q] += Σ_b slope[j][b] · inputs[lane + 32 q][b] for samples b in [from, to) by `every`
template <int N>
DEVICE void gradient(real (&acc)[N][4], const real* slope, const real* inputs, int lane, int from, int to, int every) {
    for (int b = from; b < to; b += every) {
        real4 own[QUADS];
        UNROLL for (int q = 0; q < QUADS; q++) own[q] = four(inputs + place(lane + 32 * q, b));
        UNROLL for (int j = 0; j < N; j++) {
            const real4 d = factors(four(slope + place(j, b)));
            UNROLL for (int q = 0; q < QUADS; q++) acc[j][q] += d.x * own[q].x;
            UNROLL for (int q = 0; q < QUADS; q++) acc[j][q] += d.y * own[q].y;
            UNROLL for (int q = 0; q < QUADS; q++) acc[j][q] += d.z * own[q].z;
            UNROLL for (int q = 0; q < QUADS; q++) acc[j][q] += d.w * own[q].w;
        }
    }
}

template <int N>
DEVICE void clear(real (&acc)[N][4]) {
    UNROLL for (int j = 0; j < N; j++) UNROLL for (int s = 0; s < 4; s++) acc[j][s] = 0;
}

// values[lane]; not so written, since a register array has no run-time index
template <int N, int J = 0>
DEVICE real mine(const real (&values)[N], int lane) {
    if constexpr (J == N - 1) return values[J];
    else return lane == J ? values[J] : mine<N, J + 1>(values, lane);
}
