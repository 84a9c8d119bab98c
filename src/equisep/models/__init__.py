"""The networks of the papers by name; each declares its sites."""

from equisep.models.checkpoints import load_weights
from equisep.models.families.alexnet import AlexNet
from equisep.models.families.convnet import ConvNet, PureCnn
from equisep.models.families.densenet import DenseNet161
from equisep.models.families.fnn import Fnn, mlp
from equisep.models.families.resnet import ResNet
from equisep.models.families.resnet_cifar import CifarResNet, ResNet18, resnet20, resnet32, resnet44, resnet56
from equisep.models.families.vgg import Vgg
from equisep.models.load import LoadedModel, load_model, loaded_model, loading_words, parse_spec
from equisep.models.networks import MODELS, build

__all__ = [
    "MODELS",
    "AlexNet",
    "CifarResNet",
    "ConvNet",
    "DenseNet161",
    "Fnn",
    "LoadedModel",
    "PureCnn",
    "ResNet",
    "ResNet18",
    "Vgg",
    "build",
    "load_model",
    "load_weights",
    "loaded_model",
    "loading_words",
    "mlp",
    "parse_spec",
    "resnet20",
    "resnet32",
    "resnet44",
    "resnet56",
]
