"""Label Studio's own server, which `make engines` installs, on a free port with an empty data folder."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

PROGRAM = Path(__file__).parents[2] / ".engines" / "label-studio" / "bin" / "label-studio"
OWNER = "owner@example.com"
PASSWORD = "correct-horse-7"
SECONDS = 240  # that a start may take: it makes the tables of its database first
CHOICES = """<View><Text name="text" value="$text"/>
<Choices name="kind" toName="text" choice="single">{}</Choices></View>"""
# nothing is sent to anybody; models on this machine may be asked for predictions, as docs/serving.md says
SETTINGS = {
    "COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "",
    "USE_DEFAULT_BANNED_SUBNETS": "false",
    "USER_ADDITIONAL_BANNED_SUBNETS": "0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,169.254.0.0/16,172.16.0.0/12,192.168.0.0/16,"
    "::ffff:0:0/96,64:ff9b::/96,fc00::/7,fe80::/10",
}  # fmt: skip


@dataclass
class User:
    """A user as the API knows them: everything is asked with their own token."""

    url: str
    email: str
    id: int
    token: str  # a personal access token
    http: httpx.Client
    renewed: float = field(default=-1e9, repr=False)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """A request whose response may be an error."""
        if time.monotonic() - self.renewed > 200:  # access tokens hold for 300 seconds
            answer = self.http.post("/api/token/refresh/", json={"refresh": self.token})
            self.http.headers["Authorization"] = f"Bearer {answer.raise_for_status().json()['access']}"
            self.renewed = time.monotonic()
        return self.http.request(method, path, **options)

    def json(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """The content of a response that is not an error."""
        response = self.ask(method, path, json=body, params=params)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text[:500]}"
        return response.json() if response.content else None

    def next_task(self, project: int, view: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The task that the server hands out, of the project or of a view of the Data Manager; None if none is left."""
        if view is None:
            response = self.ask("GET", f"/api/projects/{project}/next")
        else:  # as the button "Label Tasks As Displayed" does
            where = {"id": "next_task", "project": project, "tabID": view["id"]}
            shown = {key: view["data"][key] for key in ("filters", "ordering") if key in view["data"]}
            body = {"selectedItems": {"all": True, "excluded": []}, **shown}
            response = self.ask("POST", "/api/dm/actions", params=where, json=body)
        if response.status_code == 404:
            return None
        assert response.is_success, response.text[:500]
        return response.json()

    def choose(self, task: int, label: str | None, seconds: float = 5.0, **more: Any) -> dict[str, Any]:
        """Answers a task of `CHOICES`; None skips it."""
        choice = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        body = {"result": [] if label is None else [choice], "was_cancelled": label is None, "lead_time": seconds}
        return self.json("POST", f"/api/tasks/{task}/annotations/", {**body, **more})


@dataclass
class LabelStudio:
    """A server that runs."""

    url: str
    owner: User
    folder: Path
    users: list[User]

    def user(self, email: str) -> User:
        """Signs a user up, who belongs to the owner's organization, and gives them a personal access token."""
        self.users.append(sign_in(self.url, email, "signup"))
        return self.users[-1]

    def project(self, config: str, tasks: list[dict[str, Any]], title: str = "Pets", **settings: Any) -> int:
        """Makes a project of the owner's with these tasks, such as `{"data": {"text": "…"}}`; its number."""
        made = self.owner.json("POST", "/api/projects/", {"title": title, "label_config": config, **settings})
        if tasks:
            self.owner.json("POST", f"/api/projects/{made['id']}/import", tasks)
        return int(made["id"])


def sign_in(url: str, email: str, way: str) -> User:
    """A user who signs in ("login") or up ("signup") as with a browser; tokens need that once."""
    with httpx.Client(base_url=url, timeout=60) as browser:
        browser.get(f"/user/{way}/")
        form = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(f"/user/{way}/", data=form, headers={"Referer": url})
        headers = {"X-CSRFToken": browser.cookies["csrftoken"], "Referer": url}
        token = browser.post("/api/token/", headers=headers).raise_for_status().json()["token"]
        number = browser.get("/api/current-user/whoami").raise_for_status().json()["id"]
    return User(url, email, number, token, httpx.Client(base_url=url, timeout=60))


@contextmanager
def serving(folder: Path, port: int | None = None) -> Iterator[str]:
    """Starts the server, waits until it answers, and ends it; the folder's database is made, or used again."""
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LABEL_STUDIO_"))},
        **SETTINGS, "LABEL_STUDIO_BASE_DATA_DIR": str(folder), "LABEL_STUDIO_PASSWORD": PASSWORD,
    }  # fmt: skip
    command = [PROGRAM, "start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
    with open(folder / "server.log", "ab") as log:
        process = subprocess.Popen(
            [*command, "--username", OWNER], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            wait(url, process, folder / "server.log")
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def label_studio(folder: Path) -> Iterator[LabelStudio]:
    """A server with an empty database, whose owner has a token."""
    with serving(folder) as url:
        owner = sign_in(url, OWNER, "login")
        server = LabelStudio(url, owner, folder, [owner])
        yield server
        for user in server.users:
            user.http.close()


def wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until the server answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"Label Studio does not answer; its log ends:\n{log.read_text(errors='replace')[-3000:]}")
