# kind: Chinese keys and text
"""商品目录协议：把中文字段映射为内部字段。"""

import json
from typing import Any

字段 = {"名称": "name", "价格": "price", "库存": "stock", "标签": "tags"}
_状态 = {"在售": "on_sale", "缺货": "sold_out", "下架": "removed"}


class 目录错误(ValueError):
    """字段缺失或取值不合法。"""


def decode_response(data: bytes) -> dict[str, Any]:
    message = json.loads(data.decode("utf-8"))
    if message.get("代码") != 0:
        raise 目录错误(f"对方返回错误：{message.get('信息', '未知')}")
    products = []
    for 商品 in message["商品列表"]:
        product = {字段[key]: value for key, value in 商品.items() if key in 字段}
        product["status"] = _状态.get(商品.get("状态", "在售"), "unknown")
        product["price"] = float(str(product.get("price", 0)).removeprefix("¥"))
        products.append(product)
    return {"total": len(products), "products": products}


def encode_request(keyword: str, *, limit: int = 10) -> bytes:
    request = {"关键词": keyword, "数量": limit, "语言": "中文"}
    return json.dumps(request, ensure_ascii=False).encode("utf-8")


def width(text: str) -> int:
    """Columns on a terminal: CJK characters take two."""
    return sum(2 if "\u4e00" <= ch <= "\u9fff" or ch in "，。：？！" else 1 for ch in text)


def table(rows: list[dict[str, Any]]) -> str:
    widest = max(width(row["name"]) for row in rows)
    lines = []
    for row in rows:
        padding = " " * (widest - width(row["name"]))
        lines.append(f"{row['name']}{padding} | ¥{row['price']:>8.2f}")
    return "\n".join(lines)
