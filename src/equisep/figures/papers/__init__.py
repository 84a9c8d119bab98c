"""The papers as data: one file per paper."""

PAPERS = {
    "he2023": "He & Su, A law of data separation in deep learning",
    "fang2021": "Fang, He, Long & Su, Layer-Peeled Model",
    "galanti2022": "Galanti & Galanti, On the implicit bias towards depth minimization",
    "equisep2026": "experiments of our own, which advice rests on",
}
# what stands in for a data set of a paper in the record, in words
STAND_INS = {"cifar10_7k": "a subset of CIFAR-10 with 500 training and 200 test images a class"}
