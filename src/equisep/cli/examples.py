"""An example or two for each command, shown below its help; tests parse every one of them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("equisep demo", "equisep demo --depth 20 --out deep"),
    "measure": (
        "equisep measure --model ./mine.py:net --checkpoint net.pt --data mine.npz --out p.json",
        "equisep measure --model torchvision:resnet18 --data ./mine.py:loader --reading eval,drawn",
        "equisep measure --features features",
    ),
    "merge": ("equisep merge a*.npz --out means.npz", "equisep merge b*.npz --out p.json"),
    "explain": ("equisep explain p.json", "equisep explain p.json --all"),
    "report": ("equisep report p.json", "equisep report a.json b.json --out compared.html", "equisep report run.jsonl"),
    "features": ("equisep features ./mine.py:net --checkpoint net.pt --data mine.npz --out features",),
    "sites": ("equisep sites --model ./mine.py:net", "equisep sites --model vgg13,colors=3 --input 3x32x32"),
    "layer": ("equisep layer torchvision:resnet18 --data ./mine.py:loader",),
    "rank": ("equisep rank torchvision:resnet18 torchvision:vgg11 --data ./mine.py:loader",),
    "law": ("equisep law p.json",),
    "history": ("equisep history run.jsonl --draw run.png", "equisep history run.jsonl --epoch 5 --out p.json"),
    "noise": ("equisep noise --model ./mine.py:net --checkpoint net.pt --data mine.npz",),
    "cut": ("equisep cut --model ./mine.py:net --checkpoint net.pt --data mine.npz --out short.pt2",),
    "transfer": ("equisep transfer --model ./mine.py:net --checkpoint net.pt --data new.npz",),
    "compare": ("equisep compare before.json after.json", "equisep compare seed-*.json"),
    "depth": ("equisep depth --data mine.npz --depths 2,4,8",),
    "rare": ("equisep rare --sizes 500,500,50,5",),
    "peeled solve": ("equisep peeled solve --sizes 500,500,50,50",),
    "peeled threshold": (
        "equisep peeled threshold --majority 5 --minority 5",
        "equisep peeled threshold --sizes 500,500,50,5",
    ),
    "peeled diagram": ("equisep peeled diagram cosine --plot cosine.png",),
    "peeled two-layer": ("equisep peeled two-layer --groups 6:1 --activation relu",),
    "peeled network": ("equisep peeled network --model ./mine.py:net --checkpoint net.pt --data mine.npz",),
    "figures list": ("equisep figures list",),
    "figures run": (
        "equisep figures run he2023/fig1 --scale smoke --draw drawn",
        "equisep figures run he2023/fig1 --seeds 10 --plan",
    ),
    "figures show": ("equisep figures show he2023/fig1",),
}


def epilog(command: str) -> str | None:
    """What stands below the help of a command: its examples, one line each."""
    lines = EXAMPLES.get(command, ())
    title = "[dim]Examples[/]" if len(lines) > 1 else "[dim]Example[/]"
    return "\n\n".join((title, *(f"  {line}" for line in lines))) if lines else None
