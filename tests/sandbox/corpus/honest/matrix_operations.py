# kind: matrix operations with operator methods
"""Small dense matrices."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Callable, Iterator, Sequence

Number = int | float | Fraction


class ShapeError(ValueError):
    pass


class Matrix:
    """An immutable matrix of numbers."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Sequence[Number]]) -> None:
        self._rows = tuple(tuple(row) for row in rows)
        if len({len(row) for row in self._rows}) != 1:
            raise ShapeError("rows differ in length")

    @classmethod
    def identity(cls, size: int) -> Matrix:
        return cls([[int(i == j) for j in range(size)] for i in range(size)])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._rows), len(self._rows[0])

    def __getitem__(self, index: tuple[int, int]) -> Number:
        row, column = index
        return self._rows[row][column]

    def __iter__(self) -> Iterator[tuple[Number, ...]]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matrix):
            return NotImplemented
        return self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __add__(self, other: Matrix) -> Matrix:
        if self.shape != other.shape:
            raise ShapeError("cannot add {}x{} and {}x{}".format(*self.shape, *other.shape))
        return Matrix([[a + b for a, b in zip(r, s)] for r, s in zip(self, other)])

    def __mul__(self, factor: Number) -> Matrix:
        return self.map(lambda value: value * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Matrix:
        return self * -1

    def __matmul__(self, other: Matrix) -> Matrix:
        if self.shape[1] != other.shape[0]:
            raise ShapeError("inner dimensions differ")
        columns = list(zip(*other))
        return Matrix([[sum(a * b for a, b in zip(row, col)) for col in columns] for row in self])

    def __pow__(self, exponent: int) -> Matrix:
        result, base = Matrix.identity(len(self._rows)), self
        while exponent:
            if exponent & 1:
                result = result @ base
            base, exponent = base @ base, exponent >> 1
        return result

    def map(self, function: Callable[[Number], Number]) -> Matrix:
        return Matrix([[function(value) for value in row] for row in self])

    @property
    def T(self) -> Matrix:
        return Matrix(list(zip(*self._rows)))

    def minor(self, i: int, j: int) -> Matrix:
        rows = [row[:j] + row[j + 1 :] for k, row in enumerate(self._rows) if k != i]
        return Matrix(rows)

    def determinant(self) -> Number:
        if self.shape == (1, 1):
            return self[0, 0]
        return sum((-1) ** j * self[0, j] * self.minor(0, j).determinant() for j in range(self.shape[1]))

    def to_list(self) -> list[list[Number]]:
        return [list(row) for row in self._rows]


def compute(operation: str, *operands: list) -> object:
    matrices = [Matrix(rows) for rows in operands]
    match operation, matrices:
        case "add", [a, b]:
            return (a + b).to_list()
        case "multiply", [a, *rest]:
            for other in rest:
                a @= other
            return a.to_list()
        case "transpose", [a]:
            return a.T.to_list()
        case "determinant", [a]:
            return a.determinant()
        case "symmetric", [a]:
            return a == a.T and hash(a) == hash(a.T)
    raise ValueError(f"cannot {operation} {len(matrices)} matrices")


def fibonacci(n: int) -> int:
    power = Matrix([[1, 1], [1, 0]]) ** n
    return int(power[0, 1])


def zeros(rows: list[list[int]]) -> list[list[int]]:
    m = -2 * Matrix(rows)
    height, width = m.shape
    return [[i, j] for i, j in product(range(height), range(width)) if not m[i, j]]
