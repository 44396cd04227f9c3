"""The model server of rooda/modelserver, by the name the tests know; run as a file it serves a scenario."""

from rooda.modelserver.__main__ import main
from rooda.modelserver.server import APIS, MODELS, NOTHING_FITS, Cut, Handler, ModelServer, route

__all__ = ["APIS", "MODELS", "NOTHING_FITS", "Cut", "Handler", "ModelServer", "route"]

if __name__ == "__main__":
    main()
