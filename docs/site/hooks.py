"""What mkdocs.yml cannot say: pages that docs/site/pages.py wrote, links out of docs/, and details of the HTML."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = Path("build/site-pages")
NOT_PAGES = "source"  # for mkdocstrings


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the written pages of a folder where the nav names the folder."""
    if not PAGES.is_dir():
        raise PluginError(f"{PAGES} does not exist. `make site` writes it before it builds the site.")
    config.nav = _with_folders(config.nav)
    return config


def _with_folders(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_with_folders(each) for each in entry]
    if isinstance(entry, dict):
        return {title: _with_folders(value) for title, value in entry.items()}
    if not entry.endswith("/"):
        return entry.replace(".ipynb", ".md")
    written = sorted((PAGES / entry).glob("*.md"), key=lambda path: (path.stem != "index", path.stem))
    return [path.relative_to(PAGES).as_posix() for path in written]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the written pages."""
    for path in sorted(PAGES.rglob("*")):
        name = path.relative_to(PAGES)
        if path.is_file() and name.parts[0] != NOT_PAGES:
            files.append(File.generated(config, name.as_posix(), abs_src_path=str(path.resolve())))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files outside docs/ lead to the repository, links to notebooks to their pages."""
    if not page.file.src_uri.startswith("notebooks/"):
        markdown = markdown.replace(".ipynb)", ".md)")

    def link(found: re.Match) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), found[1]))
        if target.startswith("docs/"):
            return found[0]
        if not Path(target).exists():
            raise PluginError(f"{page.file.src_uri}: the link {found[1]} leads to {target}, which does not exist.")
        return f"]({config.extra['repository']}/blob/main/{target}{found[2] or ''})"

    return re.sub(r"\]\((?![a-z]+:)([^)#]*\.\./[^)#]+)(#[^)]*)?\)", link, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A picture opens in full, as on GitHub; a line does not end within an option such as --out."""
    html = re.sub(r'<img [^>]*src="([^"]*/pictures/[^"]*)"[^>]*>', r'<a href="\1">\g<0></a>', html)

    def unbroken(code: re.Match) -> str:
        return re.sub(r"(?<![\w-])--?\w[\w-]*", r'<span class="option">\g<0></span>', code[0])

    return re.sub(r"(?<!<pre>)<code>[^<]*</code>", unbroken, html)
