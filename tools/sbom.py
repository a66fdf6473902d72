"""List what a distribution is made of and depends on, as a CycloneDX file beside it.

    python tools/sbom.py DIST

Components are the pinned and hashed ones of requirements/core.txt; the wheel and the source
archive found in the folder are named with their digests.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(requirements: str) -> list[dict[str, object]]:
    """The pinned packages of a requirements file, each with the digests of its files."""
    found: list[dict[str, object]] = []
    for block in re.split(r"\n(?=[A-Za-z0-9])", requirements):
        pin = PIN.match(block)
        if pin is None:
            continue
        name, version = pin.groups()
        found.append(
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.lower()}@{version}",
                "bom-ref": f"{name}@{version}",
                "hashes": [{"alg": "SHA-256", "content": one} for one in HASH.findall(block)],
            }
        )
    return found


def listing(dist: Path) -> dict[str, object]:
    """The whole file: the distribution, its archives and its components."""
    text = (ROOT / "src" / "equipoise" / "_version.py").read_text(encoding="utf-8")
    match = re.search(r'"([^"]+)"', text.split("=", 1)[1])
    version = match.group(1) if match else "unknown"
    archives = sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}
    pinned = components((ROOT / "requirements" / "core.txt").read_text(encoding="utf-8"))
    # the same archives give the same number, so that a second build can be compared
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(digests, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "equipoise",
                "version": version,
                "bom-ref": f"equipoise@{version}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [
                    {"name": f"sha256:{name}", "value": digest} for name, digest in digests.items()
                ],
            }
        },
        "components": pinned,
        "dependencies": [
            {"ref": f"equipoise@{version}", "dependsOn": [one["bom-ref"] for one in pinned]}
        ],
    }


def main(arguments: list[str]) -> int:
    """Write the list into the folder of the distribution."""
    dist = Path(arguments[0] if arguments else "dist")
    made = listing(dist)
    target = dist / "equipoise.cdx.json"
    target.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
