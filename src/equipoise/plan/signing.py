"""Signatures over plans and evidence: who answers for them, and since when.

A signature file is a DSSE envelope around an in-toto statement, signed with Ed25519. Its subjects
are digests: of a plan before it is run; or of the evidence, the plan behind it, the file with the
rows and the page. A time-stamp (RFC 3161) of the signature file, if somebody fetched one, stands
beside it in ``NAME.tsr``; nothing is fetched here.
"""

import base64
import binascii
import contextlib
import datetime
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise._files import LONGEST, read_bytes
from equipoise.cells.ledger import Ledger
from equipoise.errors import EquipoiseError
from equipoise.findings.evidence import Evidence
from equipoise.plan.plan import Plan

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:equipoise:audit:1"
PAYLOAD = "application/vnd.in-toto+json"
#: Bytes; a signature file is small.
LIMIT = 1_000_000
#: The subject that is no file: what a plan says, whatever its layout.
PLAN = "plan"
#: Seconds by which clocks may differ.
_APART = 300

# --- Keys ---


def new_key() -> tuple[bytes, bytes]:
    """A fresh pair of keys, private and public, as PEM."""
    with _needed():
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


def private_key(path: str | Path, password: str | None = None) -> "Ed25519PrivateKey":
    """The private key in a file, as OpenSSL or OpenSSH writes them."""
    with _needed():
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    data, secret = _bytes(path, "key"), password.encode() if password else None
    ssh = b"OPENSSH PRIVATE KEY" in data
    read = form.load_ssh_private_key if ssh else form.load_pem_private_key
    with _key_errors(path, "a private key"):
        key = read(data, secret)
    if not isinstance(key, Ed25519PrivateKey):
        raise EquipoiseError(f"{str(path)!r} holds another kind of key; Ed25519 is needed.")
    return key


def public_key(path: str | Path) -> "Ed25519PublicKey":
    """The public key in a file; that of a private key if it holds one."""
    with _needed():
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    data = _bytes(path, "key")
    if b"PRIVATE KEY" in data:
        return private_key(path).public_key()
    read = form.load_ssh_public_key if data.startswith(b"ssh-") else form.load_pem_public_key
    with _key_errors(path, "a public key"):
        key = read(data)
    if not isinstance(key, Ed25519PublicKey):
        raise EquipoiseError(f"{str(path)!r} holds another kind of key; Ed25519 is needed.")
    return key


def key_id(key: "Ed25519PublicKey") -> str:
    """What a key is called: the SHA-256 digest of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


@contextlib.contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise EquipoiseError(
            "Signatures need a package that is not installed: pip install 'equipoise[sign]'."
        ) from error


@contextlib.contextmanager
def _key_errors(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except EquipoiseError:
        raise
    except Exception as error:
        # what is wrong with a key is told in many ways, some of which quote it
        raise EquipoiseError(
            f"{str(path)!r} cannot be read as {what} ({type(error).__name__}). Expected is an "
            "Ed25519 key as `equipoise keygen`, OpenSSL or ssh-keygen write it, without a "
            "passphrase."
        ) from None


# --- Statements ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a signature file says, once its signature was found to be right."""

    signer: str
    """The key's id."""
    signed: str
    """When, as the signer states it."""
    subjects: Mapping[str, str]
    """SHA-256 digests by name."""
    predicate: Mapping[str, Any]
    """What else is stated: seal, verdict and title."""
    stamped: str | None = None
    """When, as a time-stamp shows it; None without one."""
    stamp_checked: bool = False
    """Whether the time-stamp's own signature was checked with a certificate."""

    @property
    def moment(self) -> str:
        """The best known time of signing."""
        return self.stamped or self.signed

    def words(self) -> str:
        """Who signed, and when."""
        how = "" if self.stamped is None else ", time-stamped"
        if self.stamped is not None and not self.stamp_checked:
            how += " by an authority whose certificate was not given"
        return f"key {self.signer[:16]}… on {self.moment}{how}"


def sign_evidence(
    path: str | Path, key: "Ed25519PrivateKey", *, page: str | Path | None = None
) -> str:
    """A signature file for evidence: over it, its plan, the file with the rows, and a page."""
    data = _bytes(path, "evidence")
    evidence = Evidence.load(path)
    subjects = {Path(path).name: hashlib.sha256(data).hexdigest()}
    if evidence.plan_hash is not None:
        subjects[PLAN] = evidence.plan_hash
    if evidence.input is not None:
        subjects[f"input:{evidence.input['name']}"] = evidence.input["sha256"]
    if page is not None:
        subjects[Path(page).name] = hashlib.sha256(_bytes(page, "page")).hexdigest()
    stated = {"title": evidence.title, "verdict": str(evidence.verdict), "seal": evidence.seal}
    return _envelope(subjects, {"stage": "evidence", **stated}, key)


def sign_ledger(path: str | Path, key: "Ed25519PrivateKey") -> str:
    """A signature file for a ledger as it is: over its last entry, and so over all before it."""
    ledger = Ledger.open(path)
    if ledger.problems():
        raise EquipoiseError(f"{Path(path).name} was changed; `equipoise monitor verify` says how.")
    digests = ledger.digests()
    stated = {"stage": "ledger", "batches": len(digests) - 1}
    return _envelope({Path(path).name: digests[-1]}, stated, key)


def left_out(ledger: Ledger, signature: Signature) -> list[str]:
    """What a signature of a ledger covers and is not there any more; later batches may be."""
    if signature.predicate.get("stage") != "ledger":
        return ["what was signed is no ledger"]
    digests, said = ledger.digests(), signature.predicate.get("batches")
    place = said if isinstance(said, int) and 0 <= said < len(digests) else -1
    if place >= 0 and digests[place] in signature.subjects.values():
        return []
    return [
        f"the ledger was signed with {said} batches, and its first {said} are not those: entries "
        "were changed, left out or put in"
    ]


def sign_plan(path: str | Path, key: "Ed25519PrivateKey") -> str:
    """A signature file for a plan, to be made before it is run."""
    plan = Plan.load(path)
    subjects = {
        PLAN: plan.hash,
        Path(path).name: hashlib.sha256(_bytes(path, "plan")).hexdigest(),
    }
    return _envelope(subjects, {"stage": "plan", "title": plan.title}, key)


def _envelope(
    subjects: Mapping[str, str], predicate: Mapping[str, object], key: "Ed25519PrivateKey"
) -> str:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": n, "digest": {"sha256": d}} for n, d in subjects.items()],
        "predicateType": PREDICATE,
        "predicate": {**predicate, "signed": now},
    }
    payload = json.dumps(statement, sort_keys=True, ensure_ascii=False).encode()
    made = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(_framed(payload))).decode(),
            }
        ],
    }
    return json.dumps(made, indent=1) + "\n"


def _framed(payload: bytes) -> bytes:
    """The bytes that are signed, as DSSE frames them: no payload can pass for another type."""
    kind = PAYLOAD.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def read_signature(
    path: str | Path,
    key: "Ed25519PublicKey",
    *,
    stamp: str | Path | None = None,
    authority: str | Path | None = None,
    within: Path | None = None,
) -> Signature:
    """A signature file whose signature is the key's; anything else is an error.

    ``stamp`` is the time-stamp response; by default the file ``NAME.tsr`` beside it, if it exists.
    ``within`` is the folder in which the signature must lie, if it came with what is signed.
    """
    data, called = _bytes(path, "signature", within), Path(path).name
    payload, signatures = _opened(data, called)
    if not any(_is_signed(payload, sig, key) for sig in signatures):
        raise EquipoiseError(
            f"{called} was not signed by the key {key_id(key)[:16]}…, or was changed afterwards."
        )
    subjects, predicate = _statement(payload, called)
    beside = Path(f"{path}.tsr")
    found = Path(stamp) if stamp is not None else beside if os.path.lexists(beside) else None
    folder = beside.parent if stamp is None else None
    stamped = None
    if found is not None:
        stamped = time_of_stamp(_bytes(found, "time-stamp", folder), data, authority)
    return Signature(
        signer=key_id(key),
        signed=str(predicate.get("signed")),
        subjects=subjects,
        predicate=predicate,
        stamped=stamped,
        stamp_checked=stamped is not None and authority is not None,
    )


def quoted_signature(path: str | Path, evidence: str | Path) -> str:
    """What a page quotes of a signature: its key and time. Whose key it is, a reader must know."""
    data, called = _bytes(path, "signature"), Path(path).name
    payload, signatures = _opened(data, called)
    subjects, predicate = _statement(payload, called)
    if hashlib.sha256(_bytes(evidence, "evidence")).hexdigest() not in subjects.values():
        raise EquipoiseError(f"{called} is a signature of something else than this evidence.")
    keys = ", ".join(sorted({str(one.get("keyid")) for one in signatures}))
    return f"{keys}, on {predicate.get('signed')}; check with equipoise verify --signer"


def _opened(data: bytes, called: str) -> tuple[bytes, list[Mapping[str, object]]]:
    wrong = EquipoiseError(f"{called} is no signature file, such as `equipoise sign` writes.")
    try:
        made = json.loads(data)
        if made["payloadType"] != PAYLOAD or not isinstance(made["signatures"], list):
            raise wrong
        signatures: list[Mapping[str, Any]] = [
            one for one in made["signatures"] if isinstance(one, dict)
        ]
        return base64.b64decode(made["payload"], validate=True), signatures
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise wrong from error


def _is_signed(payload: bytes, signature: Mapping[str, object], key: "Ed25519PublicKey") -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(str(signature["sig"]), validate=True), _framed(payload))
    except (InvalidSignature, binascii.Error, KeyError, TypeError, ValueError):
        return False
    return True


def _statement(payload: bytes, called: str) -> tuple[dict[str, str], Mapping[str, Any]]:
    try:
        made = json.loads(payload)
        known = made["_type"] == STATEMENT and made["predicateType"] == PREDICATE
        subjects = {str(one["name"]): str(one["digest"]["sha256"]) for one in made["subject"]}
        predicate = dict(made["predicate"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EquipoiseError(f"{called} does not state what a signature of ours does.") from error
    if not known or len(subjects) < len(made["subject"]):
        raise EquipoiseError(f"{called} states something else than an audit of equipoise.")
    return subjects, predicate


def not_covered(
    path: str | Path, evidence: Evidence, signature: Signature
) -> Iterator[tuple[str, object, object]]:
    """What a signature of evidence does not cover or contradicts: what, stated, signed."""
    own = hashlib.sha256(_bytes(path, "evidence")).hexdigest()
    if signature.predicate.get("stage") != "evidence" or own not in signature.subjects.values():
        yield "evidence", f"SHA-256 {own}", "not among what was signed"
    if evidence.plan_hash != signature.subjects.get(PLAN):
        yield "plan", evidence.plan_hash, signature.subjects.get(PLAN)
    if evidence.input is not None:
        digest = evidence.input["sha256"]
        signed = signature.subjects.get(f"input:{evidence.input['name']}")
        if signed != digest:
            yield "input", digest, signed
    stated = {"title": evidence.title, "verdict": str(evidence.verdict), "seal": evidence.seal}
    for name, said in stated.items():
        if signature.predicate.get(name) != said:
            yield f"signed {name}", said, signature.predicate.get(name)
    latest = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=_APART)
    if _later(signature.signed, latest.isoformat()):
        yield "signed", "not yet", signature.signed
    if _later(evidence.created, signature.moment):
        yield "created", evidence.created, f"signed before, on {signature.moment}"
    for name, digest in signature.subjects.items():
        file = Path(path).parent / Path(name).name
        if name == PLAN or name.startswith("input:") or digest == own:
            continue
        try:
            found = f"SHA-256 {hashlib.sha256(_bytes(file, 'page', file.parent)).hexdigest()}"
        except EquipoiseError as error:
            found = f"not read: {error}" if os.path.lexists(file) else "not there"
        if found != f"SHA-256 {digest}":
            yield name, found, digest


def too_late(evidence: Evidence, signature: Signature) -> Iterator[tuple[str, object, object]]:
    """Why a signature of the plan does not show that the plan came first."""
    if signature.predicate.get("stage") != "plan":
        yield "signature of the plan", signature.predicate.get("stage"), "plan"
    if signature.subjects.get(PLAN) != evidence.plan_hash:
        yield "signed plan", evidence.plan_hash, signature.subjects.get(PLAN)
    if _later(signature.moment, evidence.created):
        yield "created", evidence.created, f"the plan was signed later, on {signature.moment}"


def _later(one: str, other: str) -> bool:
    """Whether one moment lies after another; what is no moment lies after everything."""
    try:
        first, second = (datetime.datetime.fromisoformat(text) for text in (one, other))
        return first > second
    except (ValueError, TypeError):
        return True


# --- Time-stamps: a response of RFC 3161, read and checked ---

_SIGNED_DATA = "1.2.840.113549.1.7.2"
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE, _MESSAGE_DIGEST = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4"
_HASHES = {
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}

Node = tuple[int, bytes, bytes]
"""Tag, content, and all bytes of a value of ASN.1."""


def time_of_stamp(response: bytes, data: bytes, authority: str | Path | None = None) -> str:
    """The time at which ``data`` existed, by a response of a time-stamping authority.

    With the authority's certificate its signature is checked too.
    """
    try:
        status, *token = _parts(_only(response)[1])
        if int.from_bytes(_parts(status[1])[0][1], "big") > 1 or not token:
            raise EquipoiseError("The time-stamp was refused by the authority; ask for another.")
        kind, wrapped = _parts(token[0][1])
        signed = _parts(_only(wrapped[1])[1])
        content = _parts(signed[2][1])
        info = _only(content[1][1])[1]
        if (_oid(kind[1]), _oid(content[0][1])) != (_SIGNED_DATA, _TST_INFO):
            raise EquipoiseError("The time-stamp holds something else than a time-stamp.")
        fields = _parts(_only(info)[1])
        algorithm, imprint = _parts(fields[2][1])
        said = _hash(algorithm[1], data)
        if imprint[1] != said:
            raise EquipoiseError("The time-stamp is of another file than this signature.")
        _check_signer(_parts(_parts(signed[-1][1])[0][1]), info, authority)
        return _time(fields[4][1].decode("ascii"))
    except (IndexError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise EquipoiseError(
            "The time-stamp is no response of RFC 3161 that can be read; expected is the file that "
            "`openssl ts -query … | curl …` gives."
        ) from error


def _check_signer(signer: Sequence[Node], info: bytes, authority: str | Path | None) -> None:
    attributes = next(part for part in signer if part[0] == 0xA0)
    signature = next(part[1] for part in signer[signer.index(attributes) :] if part[0] == 0x04)
    digest = _parts(signer[2][1])[0][1]
    held = {}
    for attribute in _parts(attributes[1]):
        name, values = _parts(attribute[1])
        held[_oid(name[1])] = _only(values[1])[1]
    if _oid(held[_CONTENT_TYPE]) != _TST_INFO:
        raise EquipoiseError("The time-stamp's signature is of something else.")
    if held[_MESSAGE_DIGEST] != hashlib.new(_HASHES[_oid(digest)], info).digest():
        raise EquipoiseError("The time-stamp was changed after it was signed.")
    if authority is not None:
        # what is signed is the set itself, not the place in which it stands
        _check_certificate(authority, b"\x31" + attributes[2][1:], signature, _HASHES[_oid(digest)])


def _check_certificate(path: str | Path, text: bytes, signature: bytes, digest: str) -> None:
    with _needed():
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    with _key_errors(path, "a certificate"):
        certificate = x509.load_pem_x509_certificate(_bytes(path, "certificate"))
        found = [e.value for e in certificate.extensions if e.oid == x509.ExtendedKeyUsage.oid]
    if not any(x509.oid.ExtendedKeyUsageOID.TIME_STAMPING in uses for uses in found):
        raise EquipoiseError(
            f"{str(path)!r} is no certificate for time-stamps, such as that of the authority that "
            "issues them. Pass the certificate with which the time-stamp itself was signed."
        )
    key, chosen = certificate.public_key(), getattr(hashes, digest.upper())()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, text, padding.PKCS1v15(), chosen)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, text, ec.ECDSA(chosen))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, text)
        else:
            raise EquipoiseError(f"{str(path)!r} holds a kind of key that is not known here.")
    except InvalidSignature:
        raise EquipoiseError(
            f"The time-stamp was not signed with the certificate {str(path)!r}."
        ) from None


def _only(data: bytes) -> Node:
    """The first value of ASN.1 in some bytes."""
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, at = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
        if not 1 <= size <= 4:
            raise ValueError("length")
    if len(data) < at + length:
        raise ValueError("cut short")
    return tag, data[at : at + length], data[: at + length]


def _parts(data: bytes) -> list[Node]:
    found = []
    while data:
        found.append(_only(data))
        data = data[len(found[-1][2]) :]
    return found


def _oid(data: bytes) -> str:
    numbers, value = [], 0
    for byte in data:
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _hash(algorithm: bytes, data: bytes) -> bytes:
    return hashlib.new(_HASHES[_oid(_only(algorithm)[1])], data).digest()


def _time(text: str) -> str:
    whole = text.rstrip("Z").split(".")[0]
    moment = datetime.datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)
    return moment.isoformat(timespec="seconds")


def _bytes(path: str | Path, what: str, within: Path | None = None) -> bytes:
    most = LONGEST if what in ("evidence", "page", "plan", "ledger") else LIMIT
    return read_bytes(path, what, most=most, within=within)
