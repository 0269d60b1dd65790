"""Reads the manifests of systemd/kubernetes as kubectl does, as far as they use kustomize. Not a program."""
# not a test
import base64
import os

import yaml


def resources(folder):
    """The objects of a kustomization, each a dictionary; generated ones have their names without a hash."""
    with open(os.path.join(folder, "kustomization.yaml"), encoding="utf-8") as f:
        k = yaml.safe_load(f)
    objects = []
    for name in k["resources"]:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            objects += resources(path)
        else:
            with open(path, encoding="utf-8") as f:
                objects += list(yaml.safe_load_all(f))
    for kind, key in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for g in k.get(key, []):
            data = {}
            for file in g["files"]:
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    data[file] = f.read() if kind == "ConfigMap" else base64.b64encode(f.read().encode()).decode()
            objects.append({"apiVersion": "v1", "kind": kind, "data": data,
                            "metadata": {"name": g["name"], "namespace": g["namespace"]}})
            if "type" in g:
                objects[-1]["type"] = g["type"]
    for o in objects:
        if "namespace" in k and o["kind"] != "Namespace":
            o["metadata"]["namespace"] = k["namespace"]
    return objects


def files_of(objects, namespace, volume):
    """name → text of the files of a volume that is a ConfigMap or a Secret; None for another volume. KeyError: there is
    no such object, or no such key."""
    for kind, field, name in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")):
        if field in volume:
            wanted = (kind, namespace, volume[field][name])
            data = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o.get("data")
                    for o in objects}[wanted]
            items = volume[field].get("items") or [{"key": k, "path": k} for k in data]
            return {i["path"]: base64.b64decode(data[i["key"]]).decode() if kind == "Secret" else data[i["key"]]
                    for i in items}
    return None


def pods(objects):
    """(object, specification of its pods) of those that have pods."""
    return [(o, o["spec"]["template"]["spec"]) for o in objects if "template" in o.get("spec", {})]


def containers(spec):
    return spec.get("initContainers", []) + spec["containers"]
