"Helpers for tests that use fa_nb as a user does: from a shell, in a folder of its own."
import json, signal, subprocess, sys
from pathlib import Path
import pytest

# Started in the background (`bash tests/run &`), we would inherit and pass on that Ctrl-C is ignored; the tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def command(*arguments):
    "The command line for `fa_nb` in the Python that runs the tests."
    return [sys.executable, "-m", "fa_nb", *map(str, arguments)]


@pytest.fixture
def fa_nb(tmp_path):
    "Call `fa_nb(...)` in an empty folder; the finished process."
    def call(*arguments, **options):
        return subprocess.run(command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=300, **options)
    call.folder = tmp_path
    return call


def is_refusal(done) -> bool:
    "One sentence on standard error, exit code 2, no traceback."
    lines = done.stderr.strip().splitlines()
    return done.returncode == 2 and len(lines) == 1 and lines[0].startswith("fa_nb: ") and "Traceback" not in done.stderr


def measured(path: Path) -> dict:
    "What must be equal in two records of the same run: all but times and environment."
    record = json.loads(Path(path).read_text())
    return {k: v for k, v in record.items() if k not in ("started", "duration_s", "sessions", "environment")}
