"What we build and what we download: a wheel that works without a checkout, and CIFAR-10 in torchvision's own layout."
import os, pickle, subprocess, sys
from pathlib import Path
import pytest

ROOT = Path(__file__).parent.parent


def test_wheel_runs_without_the_checkout(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(tmp_path / "dist")]
    subprocess.run(build, check=True, cwd=tmp_path)
    wheel, = (tmp_path / "dist").glob("fa_nb-*.whl")
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(tmp_path / "site"), str(wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    where = subprocess.run([sys.executable, "-c", "import fa_nb; print(fa_nb.__file__)"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert str(tmp_path) in where.stdout
    for name in ("report", "explore"): assert '"nbformat"' in (tmp_path / "site" / "fa_nb" / "notebooks" / f"{name}.ipynb").read_text()
    run = [sys.executable, "-m", "fa_nb", "run", "--data", "digits", "--epochs", "1", "--width", "16", "--out", "runs"]
    assert subprocess.run(run, cwd=tmp_path, env=environment).returncode == 0
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1


@pytest.fixture(scope="module")
def images():
    from fa_nb.data import fetch_cifar10
    return fetch_cifar10()


def write_torchvision_layout(folder, images, monkeypatch):
    "The files that torchvision unpacks, with our images in them; its list of checksums is made to fit."
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import calculate_md5
    base = folder / CIFAR10.base_folder
    base.mkdir(parents=True)
    def write(name, pixels, labels):
        (base / name).write_bytes(pickle.dumps({"data": pixels.reshape(len(pixels), -1).numpy(), "labels": labels.tolist()}))
        return [name, calculate_md5(base / name)]
    train = [write(f"data_batch_{i + 1}", images["train_x"][i*10_000:(i+1)*10_000], images["train_y"][i*10_000:(i+1)*10_000]) for i in range(5)]
    test = [write("test_batch", images["test_x"], images["test_y"])]
    (base / "batches.meta").write_bytes(pickle.dumps({"label_names": list("0123456789")}))
    monkeypatch.setattr(CIFAR10, "train_list", train)
    monkeypatch.setattr(CIFAR10, "test_list", test)
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": calculate_md5(base / "batches.meta")})
    return base


def test_cifar10_in_torchvisions_layout(tmp_path, images, monkeypatch):
    from fa_nb.basics import DataError
    from fa_nb.data import read_cifar10
    base = write_torchvision_layout(tmp_path, images, monkeypatch)
    found = read_cifar10(tmp_path)
    assert all((found[name] == images[name]).all() for name in images)
    os.truncate(base / "data_batch_3", 1_000_000)             # a partial copy
    with pytest.raises(DataError, match="delete it and run"):
        read_cifar10(tmp_path)


def test_no_network_and_no_npm_is_one_sentence(tmp_path):
    "Where neither torchvision's server nor npm can be reached, say so and leave nothing behind that looks like data."
    environment = {**os.environ, "PATH": "/nowhere", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-m", "fa_nb", "data", "cifar10", "--data-folder", str(tmp_path / "data")],
                          env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "FA_NB_DATA" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert [p.name for p in (tmp_path / "data").iterdir() if not p.name.startswith(".")] == []
