// What the host tells: sizes, layers, and the step that an optimizer takes.

constexpr int WARPS = 8, THREADS = 32 * WARPS, BATCH = 128, LEAD = TF32 ? BATCH : BATCH + 4;
constexpr int CLASSES4 = (CLASSES + 3) / 4 * 4, QUADS = (CHUNK + 31) / 32;
constexpr int FIELDS = 10, HEADER = 16, GROUP = RESIDENT > 1 ? 3 : 5;  // of the plan; units whose weights are updated at once
constexpr real EPSILON = (real)1e-5, FOLLOWS = (real)0.1, STAYS = (real)(1 - 0.1);  // of BatchNorm
constexpr real NEW1 = (real)(1 - 0.9), KEPT2 = (real)0.999, NEW2 = (real)(1 - 0.999), ADAM_EPSILON = (real)1e-8;  // of Adam
enum { PLAIN = 0, BY_BATCH = 1, HELD = 2 };  // how a layer normalizes

struct Layer {  // one row of the plan, as the host writes it; positions count numbers in a member's row
    int inputs, outputs, lead, weight, vectors, z, norm, learns, mode, unused;
    DEVICE int padded() const { return (outputs + 3) / 4 * 4; }
    DEVICE int bias() const { return vectors; }
    DEVICE int scale() const { return vectors + padded(); }
    DEVICE int shift() const { return vectors + 2 * padded(); }
    DEVICE int running_mean() const { return vectors + 3 * padded(); }
    DEVICE int running_var() const { return vectors + 4 * padded(); }
    // what the forward pass normalized by, kept beside z: mean, 1/deviation, scale/deviation, shift
    DEVICE int mean() const { return norm; }
    DEVICE int inverse() const { return norm + padded(); }
    DEVICE int slope() const { return norm + 2 * padded(); }
    DEVICE int offset() const { return norm + 3 * padded(); }
};

struct Header {  // before the layers in the plan
    int layers, lowest, n, batch, epochs, members, orders, row, scratch, exchange, relu, weighted, weighted_mean, adjusted,
        steps_before, unused;
};

struct Rule {  // an optimizer's step of this member now
    bool adam;
    real momentum, decay, rate, corrected_rate, root;
};

DEVICE real stepped(const Rule& rule, real weight, real gradient, real* first, real* second) {
    gradient += rule.decay * weight;
    if (rule.adam) {
        real m = *first, v = *second;
        m += NEW1 * (gradient - m);
        v = KEPT2 * v + NEW2 * gradient * gradient;
        *first = m;
        *second = v;
        return weight - quotient(rule.corrected_rate * m, root(v) * rule.root + ADAM_EPSILON);
    }
    if (rule.momentum != 0) {
        gradient += rule.momentum * *first;
        *first = gradient;
    }
    return weight - rule.rate * gradient;
}
