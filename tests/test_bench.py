"The benchmark as a user starts it, and the promise that asking for help does not import PyTorch."
import json, subprocess, sys
from conftest import is_refusal


def test_quick_benchmark_prints_a_table_and_writes_numbers_and_a_picture(fa_nb):
    done = fa_nb("bench", "--quick", "--threads", 1, "--out", "bench")
    assert done.returncode == 0, done.stderr
    rows = json.loads((fa_nb.folder / "bench" / "bench.json").read_text())["rows"]
    seconds = {(row["what"], row["rule"]): row["median"] for row in rows}
    for rule in ("bp", "dfa"):
        assert all(seconds[what, rule] > 0 for what in ("textbook", "training", "floor", "diagnostics", "end to end"))
        assert seconds["end to end", rule] > seconds["diagnostics", rule]
    assert (fa_nb.folder / "bench" / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert "textbook ÷ this" in done.stdout and "times the floor" in done.stdout


def test_a_folder_that_cannot_be_made_is_refused_before_measuring(fa_nb):
    (fa_nb.folder / "file").write_text("in the way")
    assert is_refusal(fa_nb("bench", "--out", "file/bench"))


def test_help_does_not_import_torch():
    code = "import sys; sys.argv = ['fa_nb', '--help']\nfrom fa_nb.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip().splitlines()[-1] == "False", done.stdout + done.stderr
