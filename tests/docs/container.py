"""Stands in for docker, podman and Kubernetes where there are none: starts the sample program with what a container of the recipe
would have of libspill, its variables and mounts, paths translated to this machine's. What does not go together is an error.
usage: container.py run OPTION… IMAGE [ARG…]     as docker's and podman's own
       container.py pod FILE.yaml                a Pod, or each Pod of a Job or PyTorchJob: its init containers first, then each container
SAMPLE: the sample program's command.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


class Wrong(Exception):
    pass


class Container:
    def __init__(self, image):
        self.image, self.mounts, self.environment = image, {}, {}

    def here(self, path, writes=False):
        """Where a path of the container is on this machine."""
        for inside, (outside, read_only) in sorted(self.mounts.items(), reverse=True):
            if path == inside or path.startswith(inside.rstrip("/") + "/"):
                if writes and read_only:
                    raise Wrong(f"{path} is mounted read-only")
                return outside + path[len(inside.rstrip("/")):]
        raise Wrong(f"{path} is not mounted into {self.image}")

    def run(self):
        library = self.here(self.environment["LD_PRELOAD"])
        if not pathlib.Path(library).is_file():
            raise Wrong(f"{library} is not there")
        log = self.here(self.environment["SPILL_LOG"], writes=True)
        if not pathlib.Path(log).parent.is_dir():
            raise Wrong(f"the folder of {log} is not there")
        environment = self.environment | {"LD_PRELOAD": library, "SPILL_LOG": log}
        for name in ("LD_LIBRARY_PATH", "SPILL_SIM_VRAM"):  # the simulated GPU in place of --gpus
            environment[name] = os.environ[name]
        subprocess.run(shlex.split(os.environ["SAMPLE"]), env=environment, check=True)


def docker_run(arguments):
    container = Container("")
    gpus = False
    while arguments and arguments[0].startswith("-"):
        option, *arguments = arguments
        if option == "--rm":
            continue
        option, _, value = option.partition("=")
        if not value:
            value, *arguments = arguments
        if option in ("-v", "--volume"):
            outside, inside, *flags = value.split(":")
            if not os.path.exists(outside):
                raise Wrong(f"{outside} is not there: a daemon would make a folder of that name")
            container.mounts[inside] = (outside, "ro" in flags)
        elif option in ("-e", "--env"):
            name, _, text = value.partition("=")
            container.environment[name] = text
        elif option in ("--gpus", "--device"):
            gpus = True
        elif option not in ("--memory", "--name"):
            raise Wrong(f"{option} is not known here")
    if not arguments or not gpus:
        raise Wrong("no image, or no GPU is given")
    container.image = arguments[0]
    container.run()


def pod_container(spec, volumes):
    container = Container(spec["name"])
    container.environment = {item["name"]: item["value"] for item in spec.get("env", [])}
    for mount in spec.get("volumeMounts", []):
        if mount["name"] not in volumes:
            raise Wrong(f"there is no volume {mount['name']}")
        container.mounts[mount["mountPath"]] = (volumes[mount["name"]], mount.get("readOnly", False))
    return container


def quantity(text):
    """Bytes of a quantity of Kubernetes, 48Gi, or of an option of ours, 48GiB."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]i)B?", text).groups()
    return int(number) << 10 * (1 + "KMGT".index(unit[0]))


def check_memory(container):
    """The request is the limit, and host.limit leaves room for the program."""
    requests, limits = (container["resources"][kind] for kind in ("requests", "limits"))
    if not any(name.endswith("/gpu") for name in limits):
        raise Wrong(f"{container['name']} has no GPU")
    host_limit, = [item["value"] for item in container["env"] if item["name"] == "SPILL_HOST_LIMIT"]
    if requests["memory"] != limits["memory"] or quantity(host_limit) >= quantity(limits["memory"]):
        raise Wrong(f"{container['name']}: {requests['memory']} requested, {limits['memory']} at most, {host_limit} of it for what spills")


def run_pod(spec, variables):
    """Its init containers first, then each container, with what a controller would set for the Pod."""
    if "hostPath" in str(spec):
        raise Wrong("the node's own files are not to be used")
    with tempfile.TemporaryDirectory() as folder:
        volumes = {}
        for volume in spec["volumes"]:
            volumes[volume["name"]] = folder + "/" + volume["name"] if "emptyDir" in volume else os.getcwd() + "/" + volume["name"]
            os.makedirs(volumes[volume["name"]], exist_ok=True)
        for one in spec["initContainers"]:
            container = pod_container(one, volumes)
            # The image has the library in /opt/spill (Dockerfile).
            container.mounts["/opt/spill"] = (os.environ["IMAGE_FOLDER"], True)
            command = [container.here(word) if word.startswith("/") else word for word in one["command"]]
            subprocess.run(command, check=True)
        for one in spec["containers"]:
            check_memory(one)
            container = pod_container(one, volumes)
            container.environment |= variables
            container.run()


def pods(document):
    """(spec, variables) of each Pod that the document's controller makes."""
    kind, spec = document["kind"], document["spec"]
    if kind == "Pod":
        return [(spec, {})]
    if kind == "Job":
        return [(spec["template"]["spec"], {"JOB_COMPLETION_INDEX": str(index)} if spec["completionMode"] == "Indexed" else {})
                for index in range(spec["completions"])]
    # The operator's own variables; the first Master is rank 0.
    replicas = [group["template"]["spec"] for name in ("Master", "Worker") for group in [spec["pytorchReplicaSpecs"][name]]
                for _ in range(group["replicas"])]
    return [(one, {"RANK": str(rank), "WORLD_SIZE": str(len(replicas))}) for rank, one in enumerate(replicas)]


def pod(path):
    import jsonschema  # only here: not every machine has these
    import yaml

    document = yaml.safe_load(pathlib.Path(path).read_text())
    schema = json.loads(pathlib.Path(__file__).with_name("kubernetes.schema.json").read_text())
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if error:
        raise Wrong(f"no Pod, Job or PyTorchJob: {error.json_path}: {error.message}")
    for spec, variables in pods(document):
        run_pod(spec, variables)


try:
    if sys.argv[1] == "run":
        docker_run(sys.argv[2:])
    else:
        pod(sys.argv[2])
except (Wrong, KeyError, subprocess.CalledProcessError) as wrong:
    print(f"{type(wrong).__name__}: {wrong}")
    sys.exit(1)
