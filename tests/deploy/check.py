"""tests/deploy/check.py [LAZURITE]   Holds the files of deploy/ against each other and against the program: what can be known
without running containers. Nothing here pulls, builds or starts an image; where a Docker daemon runs, its own checks of the
Dockerfiles are asked as well, and haproxy's of its configuration where that is installed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
faults = []


def check(is_so, sentence):
    if not is_so:
        faults.append(sentence)


def check_image(image, where):
    first, _, rest = image.partition("/")
    check(not rest or ("." not in first and ":" not in first), f"{where}: {image} names the host of a registry")
    ours = image in ("lazurite", "lazurite-postgres")
    tag = image.rpartition(":")[2] if ":" in image else ""
    check(ours or tag not in ("", "latest"), f"{where}: {image} has no version")


def instructions(file):
    text = re.sub(r"\\\n", " ", "\n".join(line for line in file.read_text().splitlines() if not line.startswith("#")))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def check_dockerfile(file, context, links=()):
    lines = instructions(file)
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "CMD"}
    check({word for word, _ in lines} <= known, f"{file}: an instruction that nobody checked")
    check(lines[0][0] == "FROM" and lines[-1][0] == "CMD", f"{file}: begins with FROM and ends with CMD")
    check(yaml.safe_load(lines[-1][1]) and lines[-1][1].startswith("["), f"{file}: CMD is a list, or signals go to a shell")
    user = [rest for word, rest in lines if word == "USER"][-1]
    check(re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", user), f"{file}: runs as {user}, which Kubernetes cannot tell from root")
    after_user = [word for word, _ in lines[[word for word, _ in lines].index("USER"):]]
    check("RUN" not in after_user, f"{file}: RUN after USER")
    for word, rest in lines:
        if word == "FROM":
            check_image(rest.split()[0], file)
        if word == "COPY" and not rest.startswith("--from"):
            source = context / rest.split()[0]
            check(source.exists(), f"{file}: {source} is not there")
    everything = "\n".join(rest for _, rest in lines)
    for name in links:
        check(re.search(rf"\b{name}\b", everything), f"{file}: no link {name}")
    return lines


def environment_of(container):
    found = container.get("environment") or container.get("env") or {}
    return found if isinstance(found, dict) else {one["name"]: one.get("value", "") for one in found}


def check_program(words, environment, where, help_text):
    """Whether the program knows what it is told."""
    if help_text is None:
        return
    for word in words:
        if word.startswith("--"):
            check(f"{word.split('=')[0]} " in help_text, f"{where}: there is no {word}")
    for name in environment:
        flag = name.removeprefix("LAZURITE_").lower().replace("_", "-")
        is_ours = name.startswith("LAZURITE_") and name != "LAZURITE_DATABASE_PASSWORD"
        check(not is_ours or f"--{flag} " in help_text, f"{where}: there is no {name}")


def metadata_hosts(url):
    match = re.fullmatch(r"postgres://lazurite@([^/]+)/lazurite\?sslmode=(disable|require)", url)
    check(match, f"{url} is no address of a database")
    return match.group(1).split(",") if match else []


def check_compose(help_text):
    file = DEPLOY / "compose.yaml"
    compose = yaml.safe_load(file.read_text())
    services, volumes = compose["services"], set(compose["volumes"])
    mounted = set()
    for name, service in services.items():
        where = f"compose.yaml {name}"
        check_image(service["image"], where)
        for other in service.get("depends_on", []):
            check(other in services, f"{where}: depends on {other}, which is not there")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                check((DEPLOY / source).is_file(), f"{where}: {source} is not there")
            else:
                mounted.add(source)
        if "build" in service:
            build = service["build"]
            context = DEPLOY / (build if isinstance(build, str) else build["context"])
            dockerfile = context / ("Dockerfile" if isinstance(build, str) else build["dockerfile"])
            check(dockerfile.is_file(), f"{where}: {dockerfile} is not there")
        if service["image"] == "lazurite":
            environment = environment_of(service)
            check_program(service.get("command", []), environment, where, help_text)
            for host in metadata_hosts(environment["LAZURITE_METADATA"]):
                check(host in services, f"{where}: {host} is not there")
            store = re.search(r"endpoint=http://([^:]+):8333", environment["LAZURITE_BYTES"])
            check(store and store.group(1) in services, f"{where}: the store is not there")
    check(mounted == volumes, f"compose.yaml: volumes {mounted ^ volumes} are named in one place only")
    count = lambda prefix: sum(name.startswith(prefix) for name in services)
    check(count("node-") == 3 and count("postgres-") == 3 and count("seaweedfs-volume-") == 3, "compose.yaml: not three of each")
    wanted = set(re.findall(r"\$\{([A-Z0-9_]+)", file.read_text()))
    example = set(re.findall(r"^([A-Z0-9_]+)=", (DEPLOY / "env.example").read_text(), re.M))
    check(wanted == example, f"env.example and compose.yaml differ: {wanted ^ example}")
    servers = re.findall(r"^\s*server (\S+) (\S+):(\d+)", (DEPLOY / "haproxy.cfg").read_text(), re.M)
    for name, host, port in servers:
        check(name == host and host in services, f"haproxy.cfg: {host} is not there")
    for published in services["balancer"]["ports"]:
        port = published.split(":")[1]
        check(sum(one == port for _, _, one in servers) == 3, f"haproxy.cfg: port {port} does not lead to three nodes")


def check_pods(document, where, names, help_text):
    spec = document["spec"]
    template = spec["template"]
    labels = template["metadata"]["labels"]
    if "selector" in spec:
        wanted = spec["selector"]["matchLabels"]
        check(wanted.items() <= labels.items(), f"{where}: its pods are not selected")
    claims = {one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", [])}
    pod = template["spec"]
    volumes = claims | {one["name"] for one in pod.get("volumes", [])}
    for volume in pod.get("volumes", []):
        for kind, key in (("configMap", "name"), ("secret", "secretName")):
            if kind in volume:
                check((kind.lower(), volume[kind][key]) in names, f"{where}: no {kind} {volume[kind][key]}")
                for item in volume[kind].get("items", []):
                    check(item["key"] in names[(kind.lower(), volume[kind][key])], f"{where}: no {item['key']}")
    if "serviceAccountName" in pod:
        check(("serviceaccount", pod["serviceAccountName"]) in names, f"{where}: no {pod['serviceAccountName']}")
    for container in pod.get("initContainers", []) + pod["containers"]:
        check_image(container["image"], where)
        ports = {one["name"] for one in container.get("ports", [])}
        for probe in ("readinessProbe", "livenessProbe"):
            handler = container.get(probe, {})
            port = (handler.get("httpGet") or handler.get("tcpSocket") or {}).get("port")
            check(port is None or port in ports, f"{where}: the {probe} asks {port}")
        for mount in container.get("volumeMounts", []):
            check(mount["name"] in volumes, f"{where}: no volume {mount['name']}")
        for variable in container.get("env", []):
            secret = variable.get("valueFrom", {}).get("secretKeyRef")
            if secret:
                check(secret["key"] in names.get(("secret", secret["name"]), ()), f"{where}: no secret {secret}")
        if container["image"] == "lazurite":
            check(pod["securityContext"]["runAsNonRoot"], f"{where}: may run as root")
            check_program(container["command"], environment_of(container), where, help_text)
            for host in metadata_hosts(environment_of(container)["LAZURITE_METADATA"]):
                member, _, service = host.partition(".")
                sets = names.get(("statefulset", service), {})
                is_member = re.fullmatch(rf"{service}-[0-9]+", member) and int(member.rsplit("-", 1)[1]) < sets.get("replicas", 0)
                check(is_member, f"{where}: {host} is not there")
    return labels


def check_kubernetes(help_text):
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    names = {}
    for document in documents:
        key = (document["kind"].lower(), document["metadata"]["name"])
        check(key not in names, f"kubernetes.yaml: {key} twice")
        names[key] = document.get("data") or document.get("stringData") or document.get("spec") or {}
        is_apart = document["kind"] == "Namespace" or document["metadata"].get("namespace") == "lazurite"
        check(document.get("apiVersion") and is_apart, f"kubernetes.yaml: {key} has no version or another namespace")
    pods = []
    for document in documents:
        where = f"kubernetes.yaml {document['kind']} {document['metadata']['name']}"
        if "template" in document.get("spec", {}):
            pods.append(check_pods(document, where, names, help_text))
        if document["kind"] == "StatefulSet":
            check(("service", document["spec"]["serviceName"]) in names, f"{where}: its service is not there")
        if document["kind"] == "RoleBinding":
            check(("role", document["roleRef"]["name"]) in names, f"{where}: no role")
    for document in documents:
        where = f"kubernetes.yaml {document['kind']} {document['metadata']['name']}"
        selector = document.get("spec", {}).get("selector")
        if document["kind"] in ("Service", "PodDisruptionBudget") and selector:
            wanted = selector.get("matchLabels", selector)
            check(any(wanted.items() <= labels.items() for labels in pods), f"{where}: selects nothing")
    check(names[("deployment", "lazurite")]["replicas"] == 3, "kubernetes.yaml: not three nodes")
    check(names[("statefulset", "postgres")]["replicas"] == 3, "kubernetes.yaml: not three members")
    # Patroni writes the Endpoints of the name of its scope; the service that shows them has the same.
    scope = yaml.safe_load((DEPLOY / "postgres/patroni.yml").read_text())["scope"]
    check("selector" not in names.get(("service", scope), {"selector": 1}), f"kubernetes.yaml: no service {scope} for the primary")
    filer = tomllib.loads(names[("configmap", "seaweedfs")]["filer.toml"])
    beside = tomllib.loads((DEPLOY / "seaweedfs/filer.toml").read_text())
    check(filer["postgres2"].pop("hostname") == scope, "kubernetes.yaml: the filer does not ask the primary")
    beside["postgres2"].pop("hostname")
    plain = lambda toml: {key: " ".join(str(value).split()) for key, value in toml["postgres2"].items()}
    check(plain(filer) == plain(beside), "kubernetes.yaml: its filer.toml is not that of seaweedfs/")


def check_patroni():
    told = yaml.safe_load((DEPLOY / "postgres/patroni.yml").read_text())
    dcs = told["bootstrap"]["dcs"]
    check(dcs["synchronous_mode"] is True and dcs["synchronous_mode_strict"] is True, "patroni.yml: not strictly synchronous")
    check(dcs["ttl"] >= dcs["loop_wait"] + 2 * dcs["retry_timeout"], "patroni.yml: ttl is too short")
    check("data-checksums" in told["bootstrap"]["initdb"], "patroni.yml: no checksums")
    script = DEPLOY / "postgres/make-database"
    check(script.stat().st_mode & 0o111, "make-database cannot be run")
    check(subprocess.run(["sh", "-n", script]).returncode == 0, "make-database is no shell script")


def ask_others():
    """Programs that know better, where they are."""
    said = []
    if shutil.which("haproxy"):
        asked = subprocess.run(["haproxy", "-c", "-f", DEPLOY / "haproxy.cfg"], capture_output=True, text=True)
        check(asked.returncode == 0, f"haproxy.cfg: {asked.stderr}")
        said.append("haproxy")
    if shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        for file, context in ((DEPLOY / "Dockerfile", ROOT), (DEPLOY / "postgres/Dockerfile", DEPLOY / "postgres")):
            asked = subprocess.run(["docker", "build", "--check", "-f", file, context], capture_output=True, text=True)
            check(asked.returncode == 0, f"{file}: {asked.stdout}{asked.stderr}")
        said.append("docker")
    return said


def main():
    help_text = None
    if len(sys.argv) > 1:
        help_text = subprocess.run([sys.argv[1], "--help"], capture_output=True, text=True, check=True).stdout
    lines = check_dockerfile(DEPLOY / "Dockerfile", ROOT, ["azurite", "azurite-blob", "azurite-queue", "azurite-table"])
    check(("VOLUME", "/data") in lines, "Dockerfile: no volume /data")
    check_program(yaml.safe_load(lines[-1][1]), {}, "Dockerfile", help_text)
    check_dockerfile(DEPLOY / "postgres/Dockerfile", DEPLOY / "postgres")
    check_compose(help_text)
    check_kubernetes(help_text)
    check_patroni()
    others = ask_others()
    for fault in faults:
        print(fault)
    print(f"deploy/: {len(faults)} faults. Checked as text{''.join(f', and by {name}' for name in others)}; no container was run.")
    sys.exit(1 if faults else 0)


main()
