"The command line as a user meets it: a run, a killed run, and everything that can be typed wrongly."
import os, signal, subprocess, sys, time
import pytest
from conftest import command, is_refusal, measured

RUN = ("run", "--model", "resmlp", "--rule", "dfa", "--data", "digits", "--seed", "42", "--threads", "1")


def test_run_says_where_its_record_is(fa_nb):
    done = fa_nb(*RUN, "--epochs", 2, "--width", 16, "--out", "runs")
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("Record: ") and (fa_nb.folder / last.removeprefix("Record: ")).is_file()
    assert "epoch 2/2" in done.stdout and "left" in done.stdout      # plain lines, since nobody watches
    assert "\r" not in done.stdout


def test_killed_run_resumes_and_ends_with_the_same_record(fa_nb):
    settings = (*RUN, "--epochs", 40, "--width", 64)
    assert fa_nb(*settings, "--out", "undisturbed").returncode == 0
    kills, deadline = 0, time.monotonic() + 200
    for wanted_epoch in ("epoch 5/", "epoch 17/"):
        process = subprocess.Popen(command(*settings, "--out", "killed"), cwd=fa_nb.folder, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            assert time.monotonic() < deadline
            if wanted_epoch in line:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
        process.wait()
    assert kills == 2 and not list((fa_nb.folder / "killed").glob("*.json"))
    done = fa_nb(*settings, "--out", "killed")
    assert done.returncode == 0 and "resuming after epoch" in done.stdout
    (whole,), (resumed,) = ((fa_nb.folder / name).glob("*.json") for name in ("undisturbed", "killed"))
    assert measured(whole) == measured(resumed)
    assert not list((fa_nb.folder / "killed").rglob("*.safetensors"))      # checkpoints are gone, the record is there


def test_interrupt_says_how_to_go_on(fa_nb):
    process = subprocess.Popen(command(*RUN, "--epochs", 500), cwd=fa_nb.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "epoch 2/" in line: break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "goes on from the last complete epoch" in errors and "Traceback" not in errors


def test_two_processes_do_not_share_a_run(fa_nb):
    settings = (*RUN, "--epochs", 500, "--out", "runs")
    first = subprocess.Popen(command(*settings), cwd=fa_nb.folder, stdout=subprocess.PIPE, text=True)
    try:
        for line in first.stdout:
            if "epoch 1/" in line: break
        second = fa_nb(*settings)
        assert is_refusal(second) and "another process" in second.stderr
    finally:
        first.kill()
        first.wait()


WRONG = [
    ("run", "--epochs", "0"), ("run", "--epochs", "many"), ("run", "--epochs", "1.5"), ("run", "--epochs"),
    ("run", "--lr", "-1"), ("run", "--lr", "nan"), ("run", "--seed", "-1"), ("run", "--model", "resnet"),
    ("run", "--rule", "dfaa"), ("run", "--data", "mnist"), ("run", "--device", "gpu"), ("run", "--device", "cuda:9", "--data", "digits"),
    ("run", "--heads", "4"), ("run", "--model", "vit", "--heads", "3"), ("run", "--model", "vit", "--patch", "5"),
    ("run", "--model", "vit", "--data", "teacher"), ("run", "--rule", "fa", "--penalty", "0.1"), ("run", "--alpha", "0.5"),
    ("run", "--model", "studentnet", "--terminal-norm"), ("run", "--data", "digits", "--train-samples", "9999"),
    ("run", "--batch-size", "0"), ("run", "--no-such-option"), ("run", "stray"), ("data", "mnist"), ("data",), ("sing",),
    ("run", "--data", "digits", "--out", "/proc/nowhere"), ("data", "cifar10", "--data-folder", "/proc/nowhere"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_mistake_gets_one_sentence(fa_nb, arguments):
    done = fa_nb(*arguments)
    assert is_refusal(done), (done.returncode, done.stdout, done.stderr)
    assert not done.stdout and not os.listdir(fa_nb.folder)


def test_a_damaged_record_is_not_overwritten(fa_nb):
    settings = (*RUN, "--epochs", 1, "--width", 16, "--out", "runs")
    fa_nb(*settings)
    record, = (fa_nb.folder / "runs").glob("*.json")
    record.write_text(record.read_text()[:300])
    done = fa_nb(*settings)
    assert is_refusal(done) and record.name in done.stderr
    assert len(record.read_text()) == 300


def test_help_does_not_import_torch(fa_nb):
    code = "import sys; sys.argv = ['fa_nb', '--help']\nfrom fa_nb.cli import main\ntry: main()\nexcept SystemExit as e: assert not e.code\nassert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_run_help_names_every_rule_and_model(fa_nb):
    text = fa_nb("run", "--help", env={**os.environ, "COLUMNS": "200"}).stdout
    for name in ("resmlp", "studentnet", "vit", "bp (", "fa (", "dfa (", "frozen (", "--penalty", "--eval-samples"): assert name in text
