"Packaging: everything that matters is read from settings.ini, nbdev's single place for it."
from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup

settings = ConfigParser(delimiters=["="])
settings.read("settings.ini", encoding="utf-8")
cfg = settings["DEFAULT"]

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    license="Apache-2.0",
    keywords=cfg["keywords"],
    python_requires=f">={cfg['min_python']}",
    packages=find_packages(include=["fa_nb", "fa_nb.*"]),
    include_package_data=True,
    package_data={"fa_nb": ["notebooks/*.ipynb", "presets/*.yaml", "reference/*.json"]},
    install_requires=cfg["requirements"].split(),
    extras_require={"dev": cfg["dev_requirements"].split()},
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    zip_safe=False,
)
