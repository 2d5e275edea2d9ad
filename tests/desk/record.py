"""Record the answers to the scenes: `python -m tests.desk.record SCENE … --desk URL`.

At the desk sits somebody who has the prompts and nothing else (LLM.md, Trying it). What
any cassette answers already is not asked again. A recording whose calls come out wrong
is not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.desk.cassette import (
    CASSETTES,
    Row,
    endpoint,
    posted,
    read_cassette,
    recorded,
    write_cassette,
)
from tests.desk.scenes import SCENES, Scene
from tests.desk.stage import stage


async def _record(scene: Scene, desk: str, made: str) -> bool:
    kept: list[Row] = []
    known = [row for path in CASSETTES.glob("*.jsonl") for row in read_cassette(path)]
    with (
        tempfile.TemporaryDirectory() as folder,
        endpoint(recorded(posted(desk), known, made, kept)) as model,
    ):
        async with stage(scene, Path(folder), model) as running:
            wrong = await running.play()
        asked = {side: len(requests) for side, requests in model.asked.items()}
        print(f"{scene.name}: asked {asked}; {'; '.join(wrong) or 'all well'}")
        wrong += model.failures
    path = CASSETTES / f"{scene.name}.jsonl"
    if not wrong and kept:
        write_cassette(path, kept)
    elif wrong:
        # For whoever mends the prompt: what was asked and said.
        write_cassette(Path(tempfile.gettempdir()) / f"failed-{path.name}", kept)
    return not wrong


def main() -> int:
    """Record the named scenes, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", choices=[[], *SCENES])
    parser.add_argument("--desk", default="http://127.0.0.1:8011/v1", metavar="URL")
    parser.add_argument("--made", default="by a reader at the desk", metavar="HOW")
    options = parser.parse_args()
    names = options.scenes or list(SCENES)
    good = [
        asyncio.run(_record(SCENES[name], options.desk, options.made)) for name in names
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
