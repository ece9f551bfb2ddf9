"""deploy/kubernetes: fit for the schemas of old and new clusters; every name, label, port and
volume finds its other end.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import DEPLOY, broken
from tests.deploy.kubernetes_faults import kubernetes_faults

SET, SERVICE, SECRET = "statefulset.yaml", "service.yaml", "secret.example.yaml"


def test_there_are_no_faults() -> None:
    assert kubernetes_faults(DEPLOY) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        (SET, "replicas: 1", "replicas: one", "StatefulSet: "),
        (SET, "terminationGracePeriodSeconds", "gracePeriodSeconds", "gracePeriodSeconds"),
        (SET, "    matchLabels: {app.kubernetes.io/name: sage}", "    matchLabels: {app: sage}", "selects no pod"),
        (SERVICE, "  selector: {app.kubernetes.io/name: sage}", "  selector: {app: sage}", "Service sage: selects no pod"),
        (SERVICE, "targetPort: metrics", "targetPort: numbers", "there is no port numbers"),
        (SERVICE, "  clusterIP: None\n", "", "not headless"),
        ("networkpolicy.yaml", "port: metrics", "port: other", "lets in other ports"),
        ("networkpolicy.yaml", "[Ingress, Egress]", "[Ingress]", "both directions"),
        ("poddisruptionbudget.yaml", "app.kubernetes.io/name: sage", "app: sage", "PodDisruptionBudget sage: selects"),
        (SET, "- {name: keys, mountPath: /var/lib/sage/keys}", "", "the volume keys is not mounted"),
        (SET, "mountPath: /var/lib/sage/keys", "mountPath: /keys", "keys are in no lasting volume"),
        (SET, "secretName: sage-settings", "secretName: other", "another secret"),
        (SET, "{key: ca.pem, path: ca.pem}", "{key: other.pem, path: ca.pem}", "the secret has no other.pem"),
        (SET, "excludes: data,keys", "excludes: data", "would be in backups"),
        (SET, "whenDeleted: Retain", "whenDeleted: Delete", "go with the pods"),
        (SET, "drop: [ALL]", "drop: [NET_RAW]", "keeps capabilities"),
        (SET, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "can change its image"),
        (SET, "fsGroupChangePolicy: OnRootMismatch", "fsGroupChangePolicy: Always", "keys would become readable"),
        (SET, "automountServiceAccountToken: false", "automountServiceAccountToken: true", "token of the cluster"),
        (SET, "timeoutSeconds: 30", "timeoutSeconds: 20", "livenessProbe is cut off"),
        (SET, "readinessProbe:", "readinessProbe:\n            tcpSocket: {port: grpc}\n          x-probe:", "x-probe"),
        (SET, "exec: {command: [sage, health", "exec: {command: [sage, run", "no readinessProbe"),
        (SET, "replicas: 1", "replicas: 2", "more than one server"),
        (SET, "containerPort: 9464", "containerPort: 9465", "port metrics is not the one"),
        (SECRET, "metrics_address: 0.0.0.0:9464", "metrics_adress: 0.0.0.0:9464", "SETTINGS_KEY_UNKNOWN"),
        (SECRET, "cert_file: /etc/sage/server.pem", "cert_file: /etc/other.pem", "/etc/other.pem is not mounted"),
        (SECRET, "key_file: /var/lib/sage/ledger.key", "key_file: /tmp/ledger.key", "key is in no lasting volume"),
        ("monitoring/servicemonitor.yaml", "component: pods", "component: other", "finds no service"),
        ("monitoring/servicemonitor.yaml", "jobLabel: app.kubernetes.io/name", "jobLabel: x", "alerts ask for"),
        ("namespace.yaml", "enforce: restricted", "enforce: baseline", "not restricted"),
        ("kustomization.yaml", "  - service.yaml\n", "", "service.yaml is not applied"),
        ("kustomization.yaml", "  - service.yaml", "  - services.yaml", "there is no services.yaml"),
        ("kustomization.yaml", "newTag: 0.1.0", "newTag: latest", "not pinned"),
    ],
)  # fmt: skip
def test_each_fault_is_noticed(tmp_path: Path, file: str, old: str, new: str, fault: str) -> None:
    copy = broken(tmp_path, f"kubernetes/{file}", old, new)
    try:
        found = kubernetes_faults(copy)
    except (ValueError, StopIteration) as refused:
        found = [str(refused)]
    assert any(fault in one for one in found), found


def test_kustomize_puts_them_together() -> None:
    """Where there is a kubectl, it needs no cluster for this."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl here")
    run = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY / "kubernetes")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    made = [one for one in yaml.safe_load_all(run.stdout) if one]
    (container,) = next(one for one in made if one["kind"] == "StatefulSet")["spec"]["template"][
        "spec"
    ]["containers"]
    assert container["image"] == "sage:0.1.0"
    assert len(made) == 6
