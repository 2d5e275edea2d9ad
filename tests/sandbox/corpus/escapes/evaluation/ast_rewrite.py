# effect: leak
import ast


def attempt(probe):
    tree = ast.parse("opened(path).read()", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "opened":
            node.id = "open"
    return eval(compile(tree, "x", "eval"), {"path": probe["secret_file"]})
