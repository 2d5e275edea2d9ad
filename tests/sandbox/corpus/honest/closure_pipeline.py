# kind: closures with nonlocal, generators with send, functional pipelines
"""A pipeline of steps over readings; each step is a closure with its own state."""

from functools import partial, reduce
from itertools import count, cycle, dropwhile, islice, takewhile, tee
from typing import Callable, Iterable, Iterator

Step = Callable[[Iterable[float]], Iterator[float]]


def smoother(alpha: float) -> Callable[[float], float]:
    state: float | None = None

    def smooth(value: float) -> float:
        nonlocal state
        state = value if state is None else alpha * value + (1 - alpha) * state
        return state

    return smooth


def counter(start: int = 0, *, step: int = 1):
    current = start - step

    def increment() -> int:
        nonlocal current
        current += step
        return current

    def reset(to: int = start) -> None:
        nonlocal current
        current = to - step

    return increment, reset


def running_mean():
    """A coroutine: send values, receive the mean so far."""
    total, number, mean = 0.0, 0, None
    while True:
        value = yield mean
        if value is None:
            return
        total += value
        number += 1
        mean = total / number


def compose(*steps: Step) -> Step:
    return lambda values: reduce(lambda data, step: step(data), steps, iter(values))


def _map(function: Callable[[float], float], values: Iterable[float]) -> Iterator[float]:
    return map(function, values)


def clamp(low: float, high: float) -> Step:
    return partial(_map, lambda value: max(low, min(high, value)))


def deltas(values: Iterable[float]) -> Iterator[float]:
    first, second = tee(values)
    next(second, None)
    return (b - a for a, b in zip(first, second))


def process(values: list[float], alpha: float) -> list[float]:
    pipeline = compose(
        partial(dropwhile, lambda v: v == 0),
        clamp(0.0, 100.0),
        partial(_map, smoother(alpha)),
        deltas,
    )
    return [round(value, 4) for value in pipeline(values)]


def means(values: list[float]) -> list[float]:
    coroutine = running_mean()
    next(coroutine)
    result = [coroutine.send(value) for value in values]
    coroutine.close()
    return result


def number_items(items: list[str]) -> dict[str, int]:
    take, reset = counter(10, step=5)
    numbers = {item: take() for item in items}
    reset()
    numbers["again"] = take()
    return numbers


def rota(people: list[str], days: int) -> list[str]:
    return [f"day {day}: {who}" for day, who in zip(count(1), islice(cycle(people), days))]


def until_negative(values: list[int]) -> list[int]:
    return [*takewhile(lambda v: v >= 0, values)]


def broken(values: list[float]) -> list[float]:
    steps = [lambda data, factor=factor: (v / factor for v in data) for factor in (2, 0)]
    return list(compose(*steps)(values))
