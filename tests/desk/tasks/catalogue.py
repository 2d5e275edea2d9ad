"""All tasks of the evaluation, by name."""

from __future__ import annotations

from typing import Final

from tests.desk.tasks import money, rail, reading, shop, weather
from tests.desk.tasks.task import Task

TASKS: Final[dict[str, Task]] = {
    task.name: task
    for module in (weather, money, shop, rail, reading)
    for task in module.TASKS
}
