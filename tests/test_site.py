"The site without Quarto: prepared pages, every link and picture of them, and what Quarto would be asked to do."
import json, os, re, shutil, subprocess, sys
from pathlib import Path
import pytest, yaml
from conftest import command, is_refusal

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "fa_nb" / "notebooks" / "run.ipynb"
# What Quarto 1.7 knows, as far as we use it (its schema refuses other keys of `website`, and of an entry in a menu).
KNOWN = {"": {"project", "metadata-files", "lang", "execute", "format", "website"}, "project": {"type", "output-dir", "render"},
         "execute": {"enabled"}, "format.html": {"theme", "css", "toc", "toc-depth", "code-copy", "html-math-method"},
         "website": {"title", "description", "site-url", "repo-url", "repo-subdir", "repo-branch", "repo-actions", "page-navigation",
                     "back-to-top-navigation", "search", "open-graph", "navbar", "sidebar"},
         "website.navbar": {"background", "search", "left", "right", "title"},
         "website.sidebar": {"style", "collapse-level", "contents"}, "entry": {"text", "href", "icon", "aria-label", "section", "contents"}}
THEMES = {"cosmo", "darkly", "flatly", "litera", "lumen", "sandstone", "simplex", "slate", "solar", "superhero", "yeti", "cyborg"}


def without_quarto() -> str:
    "The PATH without any Quarto on it."
    return os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not (Path(p) / "quarto").exists())


def copy_repository(target: Path) -> Path:
    "The repository's files, without what is generated, in a folder of their own."
    shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(".git", "_proc", "_docs", "__pycache__", ".venv*", "*.egg-info", ".pytest_cache", ".ipynb_checkpoints", "runs", "build"))
    return target


def site(folder: Path, *arguments, **environment):
    return subprocess.run(command("site", *arguments), cwd=folder, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(folder), **environment})


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return copy_repository(tmp_path_factory.mktemp("site") / "fa_nb")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    "Two records and, beside one of them, a notebook that papermill executed."
    folder = tmp_path_factory.mktemp("runs")
    for rule in ("bp", "dfa"):
        subprocess.run(command("run", "--rule", rule, "--data", "digits", "--epochs", 2, "--width", 16, "--threads", 1, "--quiet", "--out", folder), check=True)
    import papermill
    record = next(folder.glob("*dfa*.json"))
    (folder / "notebooks").mkdir()
    settings = {k: v for k, v in json.loads(record.read_text())["config"].items() if v is not None}
    if TEMPLATE.exists(): papermill.execute_notebook(TEMPLATE, folder / "notebooks" / f"{record.stem}.ipynb", {"config": settings, "out": str(folder)}, progress_bar=False)
    else: (folder / "notebooks" / f"{record.stem}.ipynb").write_text(json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# One run\n\n> What was asked."}]}))
    return folder


@pytest.fixture(scope="module")
def unrendered(repository, runs):
    "What `fa_nb site --runs` leaves where there is no Quarto."
    return site(repository, "--runs", runs, PATH=without_quarto()), repository / "_proc"


@pytest.fixture(scope="module")
def prepared(unrendered): return unrendered[1]


def test_without_quarto_the_pages_stay_and_a_sentence_says_what_to_do(unrendered, repository):
    done, pages = unrendered
    assert is_refusal(done), done.stderr
    assert "quarto.org" in done.stderr and str(pages) in done.stderr
    assert (pages / "index.qmd").is_file() and (pages / "runs" / "report.ipynb").is_file() and not (repository / "_docs").exists()


def pages_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in (".ipynb", ".qmd") and not any(part.startswith((".", "_")) for part in p.relative_to(folder).parts))


def front_matter(page: Path) -> dict:
    if page.suffix == ".qmd": text = page.read_text()
    else:
        cell = json.loads(page.read_text())["cells"][0]
        assert cell["cell_type"] == "raw", f"{page.name} does not begin with front matter"
        text = "".join(cell["source"])
    assert text.startswith("---\n"), f"{page.name} has no front matter"
    return yaml.safe_load(text.split("---")[1])


def test_every_page_has_a_title_a_description_and_an_address_of_its_own(prepared):
    pages = pages_of(prepared)
    assert len(pages) > 12
    titles, addresses = [], []
    for page in pages:
        front = front_matter(page)
        assert isinstance(front.get("title"), str) and front["title"].strip(), page.name
        assert isinstance(front.get("description"), str) and front["description"].strip(), page.name
        titles.append(front["title"])
        addresses.append(page.parent / front.get("output-file", page.with_suffix(".html").name))
    assert len(set(titles)) == len(titles), sorted(titles)
    assert len(set(addresses)) == len(addresses)


def test_the_home_page_is_the_readme():
    from fa_nb.site import home_page
    assert (ROOT / "nbs" / "index.qmd").read_text() == home_page(ROOT), "nbs/index.qmd is out of date: say fa_nb site and commit the change"


def entries(items) -> list[dict]:
    "All entries of a menu, sections opened."
    found = []
    for item in items:
        item = {"href": item} if isinstance(item, str) else item
        assert set(item) <= KNOWN["entry"], f"Quarto does not know {set(item) - KNOWN['entry']} in a menu"
        found += [item] if "href" in item else []
        found += entries(item.get("contents", []))
    return found


def check_configuration(folder: Path):
    "The whole `_quarto.yml` of a folder of pages: known keys, files that are there, every page reachable."
    quarto = yaml.safe_load((folder / "_quarto.yml").read_text())
    for name in quarto["metadata-files"]:
        for key, value in yaml.safe_load((folder / name).read_text()).items(): quarto[key] = {**quarto.get(key, {}), **value}
    for path, known in KNOWN.items():
        node = quarto
        for part in filter(None, path.split(".")): node = node[part] if path != "entry" else {}
        assert set(node) <= known, f"unknown keys in {path or '_quarto.yml'}: {set(node) - known}"
    html, website = quarto["format"]["html"], quarto["website"]
    assert set(html["theme"]) == {"light", "dark"} and set(html["theme"].values()) <= THEMES
    assert (folder / html["css"]).is_file() and quarto["project"]["type"] == "website" and quarto["project"]["output-dir"] == "_docs"
    assert website["search"] and "source" in website["repo-actions"] and website["repo-subdir"] == "nbs" and (ROOT / "nbs").is_dir()
    assert quarto["execute"] == {"enabled": False}
    linked = entries([*website["navbar"]["left"], *website["navbar"]["right"], *website["sidebar"]["contents"]])
    for entry in linked:
        if "://" not in entry["href"]: assert (folder / entry["href"]).is_file(), f"the navigation names {entry['href']}, which is not there"
    in_sidebar = [e["href"] for e in entries(website["sidebar"]["contents"])]
    assert len(in_sidebar) == len(set(in_sidebar))
    pages = {p.relative_to(folder).as_posix() for p in pages_of(folder)}
    assert pages == set(in_sidebar), f"not in the sidebar of _quarto.yml: {sorted(pages - set(in_sidebar))}"
    return in_sidebar


def test_configuration_with_runs(prepared, runs):
    in_sidebar = check_configuration(prepared)
    assert "runs/report.ipynb" in in_sidebar and len([p for p in in_sidebar if p.startswith("runs/notebooks/")]) == 1


def test_the_library_is_in_order(prepared):
    numbered = [p for p in check_configuration(prepared) if re.match(r"\d\d_", p)]
    assert numbered == sorted(numbered)


def shown_text(page: Path) -> list[str]:
    "Markdown and HTML that a reader gets to see, code taken out."
    if page.suffix == ".qmd": texts = [page.read_text().split("---", 2)[2]]
    else:
        texts, raw = [], json.loads(page.read_text())
        for cell in raw["cells"]:
            if cell["cell_type"] == "markdown": texts.append("".join(cell["source"]))
            for output in cell.get("outputs", []):
                texts += ["".join(output.get("data", {}).get(kind, "")) for kind in ("text/markdown", "text/html")]
    return [re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.S)) for text in texts]


def slug(heading: str) -> str:
    "The anchor that Pandoc gives a heading."
    kept = re.sub(r"[^\w\s.-]", "", re.sub(r"[`*]|\{.*?\}", "", heading)).strip().lower()
    return re.sub(r"^[^a-z]+", "", re.sub(r"\s+", "-", kept))


def anchors(page: Path) -> set[str]:
    raw = json.loads(page.read_text())["cells"] if page.suffix == ".ipynb" else [{"cell_type": "markdown", "source": page.read_text()}]
    texts = ["".join(c["source"]) for c in raw if c["cell_type"] == "markdown"]
    texts += ["".join(o.get("data", {}).get("text/markdown", "")) for c in raw for o in c.get("outputs", [])]
    headings = [h for text in texts for h in re.findall(r"^#+\s+(.+)$", text, flags=re.M)]
    return {slug(h) for h in headings} | {a for text in texts for a in re.findall(r"\{#([\w.-]+)", text)}


def test_every_internal_link_and_picture_resolves(prepared):
    pages = pages_of(prepared)
    by_address = {p.parent / front_matter(p).get("output-file", p.with_suffix(".html").name): p for p in pages}
    broken, followed = [], 0
    for page in pages:
        for text in shown_text(page):
            targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"""(?:href|src)\s*=\s*["']([^"']+)["']""", text)
            for target in targets:
                path, _, anchor = target.partition("#")
                if re.match(r"[a-z]+:", target): continue
                followed += 1
                file = (page.parent / path).resolve() if path else page
                file = by_address.get(file, file)
                if not file.is_file(): broken.append(f"{page.name}: {target}")
                elif anchor and file in pages and anchor not in anchors(file): broken.append(f"{page.name}: no anchor {target}")
    assert followed > 20 and not broken, broken


def test_no_page_shows_a_traceback(prepared):
    for page in pages_of(prepared):
        if page.suffix == ".ipynb":
            outputs = [o for c in json.loads(page.read_text())["cells"] for o in c.get("outputs", [])]
            assert not [o for o in outputs if o["output_type"] == "error"], page.name


STAND_IN = """#!{python}
import json, os, pathlib, sys
call = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "pages": sorted(p.name for p in pathlib.Path().glob("*.ipynb"))}}
pathlib.Path({log!r}).write_text(json.dumps(call))
pathlib.Path("_docs").mkdir(exist_ok=True)
pathlib.Path("_docs/index.html").write_text("rendered")
"""


@pytest.fixture
def quarto(tmp_path):
    "A stand-in for Quarto, first on the PATH; it notes its call in a file."
    program = tmp_path / "bin" / "quarto"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, log=str(tmp_path / "call.json")))
    program.chmod(0o755)
    return {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}, lambda: json.loads((tmp_path / "call.json").read_text())


def test_quarto_renders_the_prepared_pages_and_the_site_moves_into_place(repository, unrendered, quarto):
    environment, call = quarto
    (repository / "_docs").mkdir(exist_ok=True)
    (repository / "_docs" / "stale.html").touch()
    done = site(repository, **environment)
    assert done.returncode == 0, done.stderr
    assert call()["arguments"] == ["render", "--no-cache"] and Path(call()["folder"]) == (repository / "_proc").resolve()
    assert (repository / "_docs" / "index.html").read_text() == "rendered" and not (repository / "_docs" / "stale.html").exists()
    assert done.stdout.strip().splitlines()[-1] == f"Site: {(repository / '_docs' / 'index.html').resolve()}"
    check_configuration(repository / "_proc")                                  # without runs, the navigation is whole too
    assert not (repository / "_proc" / "runs").exists()


def test_nbdev_docs_works_for_those_who_expect_it(repository, unrendered, quarto):
    environment, call = quarto
    done = subprocess.run([sys.executable, "-c", "from nbdev.quarto import nbdev_docs; nbdev_docs()"], cwd=repository, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(repository), **environment}, timeout=600)
    assert done.returncode == 0, done.stderr
    assert call()["arguments"] == ["render", "--no-cache"] and "00_basics.ipynb" in call()["pages"]
    assert (repository / "_docs" / "index.html").read_text() == "rendered"
    assert (repository / "_quarto.yml").read_text() == (ROOT / "_quarto.yml").read_text()      # nbdev left it alone


def test_outside_the_repository_a_sentence(tmp_path):
    done = site(tmp_path, PYTHONPATH=str(ROOT))
    assert is_refusal(done) and "clone it" in done.stderr


def test_a_folder_without_runs_is_refused(repository, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "missing"):
        done = site(repository, "--runs", folder)
        assert is_refusal(done), done.stderr


def test_workflows_are_yaml_and_run_what_there_is():
    for name, wanted in (("test.yaml", "bash tests/run"), ("deploy.yaml", "fa_nb site")):
        workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        assert any(wanted in step.get("run", "") for step in steps)
        assert all(("uses" in step) != ("run" in step) for step in steps)
