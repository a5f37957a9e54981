"""A daemon's snapshot, written into a directory."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable

from . import npumem_pb2 as pb


def _write(directory: str, pieces: Callable[[], pb.SnapshotPiece]) -> int:
    """Writes all pieces, up to the last. Returns their number of bytes."""
    files: dict[str, int] = {}
    n_bytes = 0
    try:
        while True:
            piece = pieces()
            if not piece.file.isalpha() or not piece.file.isascii():
                raise ValueError(f"the daemon tells of a file {piece.file!r}, which no snapshot has")
            if piece.file not in files:
                path = os.path.join(directory, piece.file)
                files[piece.file] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                os.truncate(files[piece.file], piece.file_bytes)
            if piece.offset + len(piece.data) > piece.file_bytes:
                raise ValueError(f"the daemon tells of bytes behind the end of {piece.file}")
            data = piece.data
            while data:  # bytes in no piece are zero
                data = data[os.pwrite(files[piece.file], data, piece.offset + len(piece.data) - len(data)) :]
            n_bytes += len(piece.data)
            if piece.last:
                break
        for file in files.values():
            os.fsync(file)
        return n_bytes
    finally:
        for file in files.values():
            os.close(file)


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_snapshot(directory: str, begin: Callable[[], Callable[[], pb.SnapshotPiece]]) -> int:
    """Writes into a temporary folder beside `directory`, and renames it when it is complete. `begin` begins the
    snapshot and returns a function for its next piece. After an error the temporary folder is removed."""
    directory = directory.rstrip("/") or "/"
    if os.path.lexists(directory) and (not os.path.isdir(directory) or os.listdir(directory)):
        raise FileExistsError(errno.EEXIST, "not an empty directory", directory)
    parent, name = os.path.split(os.path.abspath(directory))
    partial = tempfile.mkdtemp(prefix=f"{name}.partial-", dir=parent)
    try:
        n_bytes = _write(partial, begin())
        _sync(partial)
        os.rename(partial, directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync(parent)
    return n_bytes
