"The protocol against random records, and audit, figures, import and export as a user calls them."
import json, math
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st
from conftest import is_refusal
from fa_nb.config import RunConfig
from fa_nb.exchange import KINDS
from fa_nb.protocol import JUDGES, audit, audit_all
from fa_nb.records import LogEntry, Record, run

# --- random records ---------------------------------------------------------------------------------------------

DEPTH = 3
positive = st.floats(1e-12, 1e9)
scores = st.floats(-1, 1)
undefined = st.sampled_from([None, math.nan])
number = lambda values: st.one_of(values, values, values, undefined)
layers = lambda values, n: st.lists(number(values), min_size=n, max_size=n)

entries = st.fixed_dictionaries({
    "hidden_norms": layers(positive, DEPTH + 1), "bp_grad_norms_per_sample_med": layers(positive, DEPTH + 1),
    "cos_per_layer": st.none() | layers(scores, DEPTH), "rho_per_layer": st.none() | layers(scores, DEPTH),
    "null_cos_per_layer": st.none() | st.lists(layers(scores, DEPTH), max_size=3), "null_rho_per_layer": st.none() | st.lists(layers(scores, DEPTH), max_size=3),
    "acc_eval": number(st.floats(0, 1)), "acc_test": number(st.floats(0, 1))})


@st.composite
def some_records(draw, seeds=(1, 2), rules=("bp", "dfa", "frozen")):
    "A few runs; some of the same config, some broken off, some with settings of their own."
    found = []
    for _ in range(draw(st.integers(1, 6))):
        config = RunConfig(rule=draw(st.sampled_from(rules)), seed=draw(st.sampled_from(seeds)), depth=DEPTH, epochs=2,
                           width=draw(st.sampled_from([8, 8, 16])))
        log = [LogEntry(epoch=epoch, **draw(entries)) for epoch in range(draw(st.integers(1, 3)))]
        status = draw(st.sampled_from(["finished", "finished", "non-finite"]))
        found.append(Record(id=config.id, config=config, status=status, log=log, environment={}, started=None, duration_s=None))
    return found


def verdicts(record, records):
    return {name: part.verdict for name, part in audit(record, records).parts.items()}


@settings(max_examples=60, deadline=None)
@given(some_records(), st.randoms())
def test_the_order_of_records_does_not_matter(records, random):
    shuffled = random.sample(records, len(records))
    for record in records:
        assert audit(record, records).to_dict() == audit(record, shuffled).to_dict()
    names = lambda audits: [a.record.id for a in audits]
    assert names(audit_all(records)) == names(audit_all(shuffled))


@settings(max_examples=60, deadline=None)
@given(some_records(seeds=(1,)), some_records(seeds=(2, 3)))
def test_more_seeds_never_change_a_verdict(records, others):
    for record in records:
        assert verdicts(record, records) == verdicts(record, records + others)


USED = {"scale": ["hidden_norms"], "floor": ["bp_grad_norms_per_sample_med"], "utility": ["acc_eval", "acc_test"],
        "credit": ["cos_per_layer", "rho_per_layer", "null_cos_per_layer", "null_rho_per_layer"]}


def with_nan(value):
    if isinstance(value, list): return [with_nan(v) for v in value]
    return None if value is None else math.nan


@settings(max_examples=60, deadline=None)
@given(some_records(), st.sampled_from(sorted(USED)), st.data())
def test_nan_never_passes(records, part, data):
    record = data.draw(st.sampled_from(records))
    keys = USED[part] if part == "utility" else [data.draw(st.sampled_from(USED[part]))]
    spoilt = record.log[-1].model_copy(update={key: with_nan(getattr(record.log[-1], key)) for key in keys})
    spoilt = record.model_copy(update={"log": [*record.log[:-1], spoilt]})
    others = [r for r in records if r is not record]
    assert verdicts(spoilt, others + [spoilt])[part] != "pass"


@settings(max_examples=60, deadline=None)
@given(some_records(), st.integers(0, DEPTH), undefined)
def test_one_unknown_layer_is_enough_to_withhold_the_floor(records, layer, nothing):
    record = records[0]
    gradients = list(record.log[-1].bp_grad_norms_per_sample_med)
    gradients[layer] = nothing
    spoilt = record.model_copy(update={"log": [*record.log[:-1], record.log[-1].model_copy(update={"bp_grad_norms_per_sample_med": gradients})]})
    found = verdicts(spoilt, records)
    assert found["floor"] != "pass" and found["credit"] == "undefined"


@settings(max_examples=60, deadline=None)
@given(some_records(rules=("dfa",)))
def test_without_references_nothing_that_needs_them_passes(records):
    for a in audit_all(records):
        assert a.parts["scale"].verdict != "pass" and a.parts["utility"].verdict == "undefined"
        for part in a.parts.values():
            assert part.reason and (part.verdict != "pass" or part.value is not None)
            assert part.verdict == "fail" or a.record.status == "finished" or part.verdict == "undefined"


# --- the commands -----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    "The study's finding in small: BP, DFA, DFA with the penalty, frozen blocks."
    folder = tmp_path_factory.mktemp("trained")
    base = dict(data="teacher", width=32, lr=1e-2, epochs=10, log_every=5, threads=1)
    for condition in (dict(rule="bp"), dict(rule="dfa"), dict(rule="dfa", penalty=1e-2), dict(rule="frozen")):
        run(RunConfig(**base, **condition), folder, quiet=True)
    return folder


def test_audit(fa_nb, trained):
    shown = fa_nb("audit", trained)
    assert shown.returncode == 0 and "FAIL" in shown.stdout and "below the floor of 1e-7" in shown.stdout and not shown.stderr
    strict = fa_nb("audit", trained, "--strict", "--json")
    assert strict.returncode == 1 and "fail the protocol" in strict.stderr
    found = {(a["config"]["rule"], a["config"]["penalty"] or 0): {n: p["verdict"] for n, p in a["parts"].items()} for a in json.loads(strict.stdout)}
    assert found["dfa", 0] == {"scale": "fail", "floor": "fail", "credit": "undefined", "utility": "fail"}
    assert found["dfa", 0.01]["scale"] == found["dfa", 0.01]["floor"] == "pass"
    assert [found["bp", 0][part] for part in ("scale", "floor", "utility")] == ["pass"] * 3
    assert set(found["bp", 0]) == set(JUDGES)


def test_strict_is_content_with_bp_alone(fa_nb, trained):
    (fa_nb.folder/"bp").mkdir()
    for path in trained.glob("resmlp-bp-*.json"): (fa_nb.folder/"bp"/path.name).write_text(path.read_text())
    assert fa_nb("audit", "bp", "--strict").returncode == 0


def older_results(folder: Path, swap: bool) -> list[Path]:
    "A file of every kind in section 7 of the study for two seeds, in the usual spelling of the keys or in the other one."
    paths = []
    cls = {"hidden_norms": "hidden_norms_cls", "bp_grad_norms_per_sample_med": "bp_grad_per_sample_l2_med"}
    for kind in KINDS:
        for seed in (42, 123):
            for penalty in (1e-4, 1e-3, 1e-2, 1e-1) if "{penalty}" in kind.path else (None,):
                path = folder/kind.path.format(seed=seed, alpha=1.0, depth=4, penalty=penalty)
                growth = {"bp_log": 1.1, "fa_log": 1.3, "dfa_log": 4., "log": 2.}
                def row(epoch, key):
                    h, entry = 10 * growth[key]**epoch * (1 + seed/1000), {"epoch": epoch, "acc_eval": .1 + .05*epoch}
                    if key == "log" and not swap: return {**entry, "h_L_norm": h, "g_2_norm": 1e-3/h}
                    lists = {"hidden_norms": [h]*5, "bp_grad_norms_per_sample_med": [1e-3/h]*5}
                    usual = "vit" in kind.path
                    return {**entry, **{cls[k] if usual != swap else k: v for k, v in lists.items()}}
                content = {key: [row(epoch, key) for epoch in range(8)] for key in kind.logs}
                if "bp_log" in content: content |= {"config": {"lr": 0.001, "dataset": "x"}, "depth": 4, "d_hidden": 32, "num_classes": 10}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(content))
                paths.append(path)
    return paths


FIVE = ("snapshot_resmlp", "snapshot_vit", "cross_architecture", "penalty_trajectories", "penalty_rescue")


@pytest.mark.parametrize("swap", [False, True])
def test_figures_from_older_files(fa_nb, swap):
    paths = {path.name: path for path in older_results(fa_nb.folder/"results", swap)}
    cut, missing = paths["snapshot_noLN_s123.json"], paths["dfa_pen_lam0.01_s42.json"]
    cut.write_text(cut.read_text()[:200])
    missing.unlink()
    done = fa_nb("figures", "results", "--out", "figures", "--format", "pdf,png")
    assert done.returncode == 0, done.stderr
    for name in FIVE:
        assert (fa_nb.folder/"figures"/f"{name}.pdf").read_bytes().startswith(b"%PDF-")
        assert (fa_nb.folder/"figures"/f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "older files" in (fa_nb.folder/"figures"/f"{name}.txt").read_text()
    assert "Left out" in done.stderr and cut.name in done.stderr and "cut off" in done.stderr
    assert "Not there" in done.stderr and missing.name in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Left out") or line.startswith("Not there")]) == 2


def test_import_and_export(fa_nb, trained):
    older_results(fa_nb.folder/"results", swap=True)
    done = fa_nb("import", "results", "--out", "runs")
    assert done.returncode == 0 and "30 records" in done.stdout, done
    assert "undefined" in fa_nb("audit", "runs").stdout
    again = fa_nb("import", "results", "--out", "runs")
    assert again.returncode == 0 and again.stderr.count("Kept as it was") == 30
    done = fa_nb("export", trained, "--out", "older")
    assert done.returncode == 0 and "2 files" in done.stdout and done.stderr.count("no place for such a run") == 1
    content = json.loads((fa_nb.folder/"older/snapshot_evolution_v2/snapshot_evolution_s42.json").read_text())
    assert content["d_hidden"] == 32 and content["num_classes"] == 10 and len(content["bp_log"]) == len(content["dfa_log"]) == 3
    row = json.loads((fa_nb.folder/"older/dfa_residual_penalty/dfa_pen_lam0.01_s42.json").read_text())["log"][-1]
    assert {"epoch", "h_L_norm", "g_2_norm", "acc_eval"} <= set(row)


@pytest.mark.parametrize("line", ["audit nowhere", "figures nowhere", "import nowhere", "export nowhere", "audit .", "figures .", "import .", "export .",
                                  "audit", "figures . --format gif", "audit . --loud"])
def test_refusals(fa_nb, line):
    assert is_refusal(fa_nb(*line.split()))
    assert not list(fa_nb.folder.iterdir())
