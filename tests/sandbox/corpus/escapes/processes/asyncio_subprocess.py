# effect: leak
import asyncio


async def run(path):
    made = await asyncio.create_subprocess_exec(
        "cat", path, stdout=asyncio.subprocess.PIPE
    )
    return (await made.communicate())[0]


def attempt(probe):
    return asyncio.run(run(probe["secret_file"]))
