"""What is wrong with deploy/kubernetes, as sentences; nothing where all is well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from ptkstore.settings import Settings
from tests.deploy.files import read, read_all

__all__ = ["VERSIONS", "kubernetes_faults"]

# The oldest and the newest cluster that the manifests are checked for.
VERSIONS = ("1.29", kubernetes_validate.latest_version())

Manifest = dict[str, Any]


def kubernetes_faults(deploy: Path) -> list[str]:
    """Every fault; manifests that do not fit their schema end the search."""
    folder = deploy / "kubernetes"
    listed = read(folder / "kustomization.yaml")["resources"]
    applied = read_all(*(folder / name for name in listed if (folder / name).exists()))
    secrets = read_all(folder / "secret.example.yaml")
    wrong = [
        fault
        for one in (*applied, *secrets)
        for version in VERSIONS
        for fault in _schema(one, version)
    ]
    wrong += [
        f"kustomization: there is no {name}" for name in listed if not (folder / name).exists()
    ]
    if wrong:
        return wrong
    by_kind = {one["kind"]: one for one in applied}
    stateful = by_kind["StatefulSet"]
    monitor = read(folder / "monitoring/servicemonitor.yaml")
    return [
        *_files(folder, listed),
        *_labels(applied, stateful),
        *_ports(applied, stateful, monitor),
        *_volumes(stateful, secrets[0]),
        *_hardening(stateful, by_kind["Namespace"]),
        *_settings(secrets[0], stateful),
        *_monitor(monitor, applied),
        *_names(applied, folder),
    ]


def _schema(manifest: Manifest, version: str) -> Iterator[str]:
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{manifest.get('kind')}: {error.message}"


def _files(folder: Path, listed: list[str]) -> Iterator[str]:
    there = {one.name for one in folder.glob("*.yaml")} - {
        "kustomization.yaml",
        "secret.example.yaml",
    }
    for name in there - set(listed):
        yield f"kustomization: {name} is not applied"


def _labels(applied: list[Manifest], stateful: Manifest) -> Iterator[str]:
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    selectors = {
        "StatefulSet": ("selector", "matchLabels"),
        "PodDisruptionBudget": ("selector", "matchLabels"),
        "NetworkPolicy": ("podSelector", "matchLabels"),
        "Service": ("selector",),
    }
    for one in applied:
        found = one.get("spec", {})
        for key in selectors.get(one["kind"], ()):
            found = found[key]
        if one["kind"] in selectors and (not found or not found.items() <= labels.items()):
            yield f"{one['kind']} {one['metadata']['name']}: selects no pod"


def _ports(applied: list[Manifest], stateful: Manifest, monitor: Manifest) -> Iterator[str]:
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    names = {one["name"] for one in container["ports"]}
    services = {one["metadata"]["name"]: one for one in applied if one["kind"] == "Service"}
    for name, service in services.items():
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in names:
                yield f"Service {name}: there is no port {port['targetPort']}"
    governing = services.get(stateful["spec"]["serviceName"])
    if governing is None or governing["spec"].get("clusterIP") != "None":
        yield "StatefulSet: its service is not there, or not headless"
    policy = next(one for one in applied if one["kind"] == "NetworkPolicy")["spec"]
    let_in = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    if let_in != names or not all(rule.get("from") for rule in policy["ingress"]):
        yield "NetworkPolicy: lets in other ports than the server has, or everybody"
    if set(policy["policyTypes"]) != {"Ingress", "Egress"}:
        yield "NetworkPolicy: does not cover both directions"


def _volumes(stateful: Manifest, secret: Manifest) -> Iterator[str]:
    spec = stateful["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    claims = {one["metadata"]["name"] for one in stateful["spec"]["volumeClaimTemplates"]}
    volumes = {one["name"]: one for one in spec["volumes"]}
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    for name in set(mounts) ^ (claims | set(volumes)):
        yield f"StatefulSet: the volume {name} is not mounted, or not there"
    named = volumes.get("settings", {}).get("secret", {})
    if named.get("secretName") != secret["metadata"]["name"]:
        yield "StatefulSet: asks for another secret than the example"
    for item in named.get("items", []):
        if item["key"] not in secret["stringData"]:
            yield f"StatefulSet: the secret has no {item['key']}"
    store = next(one["value"] for one in container["env"] if one["name"] == "SAGE_STORE")
    if (
        mounts.get("data") != store
        or mounts.get("keys") != f"{store}/keys"
        or not {"data", "keys"} <= claims
    ):
        yield "StatefulSet: the store or its keys are in no lasting volume"
    excluded = stateful["spec"]["template"]["metadata"]["annotations"][
        "backup.velero.io/backup-volumes-excludes"
    ]
    labelled = [
        one["metadata"].get("labels", {}) for one in stateful["spec"]["volumeClaimTemplates"]
    ]
    if set(excluded.split(",")) != claims or not all(
        one.get("velero.io/exclude-from-backup") for one in labelled
    ):
        yield "StatefulSet: raw data or keys would be in backups"
    if stateful["spec"]["persistentVolumeClaimRetentionPolicy"] != {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }:
        yield "StatefulSet: the volumes go with the pods"


def _hardening(stateful: Manifest, namespace: Manifest) -> Iterator[str]:
    spec = stateful["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    own, pod = container["securityContext"], spec["securityContext"]
    if (
        own.get("capabilities") != {"drop": ["ALL"]}
        or own.get("allowPrivilegeEscalation") is not False
    ):
        yield "StatefulSet: keeps capabilities"
    if (
        not own.get("readOnlyRootFilesystem")
        or not pod.get("runAsNonRoot")
        or not pod.get("runAsUser")
    ):
        yield "StatefulSet: runs as root, or can change its image"
    if pod.get("fsGroupChangePolicy") != "OnRootMismatch":
        yield "StatefulSet: keys would become readable by a group, and be refused"
    if spec.get("automountServiceAccountToken") is not False:
        yield "StatefulSet: has a token of the cluster"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        command = container.get(probe, {}).get("exec", {}).get("command", [])
        if command[:2] != ["sage", "health"]:
            yield f"StatefulSet: no {probe}"
        elif float(command[command.index("--timeout") + 1]) >= container[probe]["timeoutSeconds"]:
            yield f"StatefulSet: the {probe} is cut off before it answers"
    if stateful["spec"]["replicas"] != 1:
        yield "StatefulSet: more than one server would write a stream"
    if namespace["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
        yield "Namespace: pods are not restricted"


def _settings(secret: Manifest, stateful: Manifest) -> Iterator[str]:
    settings = Settings.checked(
        yaml.safe_load(secret["stringData"]["sage.yaml"]), "secret.example.yaml"
    )
    settings.require_protection()
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    asked = {"grpc": settings.server.address, "metrics": str(settings.server.metrics_address)}
    for name, address in asked.items():
        if ports[name] != int(address.rpartition(":")[2]):
            yield f"StatefulSet: the port {name} is not the one in the settings"
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    files = (
        [settings.server.tls.cert_file, settings.server.tls.key_file] if settings.server.tls else []
    )
    wanted = [
        *map(str, files),
        next(one["value"] for one in container["env"] if one["name"] == "SAGE_CA_FILE"),
    ]
    items = next(
        one for one in stateful["spec"]["template"]["spec"]["volumes"] if one["name"] == "settings"
    )
    held = {f"{mounts['settings']}/{one['path']}" for one in items["secret"]["items"]}
    for one in wanted:
        if one not in held:
            yield f"StatefulSet: {one} is not mounted"
    if f"{mounts['settings']}/sage.yaml" not in held:
        yield "StatefulSet: the settings are not mounted"
    if str(settings.ledger.key_file).rpartition("/")[0] != mounts["data"]:
        yield "StatefulSet: the ledger's key is in no lasting volume"


def _monitor(monitor: Manifest, applied: list[Manifest]) -> Iterator[str]:
    wanted = monitor["spec"]["selector"]["matchLabels"]
    found = [
        one
        for one in applied
        if one["kind"] == "Service" and wanted.items() <= one["metadata"]["labels"].items()
    ]
    ports = {port["name"] for one in found for port in one["spec"]["ports"]}
    if len(found) != 1 or not {one["port"] for one in monitor["spec"]["endpoints"]} <= ports:
        yield "ServiceMonitor: finds no service with its port, or two"
    if found and found[0]["metadata"]["labels"].get(monitor["spec"]["jobLabel"]) != "sage":
        yield "ServiceMonitor: the job is not the one that the alerts ask for"


def _names(applied: list[Manifest], folder: Path) -> Iterator[str]:
    kustomization = read(folder / "kustomization.yaml")
    for one in applied:
        if (
            one["kind"] != "Namespace"
            and one["metadata"].get("namespace") != kustomization["namespace"]
        ):
            yield f"{one['kind']}: is in another namespace"
    (image,) = kustomization["images"]
    if not re.fullmatch(r"\d+(\.\d+)+", str(image["newTag"])):
        yield "kustomization: the image is not pinned"
    (container,) = next(one for one in applied if one["kind"] == "StatefulSet")["spec"]["template"][
        "spec"
    ]["containers"]
    if container["image"] != image["name"]:
        yield "kustomization: pins another image than the pods run"
