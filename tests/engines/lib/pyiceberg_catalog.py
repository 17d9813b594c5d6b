"""PyIceberg configured by what `tidewater connect pyiceberg` prints: a `.pyiceberg.yaml`, read from a folder of its own."""

import os


def load(server, **changes):
    """The catalog the printed file names. Storage keys come vended, unless `changes` to its properties say otherwise."""
    home = server.folder / "pyiceberg-home"
    home.mkdir(exist_ok=True)
    printed = server.connect("pyiceberg")
    if any(key in printed for key in ("s3.access-key-id", "s3.secret-access-key")):
        raise AssertionError("storage keys are printed")
    (home / ".pyiceberg.yaml").write_text(printed)
    os.environ["PYICEBERG_HOME"] = str(home)
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    config = Config()
    (name,) = config.get_known_catalogs()
    return load_catalog(name, **{**config.get_catalog_config(name), **changes})
