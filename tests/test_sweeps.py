"Sweeps as they are used: commands typed, processes killed, a real Dask cluster on loopback."
import json, random, shutil, signal, subprocess, sys, time
import psutil, pytest, yaml
from fa_nb.page import TEMPLATE
from fa_nb.records import load_records
from fa_nb.sweeps import epochs_done, is_complete, read_sweep

SWEEP = {"defaults": {"data": "digits", "epochs": 60, "width": 32, "threads": 1}, "grid": {"rule": ["bp", "dfa"], "terminal_norm": [True, False]}}
SECONDS = 120     # far more than anything here needs: what does not happen until then does not happen

def fa_nb(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "fa_nb", *map(str, arguments)], capture_output=True, text=True, timeout=3 * SECONDS, **options)

def start(*arguments):
    return subprocess.Popen([sys.executable, "-m", "fa_nb", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

def until(condition):
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found

def kill_and_watch(process, how=signal.SIGKILL):
    "Kill a sweep; all that it had started must end by itself."
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.send_signal(how)
    output = process.communicate(timeout=SECONDS)
    assert psutil.wait_procs(family, timeout=30)[1] == []
    return output

def measured(folder): return {record.name: record.measured() for record in load_records(folder, say=pytest.fail)}

@pytest.fixture(scope="session")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep")/"four.yaml"
    path.write_text(yaml.safe_dump(SWEEP))
    return path

@pytest.fixture(scope="session")
def undisturbed(spec):
    "A sweep that nobody disturbs: the folder with its results."
    done = fa_nb("sweep", spec, "--out", spec.parent/"undisturbed", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert len(measured(spec.parent/"undisturbed")) == 4
    return spec.parent/"undisturbed"

def progress(plan, out):
    "All epochs that are complete, of finished and of unfinished runs."
    return sum(epochs_done(out, cfg) for cfg in plan.configs)

def test_five_kills(spec, undisturbed, tmp_path):
    out, plan, moments, kept = tmp_path/"out", read_sweep(spec), random.Random(), {}
    for _ in range(5):
        goal = progress(plan, out) + moments.randint(0, 45)      # somewhere in the work that is left, or before any of it
        sweep = start("sweep", spec, "--out", out, "--jobs", 2)
        time.sleep(moments.uniform(0, 2))
        until(lambda: progress(plan, out) >= goal or sweep.poll() is not None)      # it may have come to its end first
        kill_and_watch(sweep)
        for path in out.glob("*.json"): assert path.read_bytes() == kept.setdefault(path.name, path.read_bytes())   # never done twice
    done = fa_nb("sweep", spec, "--out", out, "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert measured(out) == measured(undisturbed)
    assert all((out/name).read_bytes() == content for name, content in kept.items())
    pages = list((out/"notebooks").iterdir())
    assert len(pages) == 4 and all(map(is_complete, pages))
    assert [path.name for path in (out/".checkpoints").iterdir() if path.is_dir()] == []

def test_interrupt_and_failure(spec, undisturbed, tmp_path):
    out, plan = tmp_path/"out", read_sweep(spec)
    sweep = start("sweep", spec, "--out", out, "--jobs", 2)
    until(lambda: any(epochs_done(out, cfg) for cfg in plan.configs))
    _, errors = kill_and_watch(sweep, signal.SIGINT)
    assert sweep.returncode == 130 and "goes on from the last complete epoch" in errors and "Traceback" not in errors
    assert any(epochs_done(out, cfg) for cfg in plan.configs)

    sweep = start("sweep", spec, "--out", out, "--jobs", 2)
    kernels = until(lambda: [p for p in psutil.Process(sweep.pid).children(recursive=True) if "ipykernel_launcher" in " ".join(p.cmdline())])
    kernels[0].kill()                                    # what a machine does that is short of memory
    output, errors = sweep.communicate(timeout=SECONDS)
    failed = [line for line in errors.splitlines() if line.startswith("Failed: ")]
    assert sweep.returncode == 1 and len(failed) == 1 and len(measured(out)) == 3, (output, errors)
    assert (out/"notebooks"/f"{failed[0].split(': ')[1]}.ipynb").exists()

    done = fa_nb("sweep", spec, "--out", out, "--jobs", 2)
    assert done.returncode == 0 and measured(out) == measured(undisturbed), done.stderr

@pytest.fixture
def cluster(tmp_path):
    "A scheduler and two workers with encrypted connections, each a process; the address, the options for it, and the workers."
    pem, key = tmp_path/"cert.pem", tmp_path/"key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=fa_nb", "-out", pem, "-keyout", key],
                   check=True, capture_output=True)
    tls, processes = ["--tls-ca-file", pem, "--tls-cert", pem, "--tls-key", key], []
    def dask(*arguments):
        processes.append(subprocess.Popen([sys.executable, "-m", "dask", *map(str, arguments), *map(str, tls)], cwd=tmp_path,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return processes[-1]
    about = tmp_path/"scheduler.json"
    dask("scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", about)
    address = until(lambda: about.exists() and about.read_text().endswith("}") and json.loads(about.read_text())["address"])
    workers = [dask("worker", address, "--nthreads", 1, "--no-nanny", "--no-dashboard", "--resources", "GPU=1", "--host", "127.0.0.1") for _ in range(2)]
    yield address, ["--dask-ca", pem, "--dask-cert", pem, "--dask-key", key, "--dask-resources", "GPU=1"], workers
    for process in processes: process.kill(); process.wait()

@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
def test_cluster_loses_a_worker(spec, undisturbed, cluster, tmp_path):
    address, options, workers = cluster
    out, plan = tmp_path/"out", read_sweep(spec)
    sweep = start("sweep", spec, "--out", out, "--dask", address, *options)
    until(lambda: sum(1 < epochs_done(out, cfg) < cfg.epochs for cfg in plan.configs) == 2)      # both are at work, and their checkpoints are here
    workers[0].kill()
    output, errors = sweep.communicate(timeout=3 * SECONDS)
    assert sweep.returncode == 0, (output, errors)
    assert measured(out) == measured(undisturbed)
    assert max(record.sessions for record in load_records(out)) == 2                # taken over from its last epoch, not begun afresh
    assert all(is_complete(page) for page in (out/"notebooks").iterdir())

def test_a_dead_address_and_bad_files(tmp_path):
    files = {"typo.yaml": "grid: {rulee: [bp]}", "unknown.yaml": "gridd: {rule: [bp]}", "type.yaml": "grid: {epochs: [many]}", "empty.yaml": "grid: {}"}
    for name, text in files.items(): (tmp_path/name).write_text(text)
    lines = [["sweep", name] for name in files] + [["sweep", "quick", "--dask", "tcp://127.0.0.1:1"], ["sweep", "nowhere.yaml"],
             ["sweep", "quick", "--out", "typo.yaml"]]
    for line in lines:
        done = fa_nb(*line, cwd=tmp_path)
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1 and done.stdout == "", (line, done)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)      # and nothing was written

def test_papermill_by_hand(tmp_path):
    done = subprocess.run([sys.executable, "-m", "papermill", TEMPLATE, "page.ipynb", "-y", "config: {data: digits, rule: fa, epochs: 2, width: 32}"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert is_complete(tmp_path/"page.ipynb") and [r.config.rule for r in load_records(tmp_path/"runs")] == ["fa"]
