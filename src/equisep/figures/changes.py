"""What was changed in claims and their rules after numbers had been seen, by date: a reader has to know which were.

The claims of the papers were declared first by rules of our own making and compared with the papers' sentences one by one
afterwards; those that asked for something else than the paper says were restated, or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

RESTATED, READ_AGAIN, COUNTED_AGAIN, WORDED_AGAIN = "2026-11-16", "2026-11-18", "2026-11-19", "2026-11-20"
EMERGES = "The law emerges by epoch 400: r ≤ −0.996, and in neither of the next two readings above −0.971"


@dataclass(frozen=True, slots=True)
class Change:
    """One claim or rule: of which figure (`*`: of all), what it was, what it is `now` (nothing: dropped), and why."""

    date: str
    figure: str
    was: str
    now: str
    why: str


CHANGES: tuple[Change, ...] = tuple(
    Change(RESTATED, *each)
    for each in (
        ("*", "held, not held, indicated, not run",
         "held, contradicted, undecided, supported, against, not testable, not run",
         "An interval that reaches the rule decides nothing, one seed is no more against a claim than for it, and a network that "
         "does not fit tests nothing."),
        ("*", "a law: mean r ≤ −0.99; fuzzy: −0.99 < r ≤ −0.95", "a law: r ≤ −0.996; none: r > −0.971; fuzzy: r ≤ −0.95",
         "He & Su call −0.996 a law and −0.971 none; −0.99 was ours. A fuzzy law may be straighter."),
        ("*", "the rate of the most negative mean r", "the same among rates at which networks fit",
         "The papers speak of networks that fit: 99.9 % of the training samples for He & Su, 99 % for Galanti & Galanti."),
        ("*", "alike, near: the 95 % interval within ±20 %", "two one-sided tests: the 90 % interval within a factor of 1.25",
         "Five seeds could not pass the former rule where they spread by 15 %."),
        ("*", "the mean over seeds near a printed number", "as printed: the 95 % prediction interval of one more draw",
         "The papers print single trainings at their best rate."),
        ("he2023/*", "read in `mixed`", "judged in `drawn`, `mixed` and `eval`",
         "The paper's figures are read in the order in which samples were drawn, and some of its claims are properties of it."),
        ("he2023/fig1", "Adam, 20 layers: ρ near 0.818; Adam, 8 layers: ρ near 0.53",
         "Adam, 20 layers: ρ and half-life as printed", "±20 % held a value that the interval of the mean excluded."),
        ("he2023/fig2", "Then ρ falls: 100 > 200 > 600 epochs",
         "Then ρ falls until the network converges: its slope over all epochs read from 100 on",
         "The sentence is on the course of training, not on three epochs of it."),
        ("he2023/figS1", "and has settled at epoch 400",
         "D of the last layer still falls after epoch 400",
         "The former was nearly the reverse of the sentence."),
        ("he2023/fig3", "The law holds in all nine panels", "The law holds on CIFAR-10",
         "The sentence names data sets, rates and imbalances: one claim each."),
        ("he2023/fig3", "with classes weighed alike their half-life is longer (three claims), and the law holds however weighed",
         "", "Added on a wrong premise: the authors' script on unequal classes weighs by samples, and names no rates of theirs."),
        ("he2023/fig4", "The law holds in all four panels", "A law, which may be somewhat fuzzy, in all four panels",
         "The paper prints no r and says that it is somewhat fuzzier in certain convolutional networks."),
        ("he2023/fig5", "the depth of the least final D, seed by seed, rises; lies within ±20 % of the printed one",
         "The depth of the least final D rises with difficulty",
         "One training per depth cannot tell 6 layers from 8: mean curves are compared, and D there with the least."),
        ("he2023/fig7", "The law holds by block; and not by layer",
         "Where blocks are of one kind, r by block is nearer to −1 than by layer",
         "The sentence compares the two; five points by block have no r to speak of."),
        ("he2023/figS6", "The law holds in each class", "A law, fuzzy in some, in each class",
         "The paper excepts some classes itself."),
        ("he2023/figS8", "A fuzzy law on test data, not straighter than −0.99, in all depths at once",
         "A fuzzy law on test data (8 layers)", "Too straight a line was counted as a failure; depths are judged one by one."),
        ("he2023/figS10", "No clear law", "The law is not clear, r is above −0.996: torch's own initialization, 20 layers",
         "Networks that do not learn have no law, which shows nothing."),
        ("he2023/linear", "D is nearly constant: the last D within ±20 % of the first",
         "Linear layers leave a third of D or more",
         "The paper says roughly unchanged; the authors' own drawing falls to about half."),
        ("he2023/prop1", "noise changes R less under the law than after 10, 30 and 100 epochs",
         "Over standard, frozen and early networks (10, 30, 100 epochs), the change of R under noise rises with the imbalance "
         "factor",
         "Proposition 1 moves every ratio alike, noise on weights does not; networks of few epochs separate little."),
        ("he2023/reactivate", "The law returns: r ≤ −0.99", "Fine-tuned, the network is nearer to a law: r falls",
         "−0.987 is between a law and none; the sentence asks for a gain."),
        ("he2023/transfer", "accuracy is greatest where the gap of loads is least",
         "Target accuracy is best near the time when bottom and top loads are equal",
         "Where the gap never changes its sign, balance is never reached and nothing is tested."),
        ("fang2021/qnorm", "Neural collapse does not emerge for any q ≠ 2, of q = 1.5 and q = 3",
         "Neural collapse does not emerge for any q ≠ 2",
         "The proposition speaks of every q above 0: q = 0.5 and q = 1 were added."),
        ("fang2021/fnn", "the cosine is near 1 (±20 %) where the minority is absent",
         "FNN: the cosine is 0.95 or more where the minority is absent", "A cosine of 0.8 is far from one vector."),
        ("fang2021/oversampling", "both claims of any network",
         "Test accuracy on minority classes recovers as w grows to R",
         "At w = 500 the network names 9 % of its samples rightly."),
        ("galanti2022/fig1", "More layers show the same degree of collapse: CDNV within ±20 %",
         "More layers show more collapse: CDNV at the top is less (plain)", "The paper says both; each is judged."),
        ("galanti2022/fig3", "Nearest-center accuracy is nearer to test accuracy than train accuracy is", "",
         "Nearly true by construction where networks fit."),
        ("galanti2022/fig3", "CDNV near 0.28 and 0.6 (±20 %); above 1 with 50 and 75 % at once",
         "CDNV of layer 4 is as printed of augmented networks with 25 % noise (plain)",
         "Read off one training; skewed numbers are compared by logarithms, and each share of noise by itself."),
        ("galanti2022/*", "held or contradicted on 5,000 images", "supported or against",
         "Networks that train on all of a data set that stands in for the paper's train on other data."),
        ("he2023/figS10", "", "No law even where the network is well optimized: He initialization, 20 layers",
         "As torch draws weights no network without BatchNorm was optimized at all; both sides are judged where they fit."),
        ("he2023/figS10", "The law is clear without BatchNorm too",
         "The law is not clear, r is above −0.996: He initialization, 20 layers",
         "“Not clear” is short of a law, not none; what asked for the contrary was judged by the same number."),
        ("equisep2026/minority", "",
         "Where the minority is absent one minority class is named at least twice as often as by guessing",
         "Added after its numbers had been seen."),
        ("he2023/fig9", "", "Without BatchNorm, standard training has the better test accuracy",
         "Frozen training without BatchNorm, by networks that fit."),
        ("he2023/prop1", "", "At matched R, noise on the weights changes R less under the law than without BatchNorm, where "
         "networks fit (He initialization)", "The networks without BatchNorm of the older claim do not fit."),
        ("he2023/transfer", "",
         "Target accuracy is best near the time when bottom and top loads are equal (source of all ten classes)",
         "The older design never reaches balance; this one was chosen because trials of two seeds did."),
        ("he2023/figS1", "", "There is no neural collapse at epoch 400: NC1 = D/10 of the last layer is above 0.01",
         "Added after its numbers had been seen."),
        ("fang2021/oversampling", "", "Resampled: test accuracy on minority classes recovers as w grows to R",
         "The authors resample; loss weights as large as R leave networks that do not fit."),
        ("galanti2022/bound", "", "Effective depth grows with depth", "The record had it, unreported."),
    )
) + tuple(
    Change(READ_AGAIN, *each)
    for each in (
        ("he2023/fig2", "The law emerges while the network trains, at some epoch: trainings without it were left out of the mean",
         EMERGES,
         "Where one training of ten has the law, its epoch says nothing of the others: those without count as the last epoch."),
        ("he2023/linear", "", "Linear layers leave more of D than layers with ReLU",
         "The sentence is on what ReLU does; the networks with it are those of Fig. 1."),
        ("he2023/fig9", "two claims without BatchNorm counted as the paper's",
         "Without BatchNorm, standard training has the better test accuracy",
         "Fig. 9 has BatchNorm: what is asked without it is ours. Rules and verdicts are the same."),
        ("he2023/transfer", "two claims on a source of all ten classes counted as the paper's",
         "Target accuracy is higher after 10 epochs, near balance, than after 600 (source of all ten classes)",
         "The paper suggests a balance and has no experiment; that source holds the target's own images. Rules and verdicts are "
         "the same."),
        ("fang2021/two-layer", "one claim counted as the paper's",
         "Two linear layers and two classes: neural collapse is the optimum, with a proof",
         "The paper proves it of one layer: of two it is asked by us. Rule and verdict are the same."),
        ("galanti2022/bound", "quoted: “SGD implicitly selects neural networks of small effective depths”",
         "Effective depth does not grow with depth, from 4 layers on",
         "The sentence says less than the claim; the hypothesis of the first version, which says as much, is quoted now. Rule "
         "and verdict are the same."),
        ("galanti2022/bound-shallow", "one claim counted as the paper's",
         "Answers are balanced: class shares on S2 within ε = 0.2 of 1/10",
         "Prop. 1 asks for balance and does not say that networks have it: that is asked by us. Rule and verdict are the same."),
        ("*", "claims in our words, of which a sentence or number of the papers was found since", "claims with that quotation",
         "Abstracts of four versions and printed numbers were compared once more. Rules and verdicts are the same."),
        ("*", "claims that began where the one before ended", "claims that can be read alone",
         "Lists of claims break them apart. Rules and verdicts are the same."),
        ("*", "held or contradicted by networks or on data that the paper did not train on (`fang2021/fnn`, "
         "`fang2021/oversampling`, `galanti2022/bound`)", "supported or against",
         "The index said so of all; only stand-ins for data or networks that could not be had were judged so."),
        ("*", "r that differs: supported by one seed", "undecided with fewer than 3 seeds",
         "Any two numbers differ: one seed could not have spoken against it."),
        ("he2023/fig2", "r ≤ −0.996, and so it stays", EMERGES,
         "The rule of emergence looks at the next two readings alone. Rule and verdicts are the same."),
        ("he2023/fig7", "at least: a bend below its 5 % limit was against the claim",
         "Mixed blocks have two slopes (bend above its limit)",
         "A test that does not reject shows nothing: below its limit the claim is undecided."),
        ("he2023/figS5", "The half-life is longer with more data: one slope over three sizes",
         "The half-life is longer with more data, from 1,000 to 2,000 images and from 2,000 to 5,000",
         "5,000 images alone made the slope: from 1,000 to 2,000 the half-life hardly moves."),
        ("he2023/linear", "a third, without a word on whose it is", "Linear layers leave a third of D or more",
         "“Roughly unchanged” names no factor: 1/3 is ours, and its source says so. Rule and verdict are the same."),
        ("he2023/prop1", "counted as the paper's, and as confirmed",
         "The imbalance factor is 1 at least: an identity, which no network can fail",
         "It follows from the inequality of the means and tests arithmetic alone. Rule and verdict are the same."),
        ("fang2021/fnn", "minority test accuracy is at chance, 1/10 or less, where the minority is absent, quoted: “prediction "
         "on minority completely at random”", "FNN: where the minority is absent none of its test samples is named rightly",
         "It is exactly 0, which is not at random: what is asked now is ours. `equisep2026/minority` asks of the quotation."),
        ("galanti2022/bound-shallow", "two claims counted as the paper's, quoted: “non-trivial estimations of the test "
         "performance”", "At p = 0.3 labels drawn at random are not separated, on average: the estimate is not vacuous",
         "A mean of nearest-center accuracies is no estimation of the test performance. Rules and verdicts are the same."),
        ("equisep2026/rare", "every mean margin is above 0",
         "Without weights no rare class is lost on its own training samples, on the mean over seeds: the mean of the least "
         "margin is 0 or more", "Three of 60 networks have a least margin just below 0. Rule and verdict are the same."),
        ("galanti2022/*", "plain networks decided what the paper shows on augmented ones",
         "supported or against; what the paper says of networks at large is decided",
         "The paper augments; trained on all of CIFAR-10, plain networks held and contradicted claims on others than they are."),
        ("galanti2022/*", "plain networks of Fig. 1 at the rate printed for ResNet-18",
         "the same, and where they do not all fit at it, the one of two rates at which most do",
         "The rate of MLPs is not printed. On all of CIFAR-10 all fit at it, so that nothing is chosen."),
        ("*", "where short runs chose the rate: held or contradicted by three seeds at that rate",
         "supported or against, but for a law, which is held where it is seen",
         "At a rate that was not tried to the end it may be otherwise; a law that is there at one rate is there."),
    )
) + (
    Change(COUNTED_AGAIN, "*", "claims in our words, after a paper, counted as the paper's", "counted with ours",
           "No sentence or number of the papers is at hand that says them: what cannot be quoted is not put in a paper's mouth. "
           "Rules and verdicts are the same."),
) + tuple(
    Change(COUNTED_AGAIN, *each)
    for each in (
        ("galanti2022/fig3", "Effective depth grows with noise: one slope over four shares of random labels",
         "Effective depth grows on with every further step of noise (plain)",
         "The first quarter of random labels alone made the slope. The first step and those after it are asked apart."),
        ("he2023/fig2", f"{EMERGES}, counted as the paper's", EMERGES,
         "What was quoted is of neural collapse: by which epoch, and by which rule, is in our words. Verdicts are the same."),
        ("he2023/figS10", "held by networks whose weights start otherwise than the paper's",
         "The law is not clear, r is above −0.996: He initialization, 20 layers", "Supported: the initialization is ours."),
        ("he2023/transfer", "one more claim on a source of all ten classes counted as the paper's",
         "Target accuracy is best near the time when bottom and top loads are equal (source of all ten classes)",
         "That source holds the target's own images: the design is ours. Rule and verdict are the same."),
        ("fang2021/minority", "two claims quoted by a sentence that names minority collapse and says no more",
         "The cosine between minority classifiers rises with R until it is 1",
         "How the angle goes with R, and its limit, are in our words. Rules and verdicts are the same."),
        ("fang2021/*", "cosines of networks, and what copies do, quoted by sentences that say less", "the same in our words",
         "“Limits the performance” speaks of accuracy, “gain insights” of nothing that can be judged. Rules and verdicts are the "
         "same."),
        ("fang2021/fnn", "two claims, added on 2026-11-16, that there is no law of D with R = 100 and R = 500", "",
         "At R = 500 no network has 99.9 % of its training samples right. `equisep2026/imbalance` asks it of networks that fit."),
        ("equisep2026/imbalance", "sentences on networks of 20 layers held by networks of 8",
         "The law emerges before neural collapse, R = 10", "Supported: another network than the paper's."),
        ("equisep2026/minority", "sentences on the paper's networks held by an FNN of 8 layers",
         "Minority collapse emerges where the minority is absent", "Supported: another network than the paper's."),
        ("he2023/*", "convolutional networks judged in `mixed` alone", "judged in `mixed` and in `eval`",
         "Both were recorded; the paper's own reading was not, and pages say so."),
    )
) + tuple(
    Change(WORDED_AGAIN, *each)
    for each in (
        ("equisep2026/rare", "rare classes are recognized “no less” than with inverse frequency, or w* “suffices”; balanced "
         "accuracy is “no less” than that of logit adjustment",
         "Fashion-MNIST, long tail, R = 100: with w* at E = 5 rare classes are recognized at least 0.8 times as often as with "
         "inverse frequency",
         "The rule asks for 0.8 times as often; six claims were held by intervals that lie wholly below 1. Rule and verdicts are "
         "the same."),
        ("he2023/figS10", "No law even where the network is well optimized, counted as the paper's (He initialization)",
         "No law even where the network is well optimized: He initialization, 20 layers",
         "“Often not clear” says less than none: asked by us, of these very networks."),
        ("he2023/figS10", "No law even where the network is well optimized (torch's own initialization)",
         "The law is not clear, r is above −0.996: torch's own initialization, 20 layers",
         "The sentence says not clear. The network does not fit, so that neither can be tested."),
        ("galanti2022/fig3", "four claims on what is printed of augmented networks, asked of plain ones, counted as the paper's",
         "CDNV of layer 4 is as printed of augmented networks with 25 % noise (plain)",
         "The paper prints nothing of plain networks: asked by us, of these very networks. Rules are the same."),
        ("fang2021/fnn", "the claim on R = 100, dropped on 2026-11-19 for a reason that is of R = 500 alone",
         "FNN: with R = 100 there is no law of D, in two readings (networks with 99.9 % of their training samples right)",
         "At R = 100 four networks of five have 99.9 % of their training samples right, and are asked. VGG11 at R = 100 "
         "(`fang2021/networks`) has 99.4 %, one seed: it tests nothing."),
        ("he2023/figS1", "Neural collapse is not there at epoch 400: D of the last layer still falls",
         "D of the last layer still falls after epoch 400",
         "That D falls is measured; whether there is neural collapse another claim asks. Rule and verdicts are the same."),
        ("he2023/*", "The law holds in all panels of Figs. S4 and S5, by block in Fig. 8, from scratch in Fig. S11, quoted: “its "
         "emergence is observed in a collection of network architectures and datasets during training”", "the same in our words",
         "The sentence does not say of which networks, nor that it is all of them. Rules and verdicts are the same."),
        ("*", "claims on networks without BatchNorm counted among those judged in three readings", "not counted there",
         "Such networks read the same in every reading. Rules and verdicts are the same."),
    )
)  # fmt: skip
