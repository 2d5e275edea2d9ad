"""The configuration: precedence, messages about mistakes, defaults."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anp.errors import ConfigError
from anp.interaction.groups.elements import JoinRule
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.config.load import MAX_FILE, config_files, load_config
from anp.sidecar.config.schema import default_config_text, field_texts
from anp.sidecar.config.settings import Config, ListenConfig, PolicyConfig
from anp.sidecar.home.home import Home


def load(
    folder: Path,
    text: str = "",
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Load a given home with `text` as its file."""
    (folder / "anpd.toml").write_text(text)
    return load_config(
        Home(folder), home_given=True, flags=flags, environ=environ or {}
    )


def test_without_a_word_of_the_owner_all_is_default(tmp_path: Path) -> None:
    config = load(tmp_path)
    expected = Config()
    assert config.cache.path == tmp_path / "store"
    assert config.identity.key_file == tmp_path / "identity.key"
    assert config.consensus.directory == tmp_path / "consensus"
    config = replace(config, cache=expected.cache, identity=expected.identity)
    assert replace(config, consensus=expected.consensus) == expected


def test_flags_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    text = "[listen]\nport = 1\nhost = 'localhost'\n[call]\ntimeout = 1\n"
    environ = {"ANPD_LISTEN__PORT": "2", "ANPD_LLM__MODEL": "123"}
    config = load(
        tmp_path,
        text,
        environ=environ,
        flags={"listen.port": 3, "call.timeout": None},
    )
    assert config.listen.port == 3
    assert config.listen.host == "localhost"
    assert config.llm.model == "123"
    assert config.call.timeout == 1.0
    assert load(tmp_path, text, environ=environ).listen.port == 2


def test_a_given_home_reads_its_own_file_only(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert config_files(home, home_given=True, environ={}) == [home.config_file]
    extra = tmp_path / "extra.toml"
    files = config_files(home, home_given=True, config_file=extra, environ={})
    assert files == [home.config_file, extra]


def test_without_a_given_home_files_count_from_etc_to_here(tmp_path: Path) -> None:
    home, here = Home(tmp_path / "home"), tmp_path / "here"
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    shared = [
        Path("/etc/anpd/config.toml"),
        tmp_path / "xdg" / "anpd" / "config.toml",
        home.config_file,
    ]
    files = config_files(home, home_given=False, cwd=here, environ=environ)
    assert files == [*shared, here / "anpd.toml"]
    chosen = tmp_path / "chosen.toml"
    files = config_files(
        home, home_given=False, config_file=chosen, cwd=here, environ=environ
    )
    assert files == [*shared, chosen]


def test_stronger_files_change_single_keys_and_whole_arrays(tmp_path: Path) -> None:
    weak = '[listen]\nport = 1\nhost = "::1"\n[[need]]\nname = "a"\nrequirement = "x"\n'
    (tmp_path / "strong.toml").write_text(
        '[listen]\nport = 2\n[[need]]\nname = "b"\nrequirement = "y"\n'
    )
    (tmp_path / "anpd.toml").write_text(weak)
    config = load_config(
        Home(tmp_path),
        home_given=True,
        config_file=tmp_path / "strong.toml",
        environ={},
    )
    assert (config.listen.port, config.listen.host) == (2, "::1")
    assert [need.name for need in config.need] == ["b"]


def test_a_config_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config"):
        load_config(
            Home(tmp_path), home_given=True, config_file=tmp_path / "no", environ={}
        )


MISTAKES = {
    "[negotiation]\nmax_proposal = 3": "did you mean negotiation.max_proposals?",
    "[negotiaton]\ntimeout = 3": "did you mean negotiation?",
    "[negotiation]\ntimeout = -3": "greater than 0, got -3",
    "[negotiation]\ntimeout = inf": "got inf",
    "[negotiation]\nmax_proposals = 11": "less than or equal to 10, got 11",
    '[listen]\nport = "x"': "listen.port should be an integer, got 'x'",
    "[listen]\nport = 65536": "listen.port",
    "listen = 3": "listen should be a table",
    "need = 3": "need should be an array",
    '[policy]\npeers = "all"': "should be 'any' or 'listed', got 'all'",
    '[[need]]\nname = "x"': "need[0].requirement is missing",
    '[[need]]\nname = "x"\nrequirment = "y"': "did you mean need[0].requirement?",
    '[[need]]\nname = "x y"\nrequirement = "y"': "need[0].name",
    '[[peer]]\nname = "x"': "write did, url or both",
    '[[peer]]\nname = "x"\nurl = "http://x"': "peer[0].url",
    '[[attach]]\nname = "x"\nkind = "mcp"': "command is missing",
    '[[attach]]\nname = "x"\nkind = "python"\ntarget = ":f"': "MODULE:FUNCTION",
    '[[attach]]\nname = "a.b"\nkind = "python"\ntarget = "m:f"': "attach[0].name",
    '[[attach]]\nname = "x"\nkind = "ftp"': "'a2a' or 'inbox', got 'ftp'",
    '[[group]]\nmembers = ["x"]': "group[0].name is missing",
    '[[group]]\nname = "x"\nseal = true': "write hub",
    '[[group]]\nname = "x"\nowner = "a"\nhub = "b"': "write owner or hub",
    "[listen": "not valid TOML",
    "[listen]\n'a b' = 3": "unknown key listen.'a b'",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_one_line_with_file_key_and_remedy(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert MISTAKES[text] in message
    assert "anpd.toml" in message
    assert message.startswith("config: ")
    assert "\n" not in message


def test_a_mistake_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 4"):
        load(tmp_path, '[call]\ntimeout = 3\n[listen]\nhots = "x"\n[llm]\nhots = 3\n')


def test_a_group_of_the_settings_is_a_typed_entry(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [[group]]
        name = "Nightly build"
        members = ["tester", "did:key:zPackager"]
        admins = ["shop"]
        hub = "relay"
        seal = true
        join = "both"
        history = 50
        max_members = 8
        max_message = 10_000
        rate = 0
        [[group]]
        name = "For another"
        owner = "planner"
        history = "all"
        """,
    )
    sealed, other = config.group
    assert (sealed.members, sealed.admins) == (
        ("tester", "did:key:zPackager"),
        ("shop",),
    )
    assert (sealed.hub, sealed.seal, other.owner) == ("relay", True, "planner")
    policy = sealed.policy
    assert (policy.join, policy.history, policy.rate) == (JoinRule.BOTH, 50, 0)
    assert (policy.max_members, policy.max_message) == (8, 10_000)
    assert other.policy.history is None


def test_two_entries_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    entry = '[[need]]\nname = "a"\nrequirement = "x"\n'
    with pytest.raises(ConfigError, match=r"two \[\[need\]\] are called a"):
        load(tmp_path, entry * 2)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ANPD_LISTEN__PROT", "did you mean listen.port?"),
        ("ANPD_LISTE__PORT", "did you mean listen?"),
    ],
)
def test_a_misspelt_variable_is_named(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(hint)) as caught:
        load(tmp_path, environ={name: "3"})
    assert name in str(caught.value)


def test_variables_that_kubernetes_sets_are_no_settings(tmp_path: Path) -> None:
    environ = {"ANPD_PORT": "tcp://10.0.0.1:8765", "ANPD_SERVICE_HOST": "10.0.0.1"}
    assert load(tmp_path, environ=environ).listen == ListenConfig()


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    load(tmp_path, "#" * MAX_FILE)
    with pytest.raises(ConfigError, match="over"):
        load(tmp_path, "#" * (MAX_FILE + 1))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_loopback_any_peer_may_come(host: str) -> None:
    assert Config(listen=ListenConfig(host=host)).peers_policy == "any"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "agent.example"])
def test_elsewhere_only_listed_peers_may_come(host: str) -> None:
    listen = ListenConfig(host=host)
    assert Config(listen=listen).peers_policy == "listed"
    config = Config(listen=listen, policy=PolicyConfig(peers="any"))
    assert config.peers_policy == "any"


def test_attachments_and_peers_become_typed_entries(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [[peer]]
        name = "shop"
        did = "did:web:shop.example"
        keep_connection = true
        [[attach]]
        kind = "mcp"
        name = "git"
        command = ["git-server", "--repository", "."]
        expose = ["git_log"]
        env = { TOKEN = "x" }
        cwd = "work"
        """,
    )
    assert config.peer[0].keep_connection
    assert config.attach == (
        AttachmentSpec(
            kind="mcp",
            name="git",
            command=("git-server", "--repository", "."),
            expose=("git_log",),
            env={"TOKEN": "x"},
            cwd=tmp_path / "work",
        ),
    )


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('did = "did:key:abc"', "holds no public key"),
        ('did = "did:foo:abc"', "did:foo is unknown here"),
        ('url = "ws://h.example/"\npolicy = "block"', "write did"),
    ],
)
def test_an_entry_for_a_peer_that_would_meet_nobody_is_refused(
    entry: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=problem):
        load(tmp_path, f'[[peer]]\nname = "shop"\n{entry}\n')


def test_paths_count_from_the_folder_of_their_file(tmp_path: Path) -> None:
    config = load(tmp_path, '[cache]\npath = "x"\n[identity]\nkey_file = "/k"\n')
    assert config.cache.path == tmp_path / "x"
    assert config.identity.key_file == Path("/k")


def test_the_file_of_init_sets_the_method_and_nothing_else(tmp_path: Path) -> None:
    assert load(tmp_path, default_config_text()) == load(tmp_path)
    config = load(tmp_path, default_config_text("did:all"))
    assert config.identity.method == "did:all"


def test_the_file_of_init_says_what_each_setting_is_and_may_be() -> None:
    text = default_config_text()
    said = " ".join(text.replace("#", " ").split())
    for table in (type(getattr(Config(), section)) for section in Config.__slots__):
        for words in field_texts(table).values() if table is not tuple else ():
            assert words in said
    assert 'One of "auto", "rules", "llm".' in said
    assert 'One of "any", "listed".' in said
    assert all(len(line) <= 88 for line in text.splitlines() if "= [" not in line)


def test_the_file_of_init_shows_the_true_defaults(tmp_path: Path) -> None:
    shown = re.sub(r"(?m)^# (?=\w+ = )", "", default_config_text())
    sections = shown.partition("# [[peer]]")[0]
    # The defaults of `peers` and `publish` depend on the host, so the text shows but
    # one of two.
    examples = (
        *("public_url", "model", "base_url", "peers", "api_key", "reasoning"),
        *("temperature", "seed", "headers", "price", "publish", "ca_file"),
        *("tls_", "url", "api_port", "endpoint", "listen", "gateway"),
        *("provider", "documentation_url", "icon_url", "issuer", "audience", "keys"),
        *("scopes", "token_url", "authorization_url", "openid_url"),
    )
    lines = [line for line in sections.splitlines() if not line.startswith(examples)]
    found = tomllib.loads("\n".join(lines))
    assert len(found) == 22
    assert load(tmp_path, "\n".join(lines)) == load(tmp_path)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    st.dictionaries(
        st.sampled_from(["listen", "policy", "need", "llm", "x"]) | st.text(max_size=5),
        st.recursive(
            st.integers() | st.text(max_size=8) | st.booleans() | st.floats(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["port", "host", "peers", "name"]) | st.text(),
                    inner,
                    max_size=3,
                )
            ),
            max_leaves=6,
        ),
        max_size=3,
    )
)
def test_flags_of_any_shape_give_a_config_or_one_line(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    flags = {
        f"{section}.{key}": value
        for section, table in content.items()
        for key, value in (
            table.items() if isinstance(table, dict) else [("host", table)]
        )
    }
    message = ""
    try:
        load(tmp_path, flags=flags)
    except ConfigError as exc:
        message = str(exc)
    assert "\n" not in message


def test_the_password_of_the_store_is_in_no_message(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    for url in ("redis://u:s3cret@h:x", "http://u:s3cret@h", "redis://u:s3cret@h/a"):
        with pytest.raises(ConfigError, match=r"cache\.url") as caught:
            load_config(home, home_given=True, environ={"ANPD_CACHE__URL": url})
        assert "s3cret" not in str(caught.value)
    url = "redis://u:s3cret@h"
    config = load_config(home, home_given=True, environ={"ANPD_CACHE__URL": url})
    assert config.cache.shown_url == "redis://h:6379/0"
    assert "s3cret" not in repr(config)


def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path) -> None:
    text = '[[attach]]\nkind = "http"\nname = "x"\nurl = "https://x.example"\n'
    for line in ('headers = "sk-12345"', 'bearer = "sk-12345"', "bearer = 12345"):
        (tmp_path / "bad.toml").write_text(f"{text}{line}\n")
        with pytest.raises(ConfigError) as caught:
            load_config(
                Home(tmp_path),
                home_given=True,
                config_file=tmp_path / "bad.toml",
                flags={},
                environ={},
                cwd=tmp_path,
            )
        assert "12345" not in str(caught.value)
