// A member whose products are taken by tensor cores, factors rounded to TF32's 10 bits and sums in float32. They are rounded where
// they are put into shared memory, weights where they are taken from there, which the optimizer needs whole.
//
// A warp has the same units as with float32, but a lane its part of the tiles that tensor cores take: with lane 4g + t, of the
// samples 32q + 4g + j (q, j = 0..3) the units 8n + 2t + e (e = 0, 1) of the warp's. Statistics are sums over the eight lanes of
// one t. What the next product needs is on its way from memory while this one's outputs are worked on. The classifier's own
// products are those of Member, of rounded factors.

#if TF32
constexpr int TILES = (COLUMNS + 7) / 8;  // of 8 units, a warp's
constexpr int PAIRS = (CHUNK + 15) / 16;  // of tiles of 8 inputs, in the gradient of weights
constexpr int ACROSS = (CHUNK + 7) / 8 % 2 ? (CHUNK + 7) / 8 * 8 : (CHUNK + 15) / 8 * 8;  // an odd multiple of 8, for all banks

struct TiledMember : Member {
    // acc[n][q][2j + e] += Σ_k across[k][32q + 4g + j] · weights of the unit 8n + 2t + e, k below a multiple of 4. Weights stand
    // in rows by unit, STRIDE apart, or (BACK) in rows by k, ACROSS apart
    template <bool BACK, bool ROUND>
    DEVICE void tiled(real (&acc)[TILES][4][8], const real* across, const real* weights, int terms) const {
        const int g = lane / 4, t = lane % 4, own = place(t, 4 * g);
        const real* b = weights + (BACK ? g + t * ACROSS : (lane / 16 * 8 % (8 * TILES) + lane % 8) * STRIDE + lane / 8 % 2 * 4);
        int k = 0;
        for (; k + 8 <= terms; k += 8) tiles<BACK, ROUND, true>(acc, across, own, b, k);
        if (k < terms) tiles<BACK, ROUND, false>(acc, across, own, b, k);
    }

    template <bool BACK, bool ROUND, bool WHOLE>
    DEVICE void tiles(real (&acc)[TILES][4][8], const real* across, int own, const real* b, int k) const {
        real low[TILES], high[TILES], both[4];
        if (!BACK) four_by_eight(both, b + k);
        UNROLL for (int n = 0; n < TILES; n++) {
            low[n] = factor(BACK ? b[8 * n + k * ACROSS] : both[2 * n]);
            high[n] = WHOLE ? factor(BACK ? b[8 * n + (k + 4) * ACROSS] : both[2 * n + 1]) : (real)0;
        }
        const real *a = across + (own ^ (k & 8)) + k * LEAD, *c = across + (own ^ (k & 8) ^ 4) + (k + 4) * LEAD;
        UNROLL for (int q = 0; q < 4; q++) {
            real4 v = four(a + 32 * q), w = WHOLE ? four(c + 32 * q) : zeros();
            if (ROUND) {
                v = factors(v);
                w = factors(w);
            }
            UNROLL for (int n = 0; n < TILES; n++) {
                multiply(&acc[n][q][0], v.x, v.y, w.x, w.y, low[n], high[n]);
                multiply(&acc[n][q][4], v.z, v.w, w.z, w.w, low[n], high[n]);
            }
        }
    }

    // acc[p][i][2r + e] += Σ_b D[first + g + 8r][b] · X[16p + 4t + 2i + e][b] for samples b below a multiple of 32
    DEVICE void tiled_gradient(real (&acc)[PAIRS][2][4], int first) const {
        const int row = lane % 8, matrix = lane / 8;
        const int slopes = place(first + row + matrix % 2 * 8, matrix / 2 * 4);
        const int inputs = place(row / 2 * 4 + matrix / 2 * 2 + row % 2, matrix % 2 * 4);
        for (int b = 0; b < size; b += 32) {
            UNROLL for (int part = 0; part < 32; part += 8) {
                real a[4];
                four_by_eight(a, d + (slopes ^ part) + b);
                UNROLL for (int p = 0; p < PAIRS; p++) {
                    real h[4];
                    four_by_eight(h, x + (inputs ^ part) + 16 * p * LEAD + b);
                    multiply(acc[p][0], a[0], a[1], a[2], a[3], h[0], h[1]);
                    multiply(acc[p][1], a[0], a[1], a[2], a[3], h[2], h[3]);
                }
            }
        }
    }

    // X[o][i] = weights to units i from `begin` on, a multiple of 4, zero beyond the last o; there once the copies are done
    DEVICE void load_across(int index) {
        const Layer l = layers[index];
        const int units = layers[index - 1].outputs, end = begin(units) + count(units), i = begin(units) / 4 * 4 + 4 * lane;
        if (i >= end) return;
        real* to = x + 4 * lane;
        for (int o = warp; o < l.padded(); o += WARPS) {
            if (o < l.outputs) copy_four(to + o * ACROSS, state + l.weight + o * l.lead + i);
            else put(to + o * ACROSS, zeros());
        }
    }

    // ---- one hidden layer, forward; its weights are on their way, and those of the next one follow
    DEVICE void forward(int index, int relu) {
        settle();
        const Layer& l = layers[index];
        const int first_unit = begin(l.outputs), own = count(l.outputs), column = warp * COLUMNS, g = lane / 4, t = lane % 4;
        real acc[TILES][4][8], bias[TILES][2], scale[TILES][2], shift[TILES][2];
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int q = 0; q < 4; q++) UNROLL for (int i = 0; i < 8; i++) acc[n][q][i] = 0;
        for (int from = 0; from < l.inputs; from += CHUNK) {
            if (index == 0 || CLUSTER > 1) load_inputs(index, from, relu);
            if (from > 0) load_weights(l, first_unit, own, from);
            copies_done();
            barrier();
            tiled<false, false>(acc, x, d + column * STRIDE, (at_most(l.inputs - from, CHUNK) + 3) / 4 * 4);
            barrier();
        }
        settle();
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            const int j = 8 * n + 2 * t + e, unit = first_unit + column + j;
            const bool holds = j < COLUMNS && column + j < own;
            bias[n][e] = holds ? state[l.bias() + unit] : (real)0;
            scale[n][e] = holds && l.mode != PLAIN ? state[l.scale() + unit] : (real)1;
            shift[n][e] = holds && l.mode != PLAIN ? state[l.shift() + unit] : (real)0;
        }
        load_weights_of(index + 1);
        const real bottom = relu ? (real)0 : lowest();
        int left = anew(size - 4 * g);
        real means[2 * TILES], squares[2 * TILES];
        const real share = (real)1 / size;
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            real& mean = means[2 * n + e];
            mean = 0;
            UNROLL for (int q = 0; q < 4; q++) UNROLL for (int j = 0; j < 4; j++) {
                acc[n][q][2 * j + e] += bias[n][e];
                mean += 32 * q + j < left ? acc[n][q][2 * j + e] : (real)0;
            }
        }
        if (l.mode == BY_BATCH) {
            column_sums<2 * TILES>(means);
            UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
                means[2 * n + e] *= share;
                left = anew(left);
                real& sum = squares[2 * n + e];
                sum = 0;
                UNROLL for (int q = 0; q < 4; q++) UNROLL for (int j = 0; j < 4; j++) {
                    const real gap = acc[n][q][2 * j + e] - means[2 * n + e];
                    sum += 32 * q + j < left ? gap * gap : (real)0;
                }
            }
            column_sums<2 * TILES>(squares);
        }
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            const int j = 8 * n + 2 * t + e, unit = first_unit + column + j;
            if (j >= COLUMNS || column + j >= own) continue;
            real mean = 0, inverse = 1;
            left = anew(left);
            if (l.mode == BY_BATCH) {
                mean = means[2 * n + e];
                inverse = 1 / exact_root(squares[2 * n + e] * share + EPSILON);
                if (g == 0) {
                    real *kept_mean = state + l.running_mean() + unit, *kept_var = state + l.running_var() + unit;
                    *kept_mean = STAYS * *kept_mean + FOLLOWS * mean;
                    *kept_var = STAYS * *kept_var + FOLLOWS * (squares[2 * n + e] / (size - 1));
                }
            } else if (l.mode == HELD) {
                mean = state[l.running_mean() + unit];
                inverse = 1 / exact_root(state[l.running_var() + unit] + EPSILON);
            }
            const real slope = scale[n][e] * inverse, offset = shift[n][e];
            if (g == 0) {
                scratch[l.mean() + unit] = mean;
                scratch[l.inverse() + unit] = inverse;
                scratch[l.slope() + unit] = slope;
                scratch[l.offset() + unit] = offset;
            }
            // beyond the batch stands the mean: see Member
            real* z = scratch + l.z + (long)unit * BATCH + 4 * g;
            UNROLL for (int q = 0; q < 4; q++) {
                real4 v = {acc[n][q][e], acc[n][q][2 + e], acc[n][q][4 + e], acc[n][q][6 + e]};
                v = within(v, left - 32 * q, mean);
                put_out(z + 32 * q, v);
                if (CLUSTER == 1) put_in(x + place(column + j, 32 * q + 4 * g), output(v, mean, slope, offset, bottom));
            }
        }
        if (CLUSTER > 1) {
            cluster_arrive();
            cluster_wait();
        } else if (warp == 0) {
            for (int i = l.outputs; i < l.padded(); i++) put(x + place(i, 4 * lane), zeros());
        }
    }

    // the weights of a layer that this block has, of its first inputs
    DEVICE void load_weights_of(int index) {
        const Layer& l = layers[index];
        if (index + 1 == depth) load_weights(l, 0, l.outputs, 0);
        else load_weights(l, begin(l.outputs), count(l.outputs), 0);
    }

    // the first samples that are left in the batch, the others replaced
    DEVICE static real4 within(real4 v, int left, real beyond) {
        return real4{left > 0 ? v.x : beyond, left > 1 ? v.y : beyond, left > 2 ? v.z : beyond, left > 3 ? v.w : beyond};
    }
    // ReLU where `bottom` is 0, nothing where it lies below all numbers; NaN stays NaN
    DEVICE static real above(real y, real bottom) { return y < bottom ? (real)0 : y; }
    DEVICE static real4 output(real4 v, real mean, real slope, real offset, real bottom) {
        return factors(real4{above((v.x - mean) * slope + offset, bottom), above((v.y - mean) * slope + offset, bottom),
                             above((v.z - mean) * slope + offset, bottom), above((v.w - mean) * slope + offset, bottom)});
    }
    // ---- backward through layer `index`, whose weights stand in X; with one block the inputs of the layer come in their place
    DEVICE void below(int index, real* exchanged, int relu) {
        settle();
        const Layer &l = layers[index], &under = layers[index - 1];
        const int first_unit = begin(under.outputs), own = count(under.outputs), column = warp * COLUMNS, g = lane / 4, t = lane % 4;
        real acc[TILES][4][8];
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int q = 0; q < 4; q++) UNROLL for (int i = 0; i < 8; i++) acc[n][q][i] = 0;
        const real* weights = x + first_unit % 4 + column;
        if (index + 1 == depth) tiled<true, true>(acc, s, weights, l.padded());
        else tiled<true, false>(acc, d, weights, l.padded());
        if (CLUSTER == 1) barrier();
        const bool by_batch = under.mode == BY_BATCH;
        const real bottom = relu ? (real)0 : lowest();
        int left = size - 4 * g;
        real first_sums[2 * TILES], second_sums[2 * TILES], biases[2 * TILES];
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            const int j = 8 * n + 2 * t + e, unit = first_unit + column + j;
            real &one = first_sums[2 * n + e], &two = second_sums[2 * n + e];
            one = two = 0;
            left = anew(left);
            if (j >= COLUMNS || column + j >= own) continue;
            const real middle = scratch[under.mean() + unit], steep = scratch[under.slope() + unit];
            const real shift = scratch[under.offset() + unit];
            const real* z = scratch + under.z + (long)unit * BATCH + 4 * g;
            UNROLL for (int q = 0; q < 4; q++) {
                const real4 v = four_of(z + 32 * q);
                const real gaps[4] = {v.x - middle, v.y - middle, v.z - middle, v.w - middle};
                UNROLL for (int k = 0; k < 4; k++) {
                    const bool off = gaps[k] * steep + shift <= bottom || 32 * q + k >= left;
                    real& slope = acc[n][q][2 * k + e];
                    slope = off ? (real)0 : slope;
                    one += slope;
                    two += off ? (real)0 : slope * gaps[k];
                }
                // kept for the second time, by the lane that put it there
                if (CLUSTER == 1) put_in(x + place(column + j, 32 * q + 4 * g), real4{gaps[0], gaps[1], gaps[2], gaps[3]});
            }
        }
        if (by_batch) {
            column_sums<2 * TILES>(first_sums);
            column_sums<2 * TILES>(second_sums);
        }
        const real share = (real)1 / size;
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            const int j = 8 * n + 2 * t + e, unit = first_unit + column + j;
            biases[2 * n + e] = 0;
            left = anew(left);
            if (j >= COLUMNS || column + j >= own) continue;
            const real steep = scratch[under.slope() + unit], inverted = scratch[under.inverse() + unit];
            const real middle = CLUSTER == 1 ? (real)0 : scratch[under.mean() + unit], shift = scratch[under.offset() + unit];
            const real common = by_batch ? first_sums[2 * n + e] * share : (real)0;
            const real along = by_batch ? second_sums[2 * n + e] * share * inverted * inverted : (real)0;
            const real* z = scratch + under.z + (long)unit * BATCH + 4 * g;
            real* out = exchanged + (long)unit * BATCH + 4 * g;
            UNROLL for (int q = 0; q < 4; q++) {
                real* here = x + place(column + j, 32 * q + 4 * g);
                const real4 v = CLUSTER == 1 ? four(here) : four_of(z + 32 * q);
                const real gaps[4] = {v.x - middle, v.y - middle, v.z - middle, v.w - middle};
                real slopes[4];
                UNROLL for (int k = 0; k < 4; k++) {
                    const real slope = (acc[n][q][2 * k + e] - common - gaps[k] * along) * steep;
                    slopes[k] = 32 * q + k < left ? slope : (real)0;
                    biases[2 * n + e] += slopes[k];
                }
                put_out(out + 32 * q, factors(real4{slopes[0], slopes[1], slopes[2], slopes[3]}));
                if (CLUSTER == 1) put_in(here, output(v, 0, steep, shift, bottom));
            }
        }
        if (!under.learns) return;
        column_sums<2 * TILES>(biases);
        UNROLL for (int n = 0; n < TILES; n++) UNROLL for (int e = 0; e < 2; e++) {
            const int j = 8 * n + 2 * t + e, unit = first_unit + column + j;
            if (g != 0 || j >= COLUMNS || column + j >= own) continue;
            update(under.bias() + unit, biases[2 * n + e]);
            if (by_batch) {
                update(under.scale() + unit, second_sums[2 * n + e] * scratch[under.inverse() + unit]);
                update(under.shift() + unit, first_sums[2 * n + e]);
            }
        }
    }

    // ---- the gradient of the weights of a hidden layer, and the optimizer's step; what comes next is fetched before
    DEVICE void learn(int index, bool exchanging, real* exchanged, int end, int relu) {
        settle();
        const Layer& l = layers[index];
        const int first_unit = begin(l.outputs), own = count(l.outputs), column = warp * COLUMNS, g = lane / 4, t = lane % 4;
        for (int from = 0; from < l.inputs; from += CHUNK) {
            if (CLUSTER > 1 || !exchanging) {
                load_inputs(index, from, relu);
                barrier();
            }
            real acc[PAIRS][2][4];
            UNROLL for (int p = 0; p < PAIRS; p++) UNROLL for (int i = 0; i < 8; i++) acc[p][i / 4][i % 4] = 0;
            tiled_gradient(acc, first_unit + column);
            if (from == 0 && exchanging) cluster_wait();  // the others have read the weights that change now
            barrier();
            settle();
            if (exchanging) fetch(index, exchanged, end);
            const int inputs = at_most(l.inputs - from, CHUNK);
            UNROLL for (int p = 0; p < PAIRS; p += AT_ONCE) {
                real4 w[AT_ONCE][2], m[AT_ONCE][2], v[AT_ONCE][2];
                UNROLL for (int u = 0; u < AT_ONCE; u++) UNROLL for (int r = 0; r < 2; r++) {
                    w[u][r] = m[u][r] = v[u][r] = zeros();
                    const int j = g + 8 * r, i = 16 * (p + u) + 4 * t;
                    if (p + u >= PAIRS || i >= inputs || j >= COLUMNS || column + j >= own) continue;
                    const int at = l.weight + (first_unit + column + j) * l.lead + from + i;
                    w[u][r] = four_of(state + at);
                    if (rule.adam || rule.momentum != 0) m[u][r] = four_of(first + at);
                    if (rule.adam) v[u][r] = four_of(second + at);
                }
                UNROLL for (int u = 0; u < AT_ONCE; u++) UNROLL for (int r = 0; r < 2; r++) {
                    const int j = g + 8 * r, i = 16 * (p + u) + 4 * t;
                    if (p + u >= PAIRS || i >= inputs || j >= COLUMNS || column + j >= own) continue;
                    const int at = l.weight + (first_unit + column + j) * l.lead + from + i;
                    const int pair = p + u < PAIRS ? p + u : 0;
                    const int left = inputs - i;  // what lies beyond stays zero
                    step_one(w[u][r].x, acc[pair][0][2 * r], m[u][r].x, v[u][r].x, true);
                    step_one(w[u][r].y, acc[pair][0][2 * r + 1], m[u][r].y, v[u][r].y, left > 1);
                    step_one(w[u][r].z, acc[pair][1][2 * r], m[u][r].z, v[u][r].z, left > 2);
                    step_one(w[u][r].w, acc[pair][1][2 * r + 1], m[u][r].w, v[u][r].w, left > 3);
                    put_out(state + at, w[u][r]);
                    if (rule.adam || rule.momentum != 0) put_out(first + at, m[u][r]);
                    if (rule.adam) put_out(second + at, v[u][r]);
                }
            }
        }
    }
    static constexpr int AT_ONCE = RESIDENT > 1 ? 1 : 2;  // pairs of tiles whose weights are updated at once

    DEVICE void step_one(real& weight, real gradient, real& m, real& v, bool there) const {
        const real moved = stepped(rule, weight, there ? gradient : (real)0, &m, &v);
        weight = there ? moved : weight;
    }

    // slopes of the layer below into D, and the weights that they go through next into X
    DEVICE void fetch(int index, const real* exchanged, int end) {
        load_slopes(exchanged, layers[index - 1]);
        if (index - 1 > end) load_across(index - 1);
    }

    // ---- one step: forward, the loss, backward with the optimizer's steps
    DEVICE void step(const Header& h, const real* weights, const real* added) {
        depth = h.layers;
        settle();
        load_weights_of(0);
        for (int index = 0; index < depth - 1; index++) forward(index, h.relu);
        settle();
        scores(depth - 1, h.relu);
        settle();
        if (depth - 1 > h.lowest) load_across(depth - 1);
        settle();
        loss(h, weights, added);
        copies_done();
        barrier();
        for (int index = depth - 1; index >= h.lowest; index--) {
            const bool exchanging = index > h.lowest;
            real* exchanged = scratch + h.exchange + (index & 1) * (D_ROWS * BATCH);
            if (exchanging) {
                below(index, exchanged, h.relu);
                cluster_arrive();
            }
            barrier();  // X is read, or its inputs are there
            if (layers[index].learns && index + 1 < depth) {
                learn(index, exchanging, exchanged, h.lowest, h.relu);
            } else {
                settle();
                if (layers[index].learns) learn_classifier(index, exchanging, h.relu);
                else if (exchanging) {
                    cluster_wait();
                    barrier();
                }
                if (exchanging) fetch(index, exchanged, h.lowest);
            }
            copies_done();
            barrier();
        }
    }
    int depth;  // layers, the classifier among them
};
#endif
