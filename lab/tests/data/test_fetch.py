"""Downloads, from a server on this machine: whole, partial, changed, missing, and an archive that wants out."""

import hashlib
import io
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from data_sources import home_of
from tiltmeter.data.public.fetch import fetch, unpack
from tiltmeter_lab.data import sources


@pytest.fixture
def server():
    """Serves `files`; a name that starts with "half" is cut off in the middle, one with "moved/" is elsewhere."""
    files = {}
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            name = self.path.removeprefix("/")
            if name.startswith("moved/"):
                self.send_response(302)
                self.send_header("Location", f"/{name.removeprefix('moved/')}")
                self.end_headers()
                return
            body = files.get(name)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write((body or b"")[: len(body or b"") // 2 if name.startswith("half") else None])

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/", files, asked
    running.shutdown()
    running.server_close()
    thread.join()


def md5(data):
    return hashlib.md5(data).hexdigest()


def serve(monkeypatch, name, urls, data, **known):
    """The one file of a table comes from these addresses."""
    source = home_of(name)[name]
    file = replace(source.files[0], urls=tuple(urls), **known)
    monkeypatch.setitem(home_of(name), name, replace(source, files=(file,)))


def tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(data, bytes):
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            else:
                tar.addfile(info)
    return out.getvalue()


class TestFiles:
    def test_a_file_comes_whole_and_only_once(self, here, server, monkeypatch):
        base, files, asked = server
        files["german.data"] = b"A11 6\n"
        serve(monkeypatch, "german", [base + "german.data"], files, md5=md5(b"A11 6\n"))
        said = []
        assert fetch("german", said.append) == here / "german"
        assert (here / "german" / "german.data").read_bytes() == b"A11 6\n"
        assert said == [f"Downloading {base}german.data"]
        fetch("german")
        assert asked == ["/german.data"]
        assert [path.name for path in here.iterdir()] == ["german"]  # nothing left aside

    @pytest.mark.parametrize(
        ("served", "name", "found"),
        [
            ({"other": b""}, "german.data", "404"),
            ({"german.data": b"changed"}, "german.data", "incomplete or has changed: its checksum is not"),
            ({"half.data": b"A11 6\n" * 1000}, "half.data", ""),
        ],
    )
    def test_what_is_not_the_published_file_is_not_kept(self, here, server, monkeypatch, served, name, found):
        base, files, _ = server
        files.update(served)
        serve(monkeypatch, "german", [base + name], files, md5=md5(b"A11 6\n" * 1000))
        with pytest.raises(ConnectionError, match=rf"Could not download german.data .*{found}.*try later, or put it"):
            fetch("german")
        assert not list(here.rglob("*.data"))

    def test_half_a_file_is_noticed_without_a_checksum(self, here, server, monkeypatch):
        base, files, _ = server
        files["half.csv"] = b"a,b\n" + b"1,2\n" * 1000
        serve(monkeypatch, "compas", [base + "half.csv"], files)
        with pytest.raises(ConnectionError, match=r"Could not download"):
            fetch("compas")
        assert not list(here.rglob("*.csv"))

    def test_a_page_in_place_of_a_table_is_refused(self, here, server, monkeypatch):
        base, files, _ = server
        files["compas.csv"] = b"<html>We have moved.</html>"
        serve(monkeypatch, "compas", [base + "compas.csv"], files, rows=3)
        with pytest.raises(ValueError, match=r"should hold 3 rows of a table. Found 0"):
            fetch("compas")
        assert not list(here.rglob("*.csv"))

    def test_a_file_that_has_moved_is_followed_and_checked(self, here, server, monkeypatch):
        base, files, asked = server
        files["german.data"] = b"A11 6\n"
        serve(monkeypatch, "german", [base + "moved/german.data"], files, md5=md5(b"A11 6\n"))
        fetch("german")
        assert (here / "german" / "german.data").read_bytes() == b"A11 6\n"
        assert asked == ["/moved/german.data", "/german.data"]

    def test_without_a_network_there_is_one_sentence(self, here, monkeypatch):
        # Nothing listens on port 1, and names below .invalid never resolve.
        serve(monkeypatch, "german", ["http://127.0.0.1:1/a", "http://nowhere.invalid/a"], {}, md5=md5(b""))
        with pytest.raises(ConnectionError) as error:
            fetch("german")
        text = str(error.value)
        assert text.count("no connection, or an interrupted one") == 2
        assert text.endswith("try later, or put it in place by hand.")
        assert not list(here.iterdir())

    def test_a_folder_that_cannot_be_written_is_named(self, here, monkeypatch):
        (here / "file").touch()
        monkeypatch.setenv("TILTMETER_DATA", str(here / "file"))
        with pytest.raises(OSError, match=r"file should be writable. Found: .*; set TILTMETER_DATA"):
            fetch("german")

    @pytest.mark.usefixtures("here")
    def test_the_second_address_serves_where_the_first_fails(self, server, monkeypatch):
        base, files, asked = server
        files["b"] = b"A11 6\n"
        serve(monkeypatch, "german", [base + "a", base + "b"], files, md5=md5(b"A11 6\n"))
        fetch("german")
        assert asked == ["/a", "/b"]

    def test_a_wrong_file_that_is_here_is_never_overwritten(self, here, server, monkeypatch):
        base, files, asked = server
        files["german.data"] = b"A11 6\n"
        serve(monkeypatch, "german", [base + "german.data"], files, md5=md5(b"A11 6\n"))
        (here / "german").mkdir()
        (here / "german" / "german.data").write_bytes(b"mine")
        with pytest.raises(ValueError, match=r"delete it and run `tiltmeter data get german`"):
            fetch("german")
        assert (here / "german" / "german.data").read_bytes() == b"mine"
        assert asked == []

    @pytest.mark.usefixtures("here")
    def test_what_has_conditions_is_left_to_the_user(self):
        with pytest.raises(
            FileNotFoundError, match=r"'celeba' cannot be downloaded for you: its publishers provide it"
        ):
            fetch("celeba")


class TestArchives:
    def archive(self, monkeypatch, base, files, members):
        files["cifar.tar.gz"] = tar_of(members)
        source = home_of("cifar10")["cifar10"]
        archive = replace(source.archive, url=base + "cifar.tar.gz", md5=md5(files["cifar.tar.gz"]))
        sized = tuple(replace(file, size=3073) for file in source.files)
        monkeypatch.setitem(home_of("cifar10"), "cifar10", replace(source, archive=archive, files=sized))

    def test_its_files_and_no_others_are_unpacked(self, here, server, monkeypatch):
        base, files, asked = server
        members = {f"cifar-10-batches-bin/{name}.bin": bytes(3073) for name in sources.CIFAR10}
        self.archive(monkeypatch, base, files, {**members, "cifar-10-batches-bin/readme.html": b"hello"})
        assert fetch("cifar10") == here / "cifar10"
        assert sorted(p.name for p in (here / "cifar10").iterdir()) == sorted(f"{n}.bin" for n in sources.CIFAR10)
        fetch("cifar10")
        assert len(asked) == 1

    def test_a_file_that_it_lacks_or_has_wrong(self, here, server, monkeypatch):
        base, files, _ = server
        members = {f"cifar-10-batches-bin/{name}.bin": bytes(3073) for name in sources.CIFAR10[:-1]}
        self.archive(monkeypatch, base, files, members)
        with pytest.raises(ValueError, match=r"archive of cifar10 should hold test_batch.bin. Found none"):
            fetch("cifar10")
        self.archive(monkeypatch, base, files, {**members, "cifar-10-batches-bin/test_batch.bin": b"short"})
        with pytest.raises(ValueError, match=r"should hold 3,073 bytes. Found 5"):
            fetch("cifar10")
        assert not list(here.rglob("*.bin"))

    def test_waterbirds_with_its_folders(self, here, server, monkeypatch):
        base, files, _ = server
        files["w.tar.gz"] = tar_of({"top/metadata.csv": b"img_filename\na\n", "top/001.Gull/1.jpg": b"x"})
        source = home_of("waterbirds")["waterbirds"]
        monkeypatch.setitem(
            home_of("waterbirds"), "waterbirds", replace(source, archive=sources.Archive(base + "w.tar.gz", whole=True))
        )
        fetch("waterbirds")
        assert (here / "waterbirds" / "001.Gull" / "1.jpg").read_bytes() == b"x"

    @pytest.mark.parametrize("name", ["../out", "top/../../out", "/out", "top\\..\\out", "C:out"])
    def test_a_name_that_leads_out(self, tmp_path, name):
        (tmp_path / "a.tar.gz").write_bytes(tar_of({name: b"x"}))
        with pytest.raises(ValueError, match=r"should unpack into its own folder. Found"):
            unpack(tmp_path / "a.tar.gz", tmp_path / "in")
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
    def test_a_link_or_a_device(self, tmp_path, kind):
        info = tarfile.TarInfo("top/link")
        info.type, info.linkname = kind, "/etc/passwd"
        (tmp_path / "a.tar.gz").write_bytes(tar_of({"top/link": info}))
        with pytest.raises(ValueError, match=r"only files and folders. Found 'top/link', a link or device"):
            unpack(tmp_path / "a.tar.gz", tmp_path / "in")

    def test_half_an_archive(self, tmp_path):
        whole = tar_of({"top/a": bytes(range(256)) * 4000})
        (tmp_path / "a.tar.gz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"should be a complete tar file"):
            unpack(tmp_path / "a.tar.gz", tmp_path / "in")


class TestLimits:
    def test_an_archive_that_grows_beyond_measure_is_refused(self, tmp_path, monkeypatch):
        import tarfile

        from tiltmeter.data.public import fetch as module

        monkeypatch.setattr(module, "LEAST_BYTES", 1000)
        with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as tar:
            (tmp_path / "zeros").write_bytes(bytes(10**6))
            tar.add(tmp_path / "zeros", "top/zeros")
        with pytest.raises(ValueError, match=r"bomb.tar.gz should unpack to at most 200 times its size"):
            module.unpack(tmp_path / "bomb.tar.gz", tmp_path / "out")
        assert not (tmp_path / "out" / "zeros").exists()

    @pytest.mark.parametrize(
        ("came", "size", "said", "refused"),
        [
            ("https://here.invalid/a", 10, [], None),
            ("https://there.invalid/a", 10, ["Redirected from here.invalid to there.invalid"], None),
            ("http://here.invalid/a", 10, [], "redirected from https to http"),
            ("https://here.invalid/a", 200, [], "larger than 100 bytes"),
        ],
    )
    def test_redirects_are_named_and_sizes_limited(self, tmp_path, monkeypatch, came, size, said, refused):
        import requests

        from tiltmeter.data.public.fetch import Download

        class Answer:
            url = came

            def __enter__(self):
                return self

            def __exit__(self, *args):
                return None

            def raise_for_status(self):
                return None

            def iter_content(self, _):
                return iter([bytes(size)])

        monkeypatch.setattr(requests, "get", lambda *args, **settings: Answer())
        heard = []
        download = Download(heard.append, most=100)
        if refused is None:
            download("https://here.invalid/a", tmp_path / "a", None)
            assert (tmp_path / "a").stat().st_size == size
        else:
            with pytest.raises(OSError, match=refused):
                download("https://here.invalid/a", tmp_path / "a", None)
        assert heard == said
