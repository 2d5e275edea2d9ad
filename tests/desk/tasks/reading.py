"""Tasks over the documents of Wikimedia, xkcd and GitHub, and three MCP servers."""

from __future__ import annotations

from typing import Any

from tests.desk.tasks.task import (
    Absent,
    Case,
    Failure,
    Fault,
    Json,
    Task,
    Tool,
    array,
    choice,
    complete,
    integer,
    number,
    open_object,
    text,
)

WIKI = "Wikimedia REST API 1.0.0, APIs-guru openapi-directory (CC0 collection)"
COMICS = "xkcd 1.0.0, APIs-guru openapi-directory (CC0 collection)"
GITHUB = "GitHub REST API, issues of its OpenAPI document (MIT)"
FILES = "MCP server-filesystem, read_text_file (MIT)"
MEMORY = "MCP server-memory, open_nodes and read_graph (MIT)"


def _views(given: Json) -> Json:
    first, last = int(given["start"]), int(given["end"])
    if len(given["start"]) != 8 or given["article"] == "Nothing":
        raise Fault(404, "The date(s) you used are valid, but we have no data for them")
    return {
        "items": [
            {
                "project": given["project"],
                "article": given["article"],
                "granularity": given["granularity"],
                "timestamp": f"{day}00",
                "access": given["access"],
                "agent": given["agent"],
                "views": 100 * len(given["article"]) + day % 100,
            }
            for day in range(first, last + 1)
        ]
    }


COMIC_ROWS = {
    327: ("Exploits of a Mom", "2007", "10", "10"),
    353: ("Python", "2007", "12", "5"),
    936: ("Password Strength", "2011", "8", "10"),
    1: ("Barrel", "2006", "1", "1"),
    3000: ("Newest", "2026", "2", "27"),
}


def _comic(given: Json) -> Json:
    number = given["comicId"]
    if number not in COMIC_ROWS:
        raise Fault(404, "Not Found")
    title, year, month, day = COMIC_ROWS[number]
    return {
        "num": number,
        "title": title,
        "safe_title": title,
        "year": year,
        "month": month,
        "day": day,
        "img": f"https://img.example/{number}.png",
    }


def _issue(number: int, title: str, state: str, **more: Any) -> Json:
    login = "ada" if number % 2 else "bob"
    return {
        "number": number,
        "title": title,
        "state": state,
        "user": {"login": login},
        "closed_by": None,
        "labels": [],
        **more,
    }


ISSUES = {
    "sea/boat": [
        _issue(number, f"Leak {number}", "open" if number % 3 else "closed")
        for number in range(1, 9)
    ],
    "sea/pier": [
        _issue(1, "Rust", "closed", closed_by={"login": "eve"}),
        _issue(2, "Storm", "open", labels=[{"name": "urgent"}, {"name": "roof"}]),
        _issue(3, "Gulls", "closed", closed_by={"login": "kim"}),
    ],
    "sea/buoy": [],
}


def _issues(given: Json) -> Json:
    rows = ISSUES.get(f"{given['owner']}/{given['repo']}")
    if rows is None:
        raise Fault(404, "Not Found")
    state, size = given.get("state", "open"), min(given.get("per_page", 30), 3)
    rows = [row for row in rows if state in {"all", row["state"]}]
    start = (given.get("page", 1) - 1) * size
    return {"result": rows[start : start + size]}


def _get_issue(given: Json) -> Json:
    for row in ISSUES.get(f"{given['owner']}/{given['repo']}", []):
        if row["number"] == given["issue_number"]:
            return row
    raise Fault(404, "Not Found")


TEXTS = {
    "/notes/sea.txt": [f"wave {line}" for line in range(1, 9)],
    "/notes/one.txt": ["alone"],
    "/notes/tea.txt": ["green", "black", "mint", "white", "red", "oolong", "herbs"],
}


def _read(given: Json) -> Json:
    lines = TEXTS.get(given["path"])
    if lines is None:
        raise Fault(404, "ENOENT: no such file or directory")
    if "tail" in given:
        lines = lines[-int(given["tail"]) :]
    if "head" in given:
        lines = lines[: int(given["head"])]
    return {"content": "\n".join(lines)}


ENTITIES = [
    {"name": "Ada", "entityType": "person", "observations": ["likes tea", "tall"]},
    {"name": "Port", "entityType": "company", "observations": []},
    {"name": "Ben", "entityType": "person", "observations": ["sails"]},
    {"name": "Mill", "entityType": "company", "observations": ["old"]},
]
RELATIONS = [
    {"from": "Ada", "to": "Port", "relationType": "works_at"},
    {"from": "Ben", "to": "Mill", "relationType": "works_at"},
]


def _open(given: Json) -> Json:
    names = given["names"]
    return {
        "entities": [one for one in ENTITIES if one["name"] in names],
        "relations": [one for one in RELATIONS if one["from"] in names],
    }


VIEWS = Tool(
    "wikimedia",
    "pageviews-per-article",
    "Get a count of the views of an article over a range of dates.",
    open_object(
        *("project", "access", "agent", "article", "granularity", "start", "end"),
        project=text("Domain of the project, for example en.wikipedia"),
        access=choice("all-access", "desktop", "mobile-app", "mobile-web"),
        agent=choice("all-agents", "user", "spider", "automated"),
        article=text("Title of the article, with _ for spaces"),
        granularity=choice("daily", "monthly"),
        start=text("First day, YYYYMMDD"),
        end=text("Last day, YYYYMMDD"),
    ),
    open_object(
        items=array(
            open_object(
                project=text(),
                article=text(),
                granularity=text(),
                timestamp=text("YYYYMMDDHH"),
                access=text(),
                agent=text(),
                views=integer(),
            )
        )
    ),
    _views,
)
COMIC = open_object(
    num=number(),
    title=text(),
    safe_title=text(),
    year=text("such as 2007"),
    month=text("1 to 12, without a leading zero"),
    day=text("1 to 31, without a leading zero"),
    img=text(),
    alt=text(),
    link=text(),
    transcript=text(),
)
BY_NUMBER = Tool(
    "xkcd",
    "comicById",
    "Fetch comics and metadata by comic id.",
    open_object("comicId", comicId=number()),
    COMIC,
    _comic,
)
CURRENT = Tool(
    "xkcd",
    "currentComic",
    "Fetch current comic and metadata.",
    open_object(),
    COMIC,
    lambda given: _comic({"comicId": 3000}),
)
ISSUE = open_object(
    *("number", "title", "state", "user", "closed_by", "labels"),
    number=integer("Number that identifies the issue in its repository"),
    title=text(),
    state=choice("open", "closed"),
    user=open_object("login", login=text()),
    closed_by={
        "anyOf": [open_object("login", login=text()), {"type": "null"}],
        "description": "Who closed it",
    },
    labels=array(open_object(name=text())),
)
LIST_ISSUES = Tool(
    "github",
    "issues-list-for-repo",
    "List issues in a repository. Open issues only, unless state says otherwise. A "
    "page after the last one is empty.",
    open_object(
        *("owner", "repo"),
        owner=text("The account owner of the repository"),
        repo=text("The name of the repository without the extension"),
        state=choice("open", "closed", "all", default="open"),
        per_page=integer("The number of results per page (at most 3 here)", default=30),
        page=integer("The page number of the results to fetch", default=1),
    ),
    open_object("result", result=array(ISSUE)),
    _issues,
)
GET_ISSUE = Tool(
    "github",
    "issues-get",
    "Get an issue; 404 if there is none.",
    open_object(
        *("owner", "repo", "issue_number"),
        owner=text(),
        repo=text(),
        issue_number=integer(),
    ),
    ISSUE,
    _get_issue,
)
READ = Tool(
    "filesystem",
    "read_text_file",
    "Read the complete contents of a file as text. Use 'head' to read only the first "
    "N lines, or 'tail' to read only the last N lines.",
    open_object(
        "path",
        path=text(),
        tail=number("If provided, returns only the last N lines of the file"),
        head=number("If provided, returns only the first N lines of the file"),
    ),
    open_object("content", content=text()),
    _read,
)
ENTITY = open_object(
    *("name", "entityType", "observations"),
    name=text("The name of the entity"),
    entityType=text("The type of the entity"),
    observations=array(text(), "Observation contents of the entity"),
)
RELATION = open_object(
    *("from", "to", "relationType"),
    **{"from": text("Name of the entity where the relation starts")},
    to=text("Name of the entity where the relation ends"),
    relationType=text("The type of the relation"),
)
GRAPH = open_object(
    *("entities", "relations"), entities=array(ENTITY), relations=array(RELATION)
)
OPEN = Tool(
    "memory",
    "open_nodes",
    "Open specific nodes in the knowledge graph by their names.",
    open_object("names", names=array(text(), "Entity names to retrieve")),
    GRAPH,
    _open,
)
GRAPH_OF = Tool(
    "memory",
    "read_graph",
    "Read the entire knowledge graph.",
    open_object(),
    GRAPH,
    lambda given: {"entities": ENTITIES, "relations": RELATIONS},
)

TASKS = (
    Task(
        "readers-of-page",
        WIKI,
        "How often people (no robots) read a page of the English Wikipedia on any "
        "device, all days of a period together",
        complete(
            page=text("title, with _ for spaces"),
            first=text("such as 2026-01-31", format="date"),
            last=text("such as 2026-01-31", format="date"),
        ),
        complete(total=integer()),
        (VIEWS,),
        (
            Case(
                {"page": "Sea", "first": "2026-01-01", "last": "2026-01-03"},
                {"total": 906},
            ),
            Case(
                {"page": "Anchor", "first": "2026-02-10", "last": "2026-02-11"},
                {"total": 1221},
            ),
            Case(
                {"page": "Nothing", "first": "2026-02-10", "last": "2026-02-11"},
                Failure(404),
            ),
            Case(
                {"page": "Buoy", "first": "2025-12-31", "last": "2025-12-31"},
                {"total": 431},
            ),
        ),
    ),
    Task(
        "views-by-day",
        WIKI,
        "Views of a page of the German Wikipedia by people on mobile web, day by day",
        complete(title=text(), since=text("YYYYMMDD"), until=text("YYYYMMDD")),
        complete(days=array(complete(day=text("YYYY-MM-DD"), views=integer()))),
        (VIEWS,),
        (
            Case(
                {"title": "Tee", "since": "20260105", "until": "20260106"},
                {
                    "days": [
                        {"day": "2026-01-05", "views": 305},
                        {"day": "2026-01-06", "views": 306},
                    ]
                },
            ),
            Case(
                {"title": "Boot", "since": "20261130", "until": "20261130"},
                {"days": [{"day": "2026-11-30", "views": 430}]},
            ),
            Case(
                {"title": "Nothing", "since": "20260105", "until": "20260106"},
                Failure(404),
            ),
            Case(
                {"title": "Ei", "since": "20260728", "until": "20260729"},
                {
                    "days": [
                        {"day": "2026-07-28", "views": 228},
                        {"day": "2026-07-29", "views": 229},
                    ]
                },
            ),
        ),
    ),
    Task(
        "different-people",
        WIKI,
        "How many different people read a page of the English Wikipedia on one day",
        complete(page=text(), day=text("YYYYMMDD")),
        complete(people=integer("each person counted once")),
        (VIEWS,),
        (Case({"page": "Sea", "day": "20260101"}, None),),
        lacking="views are counted, not people",
    ),
    Task(
        "comic-date",
        COMICS,
        "Title of a comic and the day it appeared, as YYYY-MM-DD",
        complete(comic=integer(minimum=1)),
        complete(headline=text(), appeared=text(format="date")),
        (BY_NUMBER, CURRENT),
        (
            Case(
                {"comic": 327},
                {"headline": "Exploits of a Mom", "appeared": "2007-10-10"},
            ),
            Case({"comic": 353}, {"headline": "Python", "appeared": "2007-12-05"}),
            Case({"comic": 404}, Failure(404)),
            Case({"comic": 1}, {"headline": "Barrel", "appeared": "2006-01-01"}),
        ),
    ),
    Task(
        "comic-or-current",
        COMICS,
        "Title of a comic by its number; without a number, that of the current one",
        {**open_object(number=integer(minimum=1)), "additionalProperties": False},
        complete(title=text()),
        (BY_NUMBER, CURRENT),
        (
            Case({"number": 353}, {"title": "Python"}),
            Case({}, {"title": "Newest"}),
            Case({"number": 936}, {"title": "Password Strength"}),
            Case({"number": 5}, Failure(404)),
        ),
    ),
    Task(
        "comic-punched",
        COMICS,
        "Title of a comic for a punched-card reader that takes a fixed layout and no "
        "JSON. The request is the comic's number in exactly 5 digits with leading "
        "zeros. The answer is those 5 digits, then the title in exactly 20 characters "
        "filled up with blanks on its right, 25 characters in all",
        complete(comic=integer("1 to 99999")),
        complete(comic=integer(), title=text("without the filling blanks")),
        (BY_NUMBER,),
        (
            Case({"comic": 353}, {"comic": 353, "title": "Python"}),
            Case({"comic": 936}, {"comic": 936, "title": "Password Strength"}),
            Case({"comic": 1}, {"comic": 1, "title": "Barrel"}),
            Case({"comic": 123456}, Absent()),
        ),
        request_bytes=r"\d{5}",
        answer_bytes=r"\d{5}.{20}",
    ),
    Task(
        "open-points",
        GITHUB,
        "Titles of all issues of a repository that are still open, from every page",
        complete(repository=text("owner/name")),
        complete(titles=array(text())),
        (LIST_ISSUES, GET_ISSUE),
        (
            Case(
                {"repository": "sea/boat"},
                {"titles": [f"Leak {number}" for number in (1, 2, 4, 5, 7, 8)]},
            ),
            Case({"repository": "sea/pier"}, {"titles": ["Storm"]}),
            Case({"repository": "sea/buoy"}, {"titles": []}),
            Case({"repository": "sea/none"}, Failure(404)),
        ),
    ),
    Task(
        "who-closed",
        GITHUB,
        "Who wrote an issue and who closed it",
        complete(owner=text(), project=text(), issue=integer()),
        complete(author=text("login"), closer=text("login")),
        (GET_ISSUE, LIST_ISSUES),
        (
            Case(
                {"owner": "sea", "project": "pier", "issue": 1},
                {"author": "ada", "closer": "eve"},
            ),
            Case({"owner": "sea", "project": "pier", "issue": 2}, Absent()),
            Case({"owner": "sea", "project": "boat", "issue": 3}, Absent()),
            Case(
                {"owner": "sea", "project": "pier", "issue": 3},
                {"author": "ada", "closer": "kim"},
            ),
        ),
    ),
    Task(
        "first-lines",
        FILES,
        "The first lines of a document; five if the caller does not say how many",
        {
            **open_object(
                "document",
                document=text("path"),
                lines=integer("how many lines", minimum=1, default=5),
            ),
            "additionalProperties": False,
        },
        complete(beginning=text()),
        (READ,),
        (
            Case(
                {"document": "/notes/sea.txt", "lines": 2},
                {"beginning": "wave 1\nwave 2"},
            ),
            Case(
                {"document": "/notes/tea.txt"},
                {"beginning": "green\nblack\nmint\nwhite\nred"},
            ),
            Case({"document": "/notes/none.txt", "lines": 1}, Failure(404)),
            Case({"document": "/notes/one.txt", "lines": 3}, {"beginning": "alone"}),
        ),
    ),
    Task(
        "what-is-known",
        MEMORY,
        "All that is known of one person or thing: its kind and the notes on it",
        complete(about=text("its name")),
        complete(kind=text(), notes=array(text())),
        (OPEN, GRAPH_OF),
        (
            Case({"about": "Ada"}, {"kind": "person", "notes": ["likes tea", "tall"]}),
            Case({"about": "Port"}, {"kind": "company", "notes": []}),
            Case({"about": "Zoe"}, Absent()),
            Case({"about": "Mill"}, {"kind": "company", "notes": ["old"]}),
        ),
    ),
    Task(
        "employers",
        MEMORY,
        "Every relation that is known, with the kind of the thing it starts at",
        complete(),
        complete(
            links=array(complete(who=text(), kindOfWho=text(), where=text())),
        ),
        (GRAPH_OF,),
        tuple(
            Case(
                {},
                {
                    "links": [
                        {"who": "Ada", "kindOfWho": "person", "where": "Port"},
                        {"who": "Ben", "kindOfWho": "person", "where": "Mill"},
                    ]
                },
            )
            for _ in range(4)
        ),
    ),
)
