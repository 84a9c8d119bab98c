// A member as one thread sees it that helps to train it: filling buffers, the passes, the optimizer's steps.

struct Member {
    // shared memory
    real *x, *d, *s, *sums;
    int *rows, *labels;
    const Layer* layers;
    // device memory of this member
    real *state, *first, *second, *scratch;
    const real* pool;
    int inputs;  // of the pool
    // where this thread stands
    int thread, warp, lane, rank, size, rounded;  // size: samples of the batch; rounded up to a multiple of 4
    Rule rule;

    // the units of a layer that this block has: from `begin` on, `count` of them
    DEVICE int share(int units) const { return (units + CLUSTER - 1) / CLUSTER; }
    DEVICE int begin(int units) const { return rank * share(units); }
    DEVICE int count(int units) const {
        const int left = units - begin(units), most = share(units);
        return left < 0 ? 0 : left < most ? left : most;
    }

    // what follows from where this thread stands is computed again in each part, where registers are few
    DEVICE void settle() {
        if (!TF32 && RESIDENT == 1) return;
        thread = anew(thread);
        lane = thread % 32;
        warp = thread / 32;
    }

    // ---- filling buffers; the caller puts barriers around. Everything is asked of memory before the first is stored.
    // D[o][k] = weights of `count` units from `begin` on, inputs from `from` on; they are there once the copies are done
    DEVICE void load_weights(const Layer& l, int begin, int count, int from) {
        const int k = 4 * lane;
        const real* w = state + l.weight + (long)begin * l.lead + from + k;
        if (k < at_most(l.inputs - from, CHUNK)) {
            for (int o = warp; o < count; o += WARPS) copy_four(d + o * STRIDE + k, w + o * l.lead);
        }
    }

    // X[i][o] = weights to units i from `begin` on, the other way round; zero beyond the last o
    DEVICE void load_transposed(const Layer& l, int begin, int count) {
        const int low = lane % 8, high = lane / 8, last = count > 0 ? count - 1 : 0;
        const real* w = state + l.weight + begin;
        for (int o = 4 * warp + high; o < l.padded(); o += 4 * WARPS) {
            real values[COLUMNS];
            const real* from = w + at_most(o, l.outputs - 1) * l.lead;
            UNROLL for (int j = 0; j < COLUMNS; j++) values[j] = from[at_most(8 * j + low, last)];
            UNROLL for (int j = 0; j < COLUMNS; j++) {
                if (8 * j + low < count) x[(8 * j + low) * STRIDE + o] = o < l.outputs ? values[j] : (real)0;
            }
        }
    }

    // X[i][b] = inputs of layer `index`, from input `from` on: samples of the pool, or what the layer below puts out
    DEVICE void load_inputs(int index, int from, int relu) {
        constexpr int EIGHTS = (CHUNK + 7) / 8, AT_ONCE = RESIDENT > 1 ? 5 : (EIGHTS + 1) / 2;
        const int units = at_most(layers[index].inputs - from, CHUNK), padded = (units + 3) / 4 * 4;
        if (index == 0) {
            const int low = lane % 8, high = lane / 8;
            for (int b = 4 * warp + high; b < BATCH; b += 4 * WARPS) {
                real values[EIGHTS];
                const real* sample = pool + (long)rows[at_most(b, size - 1)] * inputs + from;
                UNROLL for (int i = 0; i < EIGHTS; i++) values[i] = sample[at_most(8 * i + low, units - 1)];
                UNROLL for (int i = 0; i < EIGHTS; i++) {
                    if (8 * i + low < padded) x[place(8 * i + low, b)] = b < size && 8 * i + low < units ? factor(values[i]) : (real)0;
                }
            }
            return;
        }
        const Layer below = layers[index - 1];
        const real *z = scratch + below.z + 4 * lane, *mean = scratch + below.mean(), *slope = scratch + below.slope();
        const real* offset = scratch + below.offset();
        for (int start = warp; start < padded; start += WARPS * AT_ONCE) {
            real4 h[AT_ONCE];
            real means[AT_ONCE], slopes[AT_ONCE], offsets[AT_ONCE];
            UNROLL for (int u = 0; u < AT_ONCE; u++) {
                const int i = at_most(start + WARPS * u, units - 1);
                h[u] = four(z + i * BATCH);
                means[u] = mean[i];
                slopes[u] = slope[i];
                offsets[u] = offset[i];
            }
            UNROLL for (int u = 0; u < AT_ONCE; u++) {
                const int i = start + WARPS * u;
                h[u].x = active((h[u].x - means[u]) * slopes[u] + offsets[u], relu);
                h[u].y = active((h[u].y - means[u]) * slopes[u] + offsets[u], relu);
                h[u].z = active((h[u].z - means[u]) * slopes[u] + offsets[u], relu);
                h[u].w = active((h[u].w - means[u]) * slopes[u] + offsets[u], relu);
                if (i < padded) put(x + place(i, 4 * lane), i < units ? factors(h[u]) : zeros());
            }
        }
    }

    // D[o][b] = slopes that the blocks have exchanged; they are there once the copies are done
    DEVICE void load_slopes(const real* exchanged, const Layer& l) {
        for (int o = warp; o < l.padded(); o += WARPS) {
            real* to = d + place(o, 4 * lane);
            if (o < l.outputs) copy_four(to, exchanged + o * BATCH + 4 * lane);
            else put(to, zeros());
        }
    }

    DEVICE static int row_of(int unit, int own) { return unit < own ? unit : 0; }  // one that is there
    DEVICE static int at_most(int a, int b) { return a < b ? a : b; }
    DEVICE static real active(real y, int relu) { return relu && y < 0 ? (real)0 : y; }  // NaN stays NaN

    // ---- one hidden layer, forward
    DEVICE void forward(int index, int relu) {
        settle();
        const Layer l = layers[index];
        const int first_unit = begin(l.outputs), own = count(l.outputs), column = warp * COLUMNS;
        real acc[COLUMNS][4];
        clear(acc);
        // each lane the vectors of one of the warp's units
        const bool holds = lane < COLUMNS && column + lane < own;
        const int unit = first_unit + column + (holds ? lane : 0);
        real bias = holds ? state[l.bias() + unit] : (real)0;
        real scale = 1, shift = 0, mean = 0, inverse = 1;
        if (l.mode != PLAIN && holds) {
            scale = state[l.scale() + unit];
            shift = state[l.shift() + unit];
        }
        for (int from = 0; from < l.inputs; from += CHUNK) {
            if (index == 0 || CLUSTER > 1) load_inputs(index, from, relu);
            load_weights(l, first_unit, own, from);
            copies_done();
            barrier();
            const int terms = (at_most(l.inputs - from, CHUNK) + 3) / 4 * 4;
            product<COLUMNS>(acc, x, d + column * STRIDE, lane, 0, terms, 4);
            barrier();
        }
        real each[COLUMNS];
        spread<COLUMNS>(each, bias);
        UNROLL for (int j = 0; j < COLUMNS; j++) UNROLL for (int s = 0; s < 4; s++) acc[j][s] += each[j];
        real means[COLUMNS];
        if (l.mode == BY_BATCH) {
            const real share = (real)1 / size;
            UNROLL for (int j = 0; j < COLUMNS; j++) {
                means[j] = 0;
                UNROLL for (int s = 0; s < 4; s++) means[j] += 4 * lane + s < size ? acc[j][s] : (real)0;
            }
            warp_sums<COLUMNS>(means);
            UNROLL for (int j = 0; j < COLUMNS; j++) {
                means[j] *= share;
                each[j] = 0;
                UNROLL for (int s = 0; s < 4; s++) {
                    const real gap = acc[j][s] - means[j];
                    each[j] += 4 * lane + s < size ? gap * gap : (real)0;
                }
            }
            warp_sums<COLUMNS>(each);
            const real squares = mine(each, lane);
            mean = mine(means, lane);
            inverse = 1 / exact_root(squares * share + EPSILON);
            if (holds) {
                real *kept_mean = state + l.running_mean() + unit, *kept_var = state + l.running_var() + unit;
                *kept_mean = STAYS * *kept_mean + FOLLOWS * mean;
                *kept_var = STAYS * *kept_var + FOLLOWS * (squares / (size - 1));
            }
        } else if (l.mode == HELD) {
            if (holds) {
                mean = state[l.running_mean() + unit];
                inverse = 1 / exact_root(state[l.running_var() + unit] + EPSILON);
            }
            spread<COLUMNS>(means, mean);
        } else {
            UNROLL for (int j = 0; j < COLUMNS; j++) means[j] = 0;
        }
        // beyond the batch stands the mean: what is not of it could grow from layer to layer until 0 times it is no longer 0
        real* z = scratch + l.z + (long)(first_unit + column) * BATCH + 4 * lane;
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            UNROLL for (int s = 0; s < 4; s++) acc[j][s] = 4 * lane + s < size ? acc[j][s] : means[j];
            if (column + j < own) put(z + j * BATCH, real4{acc[j][0], acc[j][1], acc[j][2], acc[j][3]});
        }
        const real slope = scale * inverse;
        if (holds) {
            scratch[l.mean() + unit] = mean;
            scratch[l.inverse() + unit] = inverse;
            scratch[l.slope() + unit] = slope;
            scratch[l.offset() + unit] = shift;
        }
        if (CLUSTER > 1) {
            cluster_arrive();
            cluster_wait();
            return;  // whoever needs the outputs computes them from z
        }
        spread<COLUMNS>(each, slope);
        UNROLL for (int j = 0; j < COLUMNS; j++) UNROLL for (int s = 0; s < 4; s++) acc[j][s] = (acc[j][s] - means[j]) * each[j];
        spread<COLUMNS>(each, shift);
        real* h = x + column * LEAD + 4 * lane;
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            if (column + j < own) {
                put(h + j * LEAD, real4{active(acc[j][0] + each[j], relu), active(acc[j][1] + each[j], relu),
                                        active(acc[j][2] + each[j], relu), active(acc[j][3] + each[j], relu)});
            }
        }
        if (warp == 0) {
            for (int i = l.outputs; i < l.padded(); i++) put(x + i * LEAD + 4 * lane, zeros());
        }
    }

    // ---- the classifier and the loss; every block of a cluster has all of it
    DEVICE void scores(int index, int relu) {
        const Layer l = layers[index];
        if (CLUSTER > 1) load_inputs(index, 0, relu);
        if (!TF32) load_weights(l, 0, l.outputs, 0);
        copies_done();
        barrier();
        real acc[CLASSES][4];
        clear(acc);
        product<CLASSES>(acc, x, d, lane, 4 * warp, (l.inputs + 3) / 4 * 4, 4 * WARPS);
        barrier();
        UNROLL for (int j = 0; j < CLASSES; j++) {
            put(x + (warp * CLASSES + j) * LEAD + 4 * lane, real4{acc[j][0], acc[j][1], acc[j][2], acc[j][3]});
        }
        barrier();
        for (int t = thread; t < CLASSES * BATCH; t += THREADS) {
            const int j = t / BATCH, b = t % BATCH;
            real sum = state[l.bias() + j];
            UNROLL for (int w = 0; w < WARPS; w++) sum += x[(w * CLASSES + j) * LEAD + b];
            s[place(j, b)] = sum;
        }
        barrier();
    }

    // S becomes ∂loss/∂scores; the loss of the batch and its right answers go to sums[0] and sums[1]
    DEVICE void loss(const Header& h, const real* weights, const real* added) {
        const int b = thread;
        real one[3] = {0, 0, 0};  // loss, right answers, weights
        real share = 1, own = 0, total = 0;
        int label = 0;
        if (b < BATCH && b < size) {
            label = labels[b];
            real best = s[b];
            int guess = 0;
            for (int j = 1; j < CLASSES; j++) {
                const real v = s[place(j, b)];
                if (v > best || (v != v && best == best)) {
                    best = v;
                    guess = j;
                }
            }
            if (h.adjusted) {
                for (int j = 0; j < CLASSES; j++) {
                    const real v = s[place(j, b)] + added[j];
                    s[place(j, b)] = v;
                    best = j == 0 || v > best || v != v ? v : best;
                }
            }
            own = s[place(label, b)] - best;
            for (int j = 0; j < CLASSES; j++) {
                const real e = exponential(s[place(j, b)] - best);
                s[place(j, b)] = e;
                total += e;
            }
            share = h.weighted ? weights[label] : (real)1;
            one[0] = (logarithm(total) - own) * share;
            one[1] = guess == label;
            one[2] = share;
        }
        warp_sums<3>(one);
        if (lane == 0) for (int q = 0; q < 3; q++) sums[8 + 3 * warp + q] = one[q];
        barrier();
        real all[3] = {0, 0, 0};
        for (int w = 0; w < BATCH / 32; w++) for (int q = 0; q < 3; q++) all[q] += sums[8 + 3 * w + q];
        const real divisor = h.weighted && h.weighted_mean ? all[2] : (real)size;
        if (b < BATCH) {
            for (int j = 0; j < CLASSES; j++) {
                real slope = 0;
                if (b < size) slope = (s[place(j, b)] / total - (j == label ? (real)1 : (real)0)) * share / divisor;
                s[place(j, b)] = slope;
            }
        }
        if (thread == 0) {
            sums[0] = h.weighted && h.weighted_mean ? all[0] * size / divisor : all[0];
            sums[1] = all[1];
        }
        barrier();
    }

    // ---- backward through layer `index`, whose ∂loss/∂z stands in `slopes`, to that of the layer below
    DEVICE void below(int index, const real* slopes, real* exchanged, int relu) {
        settle();
        const Layer l = layers[index], under = layers[index - 1];
        const int first_unit = begin(under.outputs), own = count(under.outputs), column = warp * COLUMNS;
        load_transposed(l, first_unit, own);
        barrier();
        real acc[COLUMNS][4];
        clear(acc);
        product<COLUMNS>(acc, slopes, x + column * STRIDE, lane, 0, l.padded(), 4);
        const bool holds = lane < COLUMNS && column + lane < own;
        const int unit = first_unit + column + (holds ? lane : 0);
        real mean = 0, inverse = 1, slope = 1, offset = 0;
        if (holds) {
            mean = scratch[under.mean() + unit];
            inverse = scratch[under.inverse() + unit];
            slope = scratch[under.slope() + unit];
            offset = scratch[under.offset() + unit];
        }
        // z is read twice: there are not registers enough for it and the slopes
        const real* z = scratch + under.z + (long)first_unit * BATCH + 4 * lane;
        const bool by_batch = under.mode == BY_BATCH;
        real first_sums[COLUMNS], second_sums[COLUMNS], biases[COLUMNS];
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            if (RESIDENT > 1 && j % 4 == 0) read_again();
            const real4 v = four(z + row_of(column + j, own) * BATCH);
            const real values[4] = {v.x, v.y, v.z, v.w};
            const real middle = from_lane(mean, j), steep = from_lane(slope, j), shift = from_lane(offset, j);
            first_sums[j] = second_sums[j] = 0;
            UNROLL for (int s = 0; s < 4; s++) {
                const real gap = values[s] - middle;
                const bool off = (relu && gap * steep + shift <= 0) || 4 * lane + s >= size;
                acc[j][s] = off ? (real)0 : acc[j][s];
                first_sums[j] += acc[j][s];
                second_sums[j] += off ? (real)0 : acc[j][s] * gap;
            }
        }
        if (by_batch) {
            warp_sums<COLUMNS>(first_sums);
            warp_sums<COLUMNS>(second_sums);
        }
        const real share = (real)1 / size;
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            if (RESIDENT > 1 && j % 4 == 0) read_again();
            const real4 v = four(z + row_of(column + j, own) * BATCH);
            const real values[4] = {v.x, v.y, v.z, v.w};
            const real middle = from_lane(mean, j), steep = from_lane(slope, j), inverted = from_lane(inverse, j);
            const real common = by_batch ? first_sums[j] * share : (real)0;
            const real along = by_batch ? second_sums[j] * share * inverted * inverted : (real)0;
            biases[j] = 0;
            UNROLL for (int s = 0; s < 4; s++) {
                const real value = (acc[j][s] - common - (values[s] - middle) * along) * steep;
                acc[j][s] = 4 * lane + s < size ? value : (real)0;
                biases[j] += acc[j][s];
            }
        }
        real* out = exchanged + (long)(first_unit + column) * BATCH + 4 * lane;
        UNROLL for (int j = 0; j < COLUMNS; j++) {
            if (column + j < own) put(out + j * BATCH, real4{acc[j][0], acc[j][1], acc[j][2], acc[j][3]});
        }
        if (!under.learns) return;
        warp_sums<COLUMNS>(biases);
        const real bias = mine(biases, lane), scale = mine(second_sums, lane) * inverse, shift = mine(first_sums, lane);
        if (holds) {
            update(under.bias() + unit, bias);
            if (by_batch) {
                update(under.scale() + unit, scale);
                update(under.shift() + unit, shift);
            }
        }
    }

    DEVICE void update(int at, real slope) { state[at] = stepped(rule, state[at], slope, first + at, second + at); }

    // the weights of N units at once, so that all of them are on their way from memory before the first is needed
    template <int N>
    DEVICE void update_rows(const real (&acc)[COLUMNS][4], int begin, int row, int lead, int own, int inputs) {
        real w[N][QUADS], m[N][QUADS], v[N][QUADS];
        UNROLL for (int j = 0; j < N; j++) UNROLL for (int q = 0; q < QUADS; q++) {
            w[j][q] = m[j][q] = v[j][q] = 0;
            const int at = row + (begin + j) * lead + 32 * q;
            if (begin + j < COLUMNS && begin + j < own && lane + 32 * q < inputs) {
                w[j][q] = state[at];
                if (rule.adam || rule.momentum != 0) m[j][q] = first[at];
                if (rule.adam) v[j][q] = second[at];
            }
        }
        UNROLL for (int j = 0; j < N; j++) UNROLL for (int q = 0; q < QUADS; q++) {
            const int at = row + (begin + j) * lead + 32 * q;
            if (begin + j < COLUMNS && begin + j < own && lane + 32 * q < inputs) {
                state[at] = stepped(rule, w[j][q], acc[begin + j < COLUMNS ? begin + j : 0][q], &m[j][q], &v[j][q]);
                if (rule.adam || rule.momentum != 0) first[at] = m[j][q];
                if (rule.adam) second[at] = v[j][q];
            }
        }
    }

    // ---- the gradient of the weights of a hidden layer, and the optimizer's step
    DEVICE void learn(int index, bool exchanging, int relu) {
        settle();
        const Layer l = layers[index];
        const int first_unit = begin(l.outputs), own = count(l.outputs), column = warp * COLUMNS;
        for (int from = 0; from < l.inputs; from += CHUNK) {
            load_inputs(index, from, relu);
            barrier();
            real acc[COLUMNS][4];
            clear(acc);
            gradient<COLUMNS>(acc, d + (first_unit + column) * LEAD, x, lane, 0, rounded, 4);
            if (from == 0 && exchanging) cluster_wait();  // the others have read the weights that change now
            barrier();
            const int inputs = at_most(l.inputs - from, CHUNK);
            const int row = l.weight + (first_unit + column) * l.lead + from + lane;
            UNROLL for (int j = 0; j < COLUMNS; j += GROUP) update_rows<GROUP>(acc, j, row, l.lead, own - column, inputs);
        }
    }

    // the same for the classifier, by the first block of a cluster
    DEVICE void learn_classifier(int index, bool exchanging, int relu) {
        const Layer l = layers[index];
        if (!TF32 || CLUSTER > 1 || !exchanging) {
            load_inputs(index, 0, relu);
            barrier();
        }
        real acc[CLASSES][4];
        clear(acc);
        gradient<CLASSES>(acc, s, x, lane, 4 * warp, rounded, 4 * WARPS);
        if (exchanging) cluster_wait();
        barrier();
        UNROLL for (int j = 0; j < CLASSES; j++) {
            UNROLL for (int q = 0; q < QUADS; q++) {
                if (lane + 32 * q < l.inputs) x[(warp * CLASSES + j) * LEAD + lane + 32 * q] = acc[j][q];
            }
        }
        barrier();
        if (rank == 0) {
            for (int t = thread; t < CLASSES * l.inputs; t += THREADS) {
                const int o = t / l.inputs, i = t - o * l.inputs;
                real sum = 0;
                UNROLL for (int w = 0; w < WARPS; w++) sum += x[(w * CLASSES + o) * LEAD + i];
                update(l.weight + o * l.lead + i, sum);
            }
            for (int o = warp; o < CLASSES; o += WARPS) {
                const real4 v = four(s + place(o, 4 * lane));
                real sum[1] = {v.x + v.y + v.z + v.w};
                warp_sums<1>(sum);
                if (lane == 0) update(l.bias() + o, sum[0]);
            }
        }
        barrier();
    }
};
