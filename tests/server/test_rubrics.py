"""Rubrics that are written over the server: the file that `baton rubrics` reads, and no other."""

from __future__ import annotations

from pathlib import Path

import httpx2
import msgspec
import pytest

from baton.cli.app import main
from baton.model import InputError
from baton.server.rubrics import (
    ChangedMeanwhileError,
    RubricText,
    ToSave,
    evaluator_of,
    following,
    former_texts,
    own_files,
    rubric_text,
    save_rubric,
)
from baton.server.settings import Settings, load_settings
from baton.server.store import Store

from .serving import api

TEXT = """\
# Written by hand, and it stays.
name: polite
summary: whether the answer is polite
unit: dispatch
version: "1"
threshold: 1
inputs: [call, result?]
prompt: "The question: is the result polite?"
answer:
  choices: {polite: 1, rude: 0}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "rubrics"
    folder.mkdir()
    return Settings(rubrics=str(folder))


def saved(settings: Settings, text: str, digest: str = "", **more: bool) -> RubricText:
    return save_rubric(settings, ToSave(text=text, digest=digest, **more))


def test_what_is_saved_is_the_file_that_baton_rubrics_reads(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = saved(settings, TEXT)
    file = Path(kept.file)
    assert file.read_text() == TEXT
    assert main(["rubrics", "list", "--rubrics", str(settings.rubrics)]) == 0
    assert "polite" in capsys.readouterr().out
    assert evaluator_of(settings, "default", "polite").rubric.threshold == 1
    file.chmod(0o664)
    new = saved(settings, TEXT.replace("is polite\n", "is kind\n"), kept.digest)
    assert "Written by hand" in new.text
    assert file.stat().st_mode & 0o777 == 0o664
    assert [each.text for each in former_texts(settings, "polite")] == [TEXT]


def test_another_question_needs_another_version(settings: Settings) -> None:
    kept = saved(settings, TEXT)
    other = TEXT.replace("is the result polite", "is the result kind")
    with pytest.raises(InputError, match=r"the version is still 1.*write 2"):
        saved(settings, other, kept.digest)
    new = saved(settings, other, kept.digest, next_version=True)
    assert 'version: "2"\n' in new.text
    assert "is the result kind" in new.text
    (former,) = former_texts(settings, "polite")
    assert (former.version, former.text) == ("1", TEXT)
    assert [following(each) for each in ("2", "1.9", "draft")] == ["3", "1.10", "draft.1"]


def test_what_was_edited_by_hand_is_not_overwritten(settings: Settings) -> None:
    kept = saved(settings, TEXT)
    mine = TEXT.replace("is polite\n", "is polite, I say\n")
    Path(kept.file).write_text(TEXT + "# by hand\n")
    with pytest.raises(ChangedMeanwhileError) as changed:
        saved(settings, mine, kept.digest)
    assert changed.value.there.text == TEXT + "# by hand\n"
    assert Path(kept.file).read_text() == TEXT + "# by hand\n"
    assert saved(settings, mine, changed.value.there.digest).text == mine
    with pytest.raises(ChangedMeanwhileError):
        saved(settings, TEXT)  # as a new one, over one that is there
    Path(kept.file).unlink()
    with pytest.raises(ChangedMeanwhileError):
        saved(settings, mine, kept.digest)


def test_only_the_folder_is_written_to(settings: Settings, tmp_path: Path) -> None:
    folder = Path(str(settings.rubrics))
    for name in ("../polite", "a/b", ".hidden", "sub/../../x", "ünï"):
        with pytest.raises(InputError, match="is not a valid file name"):
            saved(settings, TEXT.replace("name: polite", f'name: "{name}"'))
    with pytest.raises(InputError, match="comes with Baton is called `scope_fidelity`"):
        saved(settings, TEXT.replace("name: polite", "name: scope_fidelity"))
    with pytest.raises(InputError, match="no folder of rubrics was named"):
        saved(Settings(), TEXT)
    outside = tmp_path / "outside.yaml"
    outside.write_text(TEXT)
    (folder / "polite.yaml").symlink_to(outside)
    assert own_files(settings) == []
    with pytest.raises(InputError, match="link out of the folder"):
        saved(settings, TEXT.replace("polite\n", "very polite\n", 1).replace("very ", "", 1))
    assert outside.read_text() == TEXT
    (folder / "polite.yaml").unlink()
    with pytest.raises(InputError, match="rubric:4: unit: `nothing`"):
        saved(settings, TEXT.replace("unit: dispatch", "unit: nothing"))
    assert list(folder.iterdir()) == []


def test_a_file_with_faults_is_shown_with_them(settings: Settings) -> None:
    folder = Path(str(settings.rubrics))
    (folder / "broken.yaml").write_text(TEXT.replace("threshold: 1", "threshold: 7"))
    (folder / "twice.yaml").write_text(TEXT.replace("polite", "scope_fidelity"))
    shown = rubric_text(settings, "broken")
    assert shown.own
    assert "never reached" in shown.problems[0]
    assert "already" in rubric_text(settings, "twice").problems[0]
    assert not rubric_text(settings, "scope_fidelity").own
    with pytest.raises(InputError, match="did you mean `broken`"):
        rubric_text(settings, "brokn")


def test_the_folder_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "server.yaml").write_text("rubrics: mine\n")
    assert load_settings(tmp_path / "server.yaml").rubrics == str(tmp_path / "mine")
    with pytest.raises(InputError, match="--rubrics: there is no folder"):
        load_settings(None, {"rubrics": str(tmp_path / "no")})


def test_programs_change_no_files_where_other_machines_reach_the_server(
    store: Store, settings: Settings
) -> None:
    reached = msgspec.structs.replace(settings, host="192.0.2.1")
    with api(store, live_settings=lambda: reached) as url:
        refused = httpx2.post(f"{url}/api/v1/rubrics", json={"text": TEXT})
    assert (refused.status_code, "--allow-run" in refused.text) == (403, True)
    assert settings.rubrics is not None
    assert list(Path(settings.rubrics).iterdir()) == []
    allowed = msgspec.structs.replace(reached, allow_run=True)
    with api(store, live_settings=lambda: allowed) as url:
        assert httpx2.post(f"{url}/api/v1/rubrics", json={"text": TEXT}).is_success


def test_programs_read_and_write_rubrics(store: Store, settings: Settings) -> None:
    with api(store, live_settings=lambda: settings) as url:
        path = f"{url}/api/v1/rubrics"
        first = httpx2.post(path, json={"text": TEXT}).json()
        assert (first["name"], first["own"]) == ("polite", True)
        again = httpx2.post(path, json={"text": TEXT + "# more\n"})
        assert (again.status_code, "someone else changed it" in again.text) == (409, True)
        (shown,) = httpx2.get(path).json()["items"]
        assert shown["text"] == TEXT
        (shipped,) = httpx2.get(path, params={"name": "scope_fidelity"}).json()["items"]
        assert not shipped["own"]
