"""The networks of the papers by name; each declares its sites."""

from equisep.models.alexnet import AlexNet, alexnet_wide
from equisep.models.checkpoints import load_weights
from equisep.models.controls import fnn_linear, fnn_no_batchnorm
from equisep.models.convnet import ConvNet
from equisep.models.densenet import DenseNet161
from equisep.models.fnn import Fnn
from equisep.models.load import ModelSpec, load_model, loading_words, parse_spec
from equisep.models.mlp import mlp
from equisep.models.networks import MODELS, build
from equisep.models.pure_cnn import PureCnn
from equisep.models.resnet import ResNet
from equisep.models.resnet_cifar import CifarResNet, ResNet18, resnet20, resnet32, resnet44, resnet56
from equisep.models.vgg import Vgg, vgg_wide

__all__ = [
    "MODELS",
    "AlexNet",
    "CifarResNet",
    "ConvNet",
    "DenseNet161",
    "Fnn",
    "ModelSpec",
    "PureCnn",
    "ResNet",
    "ResNet18",
    "Vgg",
    "alexnet_wide",
    "build",
    "fnn_linear",
    "fnn_no_batchnorm",
    "load_model",
    "load_weights",
    "loading_words",
    "mlp",
    "parse_spec",
    "resnet20",
    "resnet32",
    "resnet44",
    "resnet56",
    "vgg_wide",
]
