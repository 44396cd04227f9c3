"""`python -m benchmarks.peers install`: get the peers from their registries; `list`: which there are."""

import sys

from benchmarks.peers.install import folder, installed
from benchmarks.peers.rows import PEERS
from benchmarks.peers.today import TOOLS


def main() -> int:
    if sys.argv[1:] not in (["install"], ["list"]):
        print(__doc__, file=sys.stderr)
        return 2
    missing = 0
    for peer in (*PEERS, *TOOLS):
        if sys.argv[1] == "list":
            print(f"{peer.name} {peer.version} ({peer.registry})")
            continue
        found = installed(peer)
        missing += not found.command
        print(f"{peer.name}: {found.version} in {folder(peer)}" if found.command else f"{peer.name}: {found.why}")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
