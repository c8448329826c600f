"""Stands in for docker, podman and Kubernetes where there are none: starts the sample program with what a container of the recipe
would have of libspill, its variables and mounts, paths translated to this machine's. What does not go together is an error.
usage: container.py run OPTION… IMAGE [ARG…]     as docker's and podman's own
       container.py pod FILE.yaml                a Pod: its init containers first, then each container
SAMPLE: the sample program's command.
"""
import os
import pathlib
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


def pod(path):
    import yaml  # only here: not every machine has it

    document = yaml.safe_load(pathlib.Path(path).read_text())
    if (document["apiVersion"], document["kind"]) != ("v1", "Pod"):
        raise Wrong("this is no Pod")
    if "ld.so.preload" in str(document) or "hostPath" in str(document):
        raise Wrong("the node's own files are not to be used")
    spec = document["spec"]
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
            limits = one["resources"]["limits"]
            if not any(name.endswith("/gpu") for name in limits) or "memory" not in limits:
                raise Wrong(f"{one['name']} has no GPU, or no memory for what spills")
            pod_container(one, volumes).run()


try:
    if sys.argv[1] == "run":
        docker_run(sys.argv[2:])
    else:
        pod(sys.argv[2])
except (Wrong, KeyError, subprocess.CalledProcessError) as wrong:
    print(f"{type(wrong).__name__}: {wrong}")
    sys.exit(1)
