// Many steps of training of many small networks: one cluster of CLUSTER blocks trains one member, step after step.
//
// Activations lie as [unit][sample], LEAD numbers a unit, so that a lane holds four neighboring samples and a warp COLUMNS
// units of a product: statistics of BatchNorm are sums over one warp. Weights, moments and linear outputs stay in device
// memory, where only this member's blocks touch them; products are taken from shared memory, two buffers of which, X and D,
// are filled before each. With several blocks a member, each has its own units of every layer: they meet at barriers only.
//
// Set by the compiler's options: COLUMNS units a warp, CLASSES, CHUNK inputs of a product at a time (a multiple of 4),
// STRIDE of weights in shared memory (an odd multiple of 4, at least CHUNK and the widest layer), X_ROWS and D_ROWS of the
// buffers, CLUSTER, RESIDENT blocks on a multiprocessor, TF32 for products by tensor cores (tiles.cuh).

// plan: a header and a row a layer. settings: (adam, momentum, decay, unused) a member. orders: [epoch][order][n] positions
// among a member's samples, `order_of` its order. rates: [epoch][member]. terms: class weights and what is added to scores.
// loss, hits: [epoch][member], sums over the epoch.
extern "C" __global__ void CLUSTERED __launch_bounds__(THREADS, RESIDENT) train(
    const int* plan, real* state, real* first, real* second, real* scratch, const real* pool, const int* rows,
    const int* labels, const int* orders, const int* order_of, const real* rates, const real* settings, const real* terms,
    real* loss, real* hits) {
    SHARED(shared);
    const Header h = *reinterpret_cast<const Header*>(plan);
    const int member = BLOCK / CLUSTER;
#if TF32
    TiledMember m;
#else
    Member m;
#endif
    m.thread = THREAD;
    m.warp = m.thread / 32;
    m.lane = m.thread % 32;
    m.rank = BLOCK % CLUSTER;
    m.x = shared;
    m.d = m.x + X_ROWS * LEAD;
    m.s = m.d + D_ROWS * LEAD;
    m.sums = m.s + CLASSES4 * LEAD;
    m.rows = reinterpret_cast<int*>(m.sums + 64);
    m.labels = m.rows + BATCH;
    int* layers = m.labels + BATCH;
    m.layers = reinterpret_cast<const Layer*>(layers);
    m.state = state + (long)member * h.row;
    m.first = first + (long)member * h.row;
    m.second = second + (long)member * h.row;
    m.scratch = scratch + (long)member * h.scratch;
    m.pool = pool;
    for (int t = m.thread; t < h.layers * FIELDS; t += THREADS) layers[t] = plan[HEADER + t];
    for (int t = m.thread; t < CLASSES4 * LEAD; t += THREADS) m.s[t] = 0;
    barrier();
    m.inputs = m.layers[0].inputs;
    const int steps = (h.n + h.batch - 1) / h.batch;
    const real* own = settings + 4 * member;
    const real *weights = terms + 2 * CLASSES * member, *added = weights + CLASSES;
    m.rule.adam = own[0] != 0;
    m.rule.momentum = own[1];
    m.rule.decay = own[2];
    for (int epoch = 0; epoch < h.epochs; epoch++) {
        const int* order = orders + ((long)epoch * h.orders + order_of[member]) * h.n;
        real epoch_loss = 0, epoch_hits = 0;
        m.rule.rate = rates[(long)epoch * h.members + member];
        for (int step = 0; step < steps; step++) {
            const int start = step * h.batch;
            m.size = Member::at_most(h.batch, h.n - start);
            m.rounded = (m.size + 3) / 4 * 4;
            if (m.thread < m.size) {
                const int at = order[start + m.thread];
                m.rows[m.thread] = rows[(long)member * h.n + at];
                m.labels[m.thread] = labels[(long)member * h.n + at];
            }
            if (m.rule.adam) {
                const double passed = (double)h.steps_before + (double)epoch * steps + step + 1;
                m.rule.corrected_rate = m.rule.rate / (real)(1 - power(0.9, passed));
                m.rule.root = (real)(1 / double_root(1 - power(0.999, passed)));
            }
            barrier();
#if TF32
            m.step(h, weights, added);
            epoch_loss += m.sums[0];
            epoch_hits += m.sums[1];
#else
            const int top = h.layers - 1;
            for (int index = 0; index < top; index++) m.forward(index, h.relu);
            m.scores(top, h.relu);
            m.loss(h, weights, added);
            epoch_loss += m.sums[0];
            epoch_hits += m.sums[1];
            for (int index = top; index >= h.lowest; index--) {
                const bool exchanging = index > h.lowest;
                real* exchanged = m.scratch + h.exchange + (index & 1) * (D_ROWS * BATCH);
                if (exchanging) {
                    m.below(index, index == top ? m.s : m.d, exchanged, h.relu);
                    cluster_arrive();
                }
                barrier();  // X is read until here
                if (!m.layers[index].learns) {
                    if (exchanging) cluster_wait();
                } else if (index == top) {
                    m.learn_classifier(index, exchanging, h.relu);
                } else {
                    m.learn(index, exchanging, h.relu);
                }
                if (exchanging) {
                    m.load_slopes(exchanged, m.layers[index - 1]);
                    copies_done();
                    barrier();
                }
            }
#endif
            cluster_arrive();  // the next step overwrites what others may still be reading
            cluster_wait();
        }
        if (m.thread == 0 && m.rank == 0) {
            loss[(long)epoch * h.members + member] = epoch_loss;
            hits[(long)epoch * h.members + member] = epoch_hits;
        }
    }
}
