"The runs that travel with the package: all there, readable at once, and true when they are done again."
import json
import pytest
from conftest import is_refusal
from fa_nb.exchange import load_any
from fa_nb.sweeps import read_sweep


@pytest.fixture(scope="module")
def records(): return load_any("reference")


def test_they_are_the_runs_of_the_study_and_all_came_to_their_end(records):
    assert {r.name for r in records} == {cfg.name for cfg in read_sweep("study").configs}
    assert {r.status for r in records} == {"finished"}
    for r in records:
        assert r.log[0].epoch == 0 and r.log[-1].epoch == r.config.epochs
        assert r.environment["products"] == "oneDNN" and r.environment["threads"] == 1


def test_audit_and_figures_work_offline_from_anywhere(fa_nb, records):
    offline = {"PATH": "/nowhere", "HOME": str(fa_nb.folder), "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    audited = fa_nb("audit", "reference", "--json", env=offline)
    assert audited.returncode == 0 and not audited.stderr
    assert {a["run"] for a in json.loads(audited.stdout)} == {r.name for r in records}
    drawn = fa_nb("figures", "reference", "--out", "pictures", "--format", "png", env=offline)
    assert drawn.returncode == 0 and "left out" not in drawn.stdout, drawn.stdout
    assert len(list((fa_nb.folder / "pictures").glob("*.png"))) == 5


def test_report_does_not_go_into_the_package(fa_nb):
    done = fa_nb("report", "reference")
    assert done.returncode == 0 and (fa_nb.folder / "reference-report" / "report.html").is_file(), done.stderr


def test_several_runs_of_that_name_are_a_refusal(fa_nb):
    done = fa_nb("repeat", "reference", "resmlp-dfa-cifar10-s42")
    assert is_refusal(done) and "resmlp-dfa-cifar10-s42-71b5ac60" in done.stderr


@pytest.mark.parametrize("rule", ["bp", "fa", "dfa"])
def test_a_run_of_studentnet_happens_again(fa_nb, rule):
    done = fa_nb("repeat", "reference", f"studentnet-{rule}-teacher-s42", "--epochs", 2)
    assert done.returncode == 0 and "It repeats." in done.stdout, done.stdout + done.stderr
